"""The command line of the judge: which verb, with which options, and where its answer goes."""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from practice.grader import verbs
from practice.grader.contract import DEFAULT_SEED
from practice.grader.layout import clean, line
from practice.grader.learner import Learner
from practice.grader.report import Asked
from practice.grader.request import FAULT, USAGE, Answer, Request, UsageError, quoted
from practice.grader.terminal import show, wants_colour
from practice.grader.words import LANGUAGES, Words, system_language

EVERYWHERE = ("--json", "--lang", "--no-color")
WITH_VALUE = ("--seed", "--lang", "--case")
FLAGS = ("--json", "--no-color", "--spoil", "--help", "-h")


def grade_class(request: Request, given: str, folder: str) -> Answer:
    from practice.grader import classroom  # with threads and csv, which a learner need not wait for

    return classroom.grade_class(request, given, folder)


@dataclass(frozen=True)
class Verb:
    do: Callable[..., Answer]
    takes: str = "takes_nothing"  # a key of `words`
    least: int = 0
    most: int = 0
    options: tuple[str, ...] = ()


VERBS = {
    "": Verb(verbs.list_problems),
    "NNN": Verb(verbs.grade_one, "takes_number_file", 1, 2, ("--seed", "--case")),
    "show": Verb(verbs.show_statement, "takes_number", 1, 1),
    "hint": Verb(verbs.show_hint, "takes_number_hint", 1, 2),
    "watch": Verb(verbs.watch, "takes_number", 1, 1, ("--seed", "--case")),
    "solution": Verb(verbs.show_solution, "takes_number", 1, 1, ("--spoil",)),
    "reset": Verb(verbs.reset, "takes_number", 1, 1),
    "all": Verb(verbs.grade_everything, options=("--seed",)),
    "next": Verb(verbs.grade_next, options=("--seed",)),
    "grade": Verb(grade_class, "takes_number_dir", 2, 2, ("--seed",)),
    "verify": Verb(verbs.verify, "takes_perhaps_number", 0, 1, ("--seed",)),
    "doctor": Verb(verbs.doctor),
}


def main(arguments: Sequence[str], learner: Learner | None = None) -> int:
    """Answer on standard output; the exit status."""
    _open_standard_files()
    words = Words(_language(arguments))
    if sys.stdout is None:
        return _refuse(words("no_stdout"), words, False, USAGE)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # a terminal that knows no Chinese is no reason to fail
    as_json, colour = "--json" in arguments, wants_colour(sys.stdout, refused="--no-color" in arguments)

    def say(answer: Answer) -> None:
        try:
            if as_json:
                print(json.dumps(answer.data))
            else:
                show(answer.page, sys.stdout, colour)
            sys.stdout.flush()
        except OSError:
            sys.stdout = None  # or it is tried again at the end
            raise

    try:
        answer = _answer(arguments, words, learner or Learner(), say)
        say(answer)
        return answer.status
    except UsageError as error:
        return _refuse(str(error), words, as_json, USAGE)
    except BrokenPipeError:  # the reader has seen enough
        return FAULT
    except KeyboardInterrupt:
        return 130
    except OSError as error:
        return _refuse(words("refused", detail=error), words, as_json, USAGE)
    except Exception as error:
        traceback.print_exc(file=sys.stderr)
        return _refuse(words("internal", detail=f"{type(error).__name__}: {error}"), words, as_json, FAULT)


def _refuse(sentence: str, words: Words, as_json: bool, status: int) -> int:
    if as_json and sys.stdout is not None:
        print(json.dumps({"error": sentence, "status": status}))
    else:
        more = words("usage_more", command=_command()) if status == USAGE else ""
        print(clean(sentence), more, sep="\n", file=sys.stderr)
    return status


def _open_standard_files() -> None:
    """Let nothing be opened under the number of a standard file that is closed."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)


def _answer(arguments: Sequence[str], words: Words, learner: Learner, say: Callable[[Answer], None]) -> Answer:
    given, options = _parse(arguments, words)
    if "--help" in options or "-h" in options:
        usage = words("usage", command=_command(), seed=DEFAULT_SEED)
        return Answer([line(usage)], {"usage": usage})
    name = given[0] if given else ""
    if name.isdecimal():
        name = "NNN"
    elif name not in VERBS:
        raise UsageError(words("bad_word", given=name))
    verb, rest = VERBS[name], given if name == "NNN" else given[1:]
    if not verb.least <= len(rest) <= verb.most:
        raise UsageError(words("bad_count", verb=name, takes=words(verb.takes), count=len(rest)))
    for option in options:
        if option not in (*EVERYWHERE, *verb.options) or (name, option) == ("watch", "--json"):
            raise UsageError(words("not_for", option=option, verb=name or "judge.py"))
    seed = options.get("--seed", str(DEFAULT_SEED))
    try:
        number = int(seed)
    except ValueError:
        raise UsageError(words("bad_seed", given=seed)) from None
    request = Request(words, Asked(_command()), learner, number, options.get("--case"), "--spoil" in options, say)
    answer = verb.do(request, *rest)
    if notes := learner.notes(words):
        answer.page += [line(note) for note in notes]
        answer.data["notes"] = notes
    return answer


def _parse(arguments: Sequence[str], words: Words) -> tuple[list[str], dict[str, str]]:
    """What was given beside options, and the options with their values."""
    given: list[str] = []
    options: dict[str, str] = {}
    rest = list(arguments)
    while rest:
        argument = rest.pop(0)
        name, equals, value = argument.partition("=")
        if argument == "--":
            return given + rest, options
        if argument == "-" or not argument.startswith("-"):
            given.append(argument)
        elif name in WITH_VALUE:
            if not equals and not rest:
                raise UsageError(words("no_value", given=name))
            options[name] = value if equals else rest.pop(0)
        elif argument in FLAGS:
            options[argument] = ""
        else:
            raise UsageError(words("no_option", given=argument))
    if options.get("--lang", "en") not in LANGUAGES:
        raise UsageError(words("bad_lang", given=options["--lang"]))
    return given, options


def _language(arguments: Sequence[str]) -> str:
    """Of the answer, also when the rest of the command is wrong."""
    for index, argument in enumerate(arguments):
        value = arguments[index + 1] if argument == "--lang" and index + 1 < len(arguments) else argument[7:]
        if argument.startswith("--lang") and value in LANGUAGES:
            return value
    return system_language()


def _command() -> str:
    """How the judge was started, to be typed again."""
    python = Path(sys.executable).stem if sys.platform == "win32" else Path(sys.executable).name
    return f"{python} {quoted(sys.argv[0])}"
