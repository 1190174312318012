"""Every problem is whole: statement, hints, starter and cases say the same thing, in both languages."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from practice.grader.catalogue import catalogued, solutions
from practice.grader.contract import Group, Problem, Result
from practice.grader.play import Objects, play, script
from practice.grader.problems import folders, load

ROOT = Path(__file__).parents[2]
PROBLEMS = [load(number) for number in folders()]
each_problem = pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: str(problem.number))
each_language = pytest.mark.parametrize("language", ["en", "zh"])


def test_an_unknown_number_is_an_error_that_lists_what_there_is():
    with pytest.raises(ValueError, match=r"no problem 999; there are 130, 131"):
        load(999)


def test_problems_come_by_number_and_are_found_by_it():
    assert [problem.number for problem in PROBLEMS] == sorted(problem.number for problem in PROBLEMS)
    assert all(load(problem.number) is problem for problem in PROBLEMS)


def test_problems_need_nothing_but_the_standard_library():
    script = "from practice.grader.problems import *; print(sum(len(load(n).groups(1)) for n in folders()))"
    done = subprocess.run([sys.executable, "-S", "-c", script], cwd=ROOT, capture_output=True, text=True, check=False)
    assert int(done.stdout) == sum(len(problem.groups(1)) for problem in PROBLEMS), done.stderr


# ---- the Chinese of cases and tables


def said_in(problem: Problem) -> set[str]:
    """What the small cases of a problem are called, and all words in the tables that they lead to."""
    found = {case.name for group in problem.groups(0) for case in group.cases}
    for group in problem.groups(0):
        for case in group.cases if not group.speed else ():
            rules = Objects(problem.rules, case.parameters)
            for move, _ in script(case, problem.rules):
                rules.perform(move.step, move.args, move.kwargs)
                for table in rules.made[move.step.on].tables():
                    cells = [table.title, *table.columns, *(cell for row in table.rows for cell in row)]
                    found |= {cell for cell in cells if re.search("[a-z]{2}", cell)}
    return found - {"lora_id", "None"}


@each_problem
def test_all_that_cases_and_tables_say_is_there_in_chinese_and_nothing_else(problem):
    assert said_in(problem) == problem.chinese.keys()


@each_problem
def test_chinese_names_stand_apart_from_latin_letters_and_belong_to_one_english_name(problem):
    for english, chinese in problem.chinese.items():
        assert not re.search(r"[一-鿿][A-Za-z0-9]|[A-Za-z0-9][一-鿿]", chinese), (english, chinese)
    names = {case.name for group in problem.groups(0) for case in group.cases}
    assert len({problem.chinese[name] for name in names}) == len(names)


# ---- starter and reference


def signatures(source: bytes) -> list[tuple[str, str]]:
    """Name and signature of each class, method and function, in order."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ClassDef):
            found.append((node.name, ", ".join(map(ast.unparse, node.bases))))
        elif isinstance(node, ast.FunctionDef):
            found.append((node.name, f"{ast.unparse(node.args)} -> {ast.unparse(node.returns or ast.Constant(None))}"))
    return found


@each_problem
def test_starter_and_reference_share_every_name_and_signature(problem):
    assert signatures(problem.starter()) == signatures(problem.reference().encode())


@each_problem
def test_each_method_of_the_starter_says_what_it_means_and_raises_naming_problem_and_step(problem):
    (cls,) = (node for node in ast.parse(problem.starter()).body if isinstance(node, ast.ClassDef))
    methods = [node for node in cls.body if isinstance(node, ast.FunctionDef)]
    for step, method in enumerate(methods, 1):
        assert method.name == "__init__" or ast.get_docstring(method)
        raised = ast.unparse(method.body[-1])
        assert re.match(rf"raise NotImplementedError\(['\"]{problem.number}, step {step}: ", raised), raised


@each_problem
def test_the_reference_is_short(problem):
    assert len(problem.reference().splitlines()) <= 85


# ---- statement, hints, diagnoses


@each_problem
@each_language
def test_the_examples_of_the_statement_are_what_the_rules_return(problem, language):
    blocks = re.findall(r"```python\n(.*?)```", problem.statement(language), re.DOTALL)
    checked = 0
    for block in blocks[1:]:
        space = {problem.class_name: problem.rules}
        first, *calls = block.strip().splitlines()
        exec(first, space)
        for call in calls:
            code, _, comment = call.partition("#")
            got = repr(eval(code, space))
            if ".free(" not in code and ".finish(" not in code:
                assert comment.strip().startswith(got), call
                checked += 1
    assert checked >= 6


@each_problem
@each_language
def test_the_examples_of_the_statement_are_the_first_cases(problem, language):
    statement = problem.statement(language)
    for case in problem.groups(0)[0].cases:
        for step in case.steps:
            arguments = [repr(value) for value in step.args if not isinstance(value, Result)]
            assert not arguments or f".{step.method}({arguments[0]}" in statement


@each_problem
def test_both_languages_show_the_same_examples(problem):
    def code(language: str) -> list[str]:
        lines = re.findall(r"```python\n(.*?)```", problem.statement(language), re.DOTALL)[1:]
        return [line.partition("#")[0].strip() for block in lines for line in block.splitlines()]

    assert code("en") == code("zh")


@each_problem
@each_language
def test_there_are_three_hints(problem, language):
    hints = problem.hints(language)
    assert len(hints) == 3 and all(hints)


def anchors(path: Path) -> set[str]:
    """What a link to a heading of the file may say after '#'."""
    if path.suffix == ".ipynb":
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        text = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
        return {title.replace("`", "").replace(" ", "-") for title in re.findall(r"^#+ (.*)$", text, re.MULTILINE)}
    titles = re.findall(r"^#+ (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title).lower().replace(" ", "-") for title in titles}


@each_problem
@each_language
def test_each_diagnosis_has_a_sentence_and_leads_to_a_heading_that_exists(problem, language):
    for key, diagnosis in problem.diagnoses.items():
        assert diagnosis.sentence[language], key
        path, _, heading = diagnosis.link[language].partition("#")
        assert heading in anchors(ROOT / path), f"{key}: {path} has no heading {heading}"


@each_problem
def test_no_two_diagnoses_say_the_same(problem):
    for language in ("en", "zh"):
        sentences = [diagnosis.sentence[language] for diagnosis in problem.diagnoses.values()]
        assert len(set(sentences)) == len(sentences)


# ---- cases


@each_problem
def test_groups_name_their_idea_in_both_languages_and_are_worth_100_points(problem):
    groups = problem.groups(0)
    assert sum(group.points for group in groups) == 100
    assert all(group.points > 0 and group.title["en"] and group.title["zh"] for group in groups)
    assert len({group.name for group in groups}) == len(groups)


@each_problem
def test_steps_and_cases_can_be_told_apart(problem):
    for group in problem.groups(0):
        assert len({case.name for case in group.cases}) == len(group.cases)
        for case in group.cases:
            assert len({step.id for step in case.steps}) == len(case.steps)


@each_problem
def test_the_same_seed_gives_the_same_cases_and_another_seed_others(problem):
    assert problem.groups(7) == problem.groups(7) != problem.groups(8)


@each_problem
def test_what_a_call_returned_is_given_back_at_most_once_and_after_that_call(problem):
    for group in problem.groups(3):
        for case in group.cases:
            used = [(used, step.id) for step in case.steps for used in step.uses()]
            assert len({earlier for earlier, _ in used}) == len(used)
            assert all(earlier < later for earlier, later in used)


@each_problem
def test_rules_show_their_state_in_small_tables_even_after_a_large_case(problem):
    case = max((case for group in problem.groups(0) for case in group.cases), key=lambda case: len(case.steps))
    rules = problem.rules(**case.parameters)
    assert len(rules.tables()) >= 1
    for step in case.steps[:40]:
        if not list(step.uses()):
            getattr(rules, step.method)(*step.args, **step.kwargs)
    for table in rules.tables():
        assert len(table.rows) <= 20
        assert all(len(row) == max(1, len(table.columns)) for row in table.rows)
        assert max(len(cell) for row in table.rows for cell in row) < 400


# ---- catalogue, in this process and with several seeds


def quick_groups(problem: Problem, seed: int) -> list[Group]:
    slow = {solution.group for solution in catalogued(problem) if solution.verdict == "TLE"}
    return [group for group in problem.groups(seed) if group.name not in slow]


@each_problem
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_each_wrong_solution_fails_in_the_group_meant_for_it_whatever_the_seed(problem, seed):
    groups = {group.name: group for group in quick_groups(problem, seed)}
    for solution in catalogued(problem):
        if solution.verdict != "TLE":
            results = [play(case, problem.rules, solution.make()) for case in groups[solution.group or ""].cases]
            assert {result.failure.verdict for result in results if result.failure} >= {solution.verdict}, solution.name


@each_problem
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_each_right_solution_passes_whatever_the_seed(problem, seed):
    cases = [case for group in quick_groups(problem, seed) for case in group.cases]
    for solution in solutions(problem, "right"):
        failed = [case.name for case in cases if play(case, problem.rules, solution.make()).failure]
        assert not failed, solution.name


@each_problem
def test_a_solution_that_is_only_too_slow_answers_every_quick_case_right(problem):
    cases = [case for group in quick_groups(problem, 1) for case in group.cases]
    for solution in catalogued(problem):
        if solution.verdict == "TLE":
            failed = [case.name for case in cases if play(case, problem.rules, solution.make()).failure]
            assert not failed, solution.name


@each_problem
def test_the_catalogue_is_large_and_uses_every_diagnosis(problem):
    wrong = catalogued(problem)
    assert len(wrong) >= 18 and len(solutions(problem, "right")) >= 5
    assert {solution.diagnosis for solution in wrong} - {None} == set(problem.diagnoses)
    assert len(problem.diagnoses) >= 8
