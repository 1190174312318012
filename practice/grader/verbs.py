"""What a learner can ask of the judge, one function a verb."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from practice.grader.case_text import CaseError, calls, read
from practice.grader.contract import Case, CaseResult, Problem, Step
from practice.grader.explain import Explained
from practice.grader.layout import Block, Code, Grid, Heading, Piece, Toned, line
from practice.grader.problems import folders, load
from practice.grader.progress_bar import Bar
from practice.grader.report import data, page, verdict_piece
from practice.grader.request import FAILED, FAULT, PASSED, Answer, Request, UsageError, as_typed, quoted
from practice.grader.submissions import read_source, saves


def list_problems(request: Request) -> Answer:
    words, progress = request.words, request.learner.progress
    rows, entries = [], []
    problems = [load(number) for number in folders()]
    for problem in problems:
        score = progress.of(problem.number)
        best: Piece = Toned(words("never"), "dim")
        if score.passed:
            best = Toned(words("passed"), "good")
        elif score.points is not None:
            best = f"{score.points}/{score.of}" if score.of else "0"
        title = problem.title[words.language]
        rows.append((str(problem.number), title, words(problem.difficulty), problem.chapter, best))
        entries.append(
            {"problem": problem.number, "title": title, "difficulty": problem.difficulty, "chapter": problem.chapter}
            | {"points": score.points, "of": score.of, "passed": score.passed}
        )
    columns = tuple(words(key) for key in ("number", "problem", "difficulty", "chapter", "best"))
    following = next((problem.number for problem in problems if not progress.of(problem.number).passed), None)
    step = words("list_done")
    if following is not None:
        step = words("list_next", command=request.asked.command, number=following)
    return Answer([Grid(columns, tuple(rows)), line(step)], {"problems": entries, "next": following})


def grade_one(request: Request, given: str, file: str | None = None) -> Answer:
    problem, words = request.problem(given), request.words
    notes: list[Block] = []
    path = request.learner.path(problem.number) if file is None else Path(file)
    if file is None and request.learner.start(problem):
        notes.append(line(words("made", path=as_typed(path))))
    if file == "-":
        if request.stdin is None:
            raise UsageError(words("no_stdin"))
        source = request.stdin.buffer.read(problem.limits.source + 1)
    else:
        try:
            source = read_source(path, problem.limits.source)
        except OSError:
            raise UsageError(words("no_file", path=path)) from None
    return _graded(request, problem, source, path if file is None else file, notes)


def _graded(request: Request, problem: Problem, source: bytes, file: Path | str, notes: list[Block]) -> Answer:
    case = None if request.case is None else _case(request, problem, request.case)
    own = isinstance(file, Path)  # the learner's own file needs no name on the command line, and counts
    asked = replace(request.asked, file="" if own else quoted(str(file)), path=as_typed(Path(file)))
    with Bar() as bar:
        explained = request.learner.grade(problem, source, request.seed, case, bar, own)
    report = page(explained, request.words, asked)
    return Answer([*notes, *report], data(explained, request.words, asked), status_of(explained))


def status_of(explained: Explained) -> int:
    return {"AC": PASSED, "IE": FAULT}.get(explained.report.verdict, FAILED)


def _case(request: Request, problem: Problem, given: str) -> Case:
    for group in problem.groups(request.seed):
        for case in group.cases:
            if given in (case.name, request.words.of(case.name, problem.chinese)):
                return case
    if "(" not in given:
        raise UsageError(request.words("case_unknown", given=given))
    try:
        return read(problem, given)
    except CaseError as error:
        expected = f"{problem.variable} = {problem.class_name}(...)"
        values = {"position": error.position, "detail": error.detail, "expected": expected}
        raise UsageError(request.words(error.key, variable=problem.variable, **values)) from None


def show_statement(request: Request, given: str) -> Answer:
    problem = request.problem(given)
    text = problem.statement(request.words.language)
    return Answer([line(text)], {"problem": problem.number, "statement": text})


def show_hint(request: Request, given: str, which: str | None = None) -> Answer:
    problem, words = request.problem(given), request.words
    hints = problem.hints(words.language)
    seen = request.learner.progress.of(problem.number).hints
    number = min(seen + 1, len(hints)) if which is None else int(which) if which.isdecimal() else 0
    if not 1 <= number <= len(hints):
        raise UsageError(words("hint_range", of=len(hints), given=which))
    values = {"command": request.asked.command, "number": problem.number}
    if number > seen + 1:
        raise UsageError(words("hint_order", hint=number, seen=number - 1, **values))
    request.learner.progress.show_hint(problem.number, number)
    more = words("hint_last") if number == len(hints) else words("hint_more", **values)
    title = words("hint_title", hint=number, of=len(hints))
    blocks: list[Block] = [Heading(title), line(hints[number - 1]), line(Toned(more, "dim"))]
    content = {"problem": problem.number, "hint": number, "of": len(hints), "text": hints[number - 1]}
    return Answer(blocks, content)


def show_solution(request: Request, given: str) -> Answer:
    problem = request.problem(given)
    if not request.spoil and not request.learner.progress.of(problem.number).passed:
        raise UsageError(request.words("solution_locked", command=request.asked.command, number=problem.number))
    text = problem.reference()
    return Answer([Code(tuple(text.rstrip().split("\n")))], {"problem": problem.number, "reference": text})


def reset(request: Request, given: str) -> Answer:
    problem, words = request.problem(given), request.words
    path = request.learner.path(problem.number)
    kept = request.learner.save(problem.number, problem.starter())
    blocks: list[Block] = [line(words("reset_done", path=as_typed(path)))]
    if kept is not None:
        blocks.append(line(words("earlier_kept", path=as_typed(kept))))
    return Answer(blocks, {"problem": problem.number, "file": str(path), "kept": None if kept is None else str(kept)})


def watch(request: Request, given: str) -> Answer:
    problem = request.problem(given)
    path = request.learner.path(problem.number)
    made = request.learner.start(problem)
    note = request.words("made", path=as_typed(path)) if made else ""
    head = [line(each) for each in (note, request.words("watching", path=as_typed(path))) if each]
    request.show(Answer(list(head), {}))
    try:
        for source in saves(path, problem.limits.source, request.wait):
            request.show(_graded(request, problem, source, path, []))
    except KeyboardInterrupt:
        pass
    return Answer([], {})


def grade_everything(request: Request) -> Answer:
    words, rows, entries, status = request.words, [], [], PASSED
    numbers = list(folders())
    with Bar() as bar:
        for done, number in enumerate(numbers):
            bar(done, len(numbers))
            problem, path = load(number), request.learner.path(number)
            source = read_source(path, problem.limits.source) if path.is_file() else problem.starter()
            explained = request.learner.grade(problem, source, request.seed)
            content = data(explained, words, request.asked)
            title, verdict = problem.title[words.language], verdict_piece(explained.report.verdict, words)
            rows.append((str(number), title, verdict, f"{content['points']}/{content['of']}"))
            entries.append({key: content[key] for key in ("problem", "title", "verdict", "points", "of")})
            status = max(status, status_of(explained))
    columns = tuple(words(key) for key in ("number", "problem", "verdict", "group_points"))
    return Answer([Grid(columns, tuple(rows), numbers=(3,))], {"problems": entries, "seed": request.seed}, status)


def grade_next(request: Request) -> Answer:
    for number in folders():
        if not request.learner.progress.of(number).passed:
            return grade_one(request, str(number))
    return Answer([line(request.words("list_done"))], {"next": None})


def doctor(request: Request) -> Answer:
    from practice.grader.doctor import doctor as examine

    words, findings = request.words, examine()
    rows = tuple(
        (
            words.of(each.protection),
            Toned(words("active"), "good") if each.active else Toned(words("inactive"), "bad"),
            words.of(each.detail),
        )
        for each in findings
    )
    columns = (words("protection"), "", words("finding"))
    content = [
        {"protection": words.of(each.protection), "active": each.active, "detail": words.of(each.detail)}
        for each in findings
    ]
    return Answer([Heading(words("doctor_title")), Grid(columns, rows)], {"findings": content})


def verify(request: Request, given: str | None = None) -> Answer:
    from practice.grader.verify import verify as check  # the author's: a learner need not wait for it

    problems = [load(number) for number in folders()] if given is None else [request.problem(given)]
    blocks: list[Block] = []
    entries, faults = [], []
    for problem in problems:
        with Bar() as bar:
            found = check(problem, request.seed, bar)
        columns, rows = found.table()
        blocks += [Heading(f"{problem.number} {problem.title[request.words.language]}"), Grid(columns, tuple(rows))]
        faults += found.faults
        for each in found.checked:
            differs = each.differs
            sequence = calls(problem, differs.case.parameters, _made(differs), widest=24) if differs else None
            entries.append(
                {"problem": problem.number, "name": each.name, "verdict": each.verdict, "failed": each.failed}
                | {"diagnosis": each.diagnosis, "fault": each.fault, "differs": sequence}
            )
    done = request.words("verified", count=len(entries))
    blocks += [line(Toned(fault, "bad")) for fault in faults] or [line(Toned(done, "good"))]
    return Answer(blocks, {"solutions": entries, "faults": faults, "seed": request.seed}, FAULT if faults else PASSED)


def _made(result: CaseResult) -> list[Step]:
    """The steps that were made, up to the one on which the solution differs."""
    return [move.step for move in result.failure.moves] if result.failure else []
