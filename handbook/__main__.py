"""The handbook's commands: python -m handbook hitrate TRACE --block-size 512"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import asdict
from os import fstat
from pathlib import Path

from tqdm import tqdm

from handbook.capacity import History
from handbook.kv_size import kv_bytes_per_token
from handbook.lab import hit_report, traces

EPILOG = """A trace has one JSON object a line: timestamp, input_length, output_length and hash_ids, one id for each
block of the prompt, equal id meaning equal whole prefix (Mooncake's format; its public traces have blocks of 512)."""


def main(arguments: list[str] | None = None) -> int:
    """Exit status 0; 1: the trace is wrong; 2: the call is."""
    parser = argparse.ArgumentParser(prog="python -m handbook", description="Commands beside the course.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    hitrate = commands.add_parser(
        "hitrate", help="how much would a prefix cache hit on this trace, by its size?", epilog=EPILOG
    )
    hitrate.add_argument("trace", metavar="TRACE", help="a file, plain or gzip; - is standard input")
    hitrate.add_argument("--block-size", type=_positive, required=True, metavar="TOKENS", help="that of hash_ids")
    hitrate.add_argument("--model", type=Path, metavar="CONFIG", help="its config.json, for sizes in GB (16-bit KV)")
    hitrate.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    hitrate.add_argument("--plot", type=Path, metavar="FILE", help="draw the curve, as .png, .svg or .pdf")
    options = parser.parse_args(arguments)
    if options.plot and (options.plot.suffix not in {".png", ".svg", ".pdf"} or not options.plot.parent.is_dir()):
        hitrate.error(f"cannot draw {options.plot}: name a .png, .svg or .pdf file in a folder that exists.")
    try:
        bytes_per_token = kv_bytes_per_token(options.model) if options.model else None
        history = History.of(_blocks(options.trace, options.block_size))
        found = hit_report.report(history, options.block_size, bytes_per_token)
        if options.plot:
            hit_report.plot(found, history, options.plot)
    except traces.TraceError as error:
        print(f"{options.trace}: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        hitrate.error(f"cannot open {error.filename or options.trace}: {error.strerror or error}.")
    except ValueError as error:
        hitrate.error(str(error))
    print(json.dumps(asdict(found)) if options.json else hit_report.text(found))
    return 0


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number of at least 1.")
    return int(text)


def _blocks(path: str, block_size: int) -> Iterator[list[int]]:
    """The hash_ids of each request, with a progress bar: in bytes of the file, or in requests if that has no end."""
    with traces.opened(path) as file:
        total = fstat(file.fileno()).st_size if file.seekable() else None
        unit = "B" if total else " requests"
        with tqdm(total=total, unit=unit, unit_scale=True, desc="reading", disable=None, leave=False) as bar:
            request = None
            for request in traces.read(file, block_size):
                yield request.hash_ids
                bar.update(file.tell() - bar.n if total else 1)
    if request is None:
        raise traces.TraceError("it has no requests.")


if __name__ == "__main__":
    sys.exit(main())
