"""Run the benchmarks of the subjects named, or of all: a table as it comes, and build/bench.json."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path

from tests.bench import blocks, engine, hit_rate, judge, scheduler, tree
from tests.bench.measure import Row, machine

SUBJECTS: dict[str, Callable[[], Iterator[Row]]] = {
    "blocks": blocks.rows,
    "tree": tree.rows,
    "scheduler": scheduler.rows,
    "engine": engine.rows,
    "hit rate": hit_rate.rows,
    "judge": judge.rows,
}
CONTESTANTS = ("plain", "handbook")
OUTPUT = Path(__file__).parents[2] / "build" / "bench.json"
LINE = "{:<9} {:<38} {:>12} {:>12} {:>9}   {:<16} {}"


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("subjects", nargs="*", metavar="SUBJECT", help=f"of {', '.join(SUBJECTS)}; all by default")
    wanted = parser.parse_args(arguments).subjects or list(SUBJECTS)
    if unknown := set(wanted) - SUBJECTS.keys():
        parser.error(f"there is no subject {sorted(unknown)[0]!r}; there are {', '.join(SUBJECTS)}.")
    facts = machine()
    for name, value in facts.items():
        print(f"{name:<14} {value}")
    print("\nCPU time in microseconds, medians of runs in turns; plain is the textbook version of tests/naive.")
    print("The engine's time and the judge's, from its start to its exit, are those on the clock.\n")
    print(LINE.format("subject", "work", "plain", "handbook", "faster", "to reach", ""))
    rows = []
    for subject in wanted:
        for row in SUBJECTS[subject]():
            times = [f"{row.microseconds[name]:,.1f}" if name in row.microseconds else "" for name in CONTESTANTS]
            faster = "" if row.times_faster is None else f"{row.times_faster:.2f}"
            counts = ", ".join(f"{name} {value:,}" for name, value in row.facts.items())
            print(LINE.format(row.subject, row.name, *times, faster, row.to_reach, counts), flush=True)
            rows.append(asdict(row) | {"times_faster": row.times_faster})
    OUTPUT.parent.mkdir(exist_ok=True)
    OUTPUT.write_text(json.dumps({"machine": facts, "rows": rows}, indent=1) + "\n", encoding="utf-8")
    print(f"\nWritten to {OUTPUT.parent.name}/{OUTPUT.name}.")


if __name__ == "__main__":
    main()
