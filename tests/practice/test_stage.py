"""A solution of problem 131 on the stage: its answers stand beside those of a real pool, and a wrong one shows."""

from __future__ import annotations

import pytest

from practice.grader.catalogue import Solution, solutions
from practice.grader.contract import DEFAULT_SEED
from practice.grader.problems import load
from practice.stage import play

PROBLEM = load(131)


REFERENCE = Solution(PROBLEM.folder / "reference.py", PROBLEM.class_name, "AC").make()


def test_the_statements_example_has_an_act_for_each_call():
    titles = [act.title for act in play(REFERENCE).acts]
    assert titles == [
        "A allocates: the class answers ([0, 1, 2], 0), as the pool does",
        "B allocates: the class answers ([0, 1, 3], 4), as the pool does",
        "A is freed",
        "C, LoRA 0, allocates: the class answers ([4, 5], 0), as the pool does",
        "D allocates: the class answers None, as the pool does",
    ]


@pytest.mark.parametrize("group", range(8))
def test_the_reference_answers_as_the_pool_in_every_case_that_fits_the_stage(group):
    cases = [case for case in PROBLEM.groups(DEFAULT_SEED)[group].cases if case.parameters["num_blocks"] <= 24]
    assert cases
    for case in cases:
        assert not any(", but the pool" in act.title for act in play(REFERENCE, case).acts)


def test_a_wrong_answer_is_named_beside_the_right_one():
    (wrong,) = [solution for solution in solutions(PROBLEM, "wrong") if solution.name == "zero_is_none"]
    titles = [act.title for act in play(wrong.make()).acts]
    assert "C, LoRA 0, allocates: the class answers ([0, 4], 2), but the pool ([4, 5], 0)" in titles


def test_a_class_that_uses_up_what_it_is_given_is_played_as_well():
    class Consuming:
        def __init__(self, **parameters):
            self.cache = REFERENCE(**parameters)

        def allocate(self, tokens, lora_id=None):
            answer = self.cache.allocate(list(tokens), lora_id)
            tokens.clear()
            return answer

        def free(self, block_table):
            self.cache.free(list(block_table))
            block_table.clear()

    assert not any(", but the pool" in act.title for act in play(Consuming).acts)
