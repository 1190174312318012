"""Replies cross the pipe as they are, and nothing that comes through it can harm the parent."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from practice.grader.child import MAX_DEPTH, MAX_ITEMS, encode
from practice.grader.contract import Foreign
from practice.grader.play import same
from practice.grader.protocol import MAX_REPLY, Garbled, Raised, Value, parse

scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
plain = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.lists(inner, max_size=4).map(tuple),
    max_leaves=12,
)


def sent(value: Any) -> Any:
    """What the parent makes of a value that the child returns."""
    reply = parse(f'[1,"value",{encode(value)}]'.encode("ascii"), 1)
    assert isinstance(reply, Value)
    return reply.value


@given(plain)
def test_plain_data_arrives_as_it_was_type_by_type(value):
    assert same(value, sent(value))


@pytest.mark.parametrize("value", [[1, True], (0, False), [1, -1], [1 << 64], [2**200], [1, [2, (3,)]], [], ()])
def test_lists_of_ints_and_their_look_alikes_arrive_as_they_were(value):
    assert same(value, sent(value))


class Int(int):
    pass


class Equal:
    def __eq__(self, other):
        return True

    def __hash__(self):
        return 0

    def __repr__(self):
        raise SystemExit(0)


@pytest.mark.parametrize("value", [Int(1), Equal(), b"x", {1}, {1: 2}, range(3), 1j, int, 1 << 5000, "x" * 20_000, Int])
def test_what_is_no_plain_data_arrives_as_a_description(value):
    assert isinstance(sent(value), Foreign) and isinstance(sent([value])[0], Foreign)
    assert sent(value).type_name == type(value).__name__


def test_a_description_has_no_addresses_so_that_reports_are_the_same_in_every_run():
    assert sent(object()).text == "<object object at 0x...>"


def nested(depth: int) -> list[Any]:
    return [] if depth == 1 else [nested(depth - 1)]


def doubled(depth: int) -> list[Any]:
    table: list[Any] = []
    for _ in range(depth):
        table = [table, table]
    return table


def test_depth_and_size_of_a_value_are_bounded():
    assert sent(nested(MAX_DEPTH)) == nested(MAX_DEPTH)
    assert isinstance(sent(nested(MAX_DEPTH + 1)), Foreign)
    assert sent([7] * MAX_ITEMS) == [7] * MAX_ITEMS
    assert isinstance(sent([7] * (MAX_ITEMS + 1)), Foreign)
    assert isinstance(sent([1 << 63] * MAX_ITEMS), Foreign), "few enough items, and too many bytes"
    assert isinstance(sent(doubled(60)), Foreign)


def test_a_value_that_contains_itself_arrives_as_a_description():
    table: list[Any] = [0]
    table.append(table)
    assert isinstance(sent((table, 0)), Foreign)


def test_an_exception_arrives_with_the_learner_s_frames():
    assert parse(b'[3,"error","KeyError","4",[[7,"free"]]]', 3) == Raised("error", "KeyError", "4", ((7, "free"),))


def test_a_long_int_is_refused_also_where_python_sets_no_limit():
    before = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)
    try:
        with pytest.raises(Garbled):
            parse(b'[1,"value",%s]' % (b"9" * 5000), 1)
    finally:
        sys.set_int_max_str_digits(before)


def test_what_is_told_of_an_exception_is_cut():
    reply = parse(b'[3,"error","%s","%s",[%s[7,"free"]]]' % (b"N" * 9999, b"t" * 9999, b'[1,"f"],' * 999), 3)
    assert isinstance(reply, Raised) and reply.frames[-1] == (7, "free")
    assert [len(reply.type_name), len(reply.text), len(reply.frames)] == [1000, 1000, 8]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"null",
        b"[]",
        b'[2,"value",null]',
        b'[true,"value",null]',
        b'[1.0,"value",null]',
        b'[1,"value"]',
        b'[1,"value",null,null]',
        b'[1,"value",null] ',
        b'[1,"accepted",null]',
        b'[1,"value",{}]',
        b'[1,"value",{"t":1}]',
        b'[1,"value",{"t":[],"t":[]}]',
        b'[1,"value",{"d":[[1,2]]}]',
        b'[1,"value",{"f":["int"]}]',
        b'[1,"value",{"f":[1,2]}]',
        b'[1,"error","KeyError","4",[[7]]]',
        b'[1,"error","KeyError","4",[["7","free"]]]',
        b'[1,"error",null,"4",[]]',
        b'[1,"value",\xff]',
        b'[1,"value",' + b"[" * (MAX_REPLY - 20),
        b'[1,"value",' + b"[" * 30 + b"]" * 30 + b"]",
        b'[1,"value",' + b'{"t":[' * 30 + b"]}" * 30 + b"]",
        b'[1,"value",' + b"9" * (MAX_REPLY - 20) + b"]",
    ],
)
def test_what_the_host_would_not_send_is_garbled(data):
    with pytest.raises(Garbled):
        parse(data, 1)


@given(st.binary(max_size=80) | st.text(alphabet='[]{}",:truefalsn0123456789tdf', max_size=60).map(str.encode))
def test_no_bytes_raise_anything_but_garbled(data):
    with pytest.raises(Garbled):
        parse(data, 77_777)
