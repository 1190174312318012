"""The host in the child: it loads the learner's module, makes the calls it is sent, and sends back what they return.

It runs beside code that may do anything to it, and so holds nothing of interest: no expected value, no later call.
What it needs is imported before that code runs, and its builtins are a copy, so that patching them is no trap.
Only its text is used: the parent sends it to a Python that has nothing else of the judge (`process.BOOT`).
"""

from __future__ import annotations

import sys
from _json import encode_basestring_ascii as quote
from marshal import loads
from os import _exit, read, write

TYPE_CHECKING = False  # a checker takes it for true; typing takes its time to import
if TYPE_CHECKING:
    from typing import Any, NoReturn

FILE = "solution.py"  # what the learner's code is called in tracebacks
MAX_REPLY = 1_000_000  # bytes
MAX_DEPTH, MAX_ITEMS, MAX_TEXT, MAX_BITS = 16, 100_000, 10_000, 4_000  # of a value; what is larger is no answer
TRACEBACK = BaseException.__dict__["__traceback__"].__get__  # an exception's own class may answer anything
MAX_SHOWN = 300  # characters of what is no answer
MAX_WATCHED = 2000  # bytes of an answer that must not change afterwards; of longer ones that would take its time
MAX_FRAMES = 8  # of a traceback, the innermost


class Unfit(Exception):
    """A value that is too large or nested too deeply to be sent."""


def encode(value: Any) -> str:
    """A value as JSON that keeps its exact type; what is no plain data is described instead."""
    try:
        text = _encode(value, MAX_DEPTH, [MAX_ITEMS])
        if len(text) > MAX_REPLY:
            raise Unfit
        return text
    except Unfit:
        return tagged("f", f'{quote(_name(type(value)))},"too large or nested too deeply to be shown"')


def _encode(value: Any, depth: int, room: list[int]) -> str:
    kind = type(value)
    if kind is int:
        size = value.bit_length()
        return repr(value) if size <= MAX_BITS else tagged("f", f'"int","an int of {size} bits"')
    if value is None or kind is bool:
        return "null" if value is None else "true" if value else "false"
    if kind is float:
        return {"inf": "Infinity", "-inf": "-Infinity", "nan": "NaN"}.get(text := repr(value), text)
    if kind is str and len(value) <= MAX_TEXT:
        return quote(value)
    if kind is list or kind is tuple:
        room[0] -= len(value)
        if depth == 0 or room[0] < 0:
            raise Unfit
        if {*map(type, value)} == {int} and max(value) < 1 << 64 and min(value) >= 0:  # most results, at the speed of C
            text = repr([*value])[1:-1]
        else:
            text = ",".join([_encode(item, depth - 1, room) for item in value])
        return f"[{text}]" if kind is list else tagged("t", text)
    shown = value[:MAX_SHOWN] if kind is str or kind is bytes else value
    return tagged("f", f"{quote(_name(kind))},{quote(_show(repr, shown))}")


def tagged(kind: str, parts: str) -> str:
    """What JSON has no notation for: t, a tuple; f, the type and text of what is no plain data."""
    return f'{{"{kind}":[{parts}]}}'


def _show(show: Any, value: Any) -> str:
    """`show(value)`, cut; it may be the learner's code, and so raise or return anything."""
    try:
        text = show(value)
        if type(text) is str:
            return text if len(text) <= MAX_SHOWN else text[:MAX_SHOWN] + " ..."
    except BaseException:
        pass
    return "(cannot be shown)"


def _name(kind: type) -> str:
    return _show(lambda kind: kind.__name__, kind)


def describe(error: BaseException) -> str:
    """An exception as the rest of a reply: kind, type, text, and the frames that are the learner's own."""
    kind = "memory" if issubclass(type(error), MemoryError) else "error"
    frames, at = [], TRACEBACK(error)
    while at is not None:
        code = at.tb_frame.f_code
        if code.co_filename == FILE:
            frames.append(f"[{at.tb_lineno},{quote(code.co_name)}]")
        at = at.tb_next
    return f'"{kind}",{quote(_name(type(error)))},{quote(_show(str, error))},[{",".join(frames[-MAX_FRAMES:])}]'


class Host:
    """Serves calls until the parent closes the pipe."""

    def __init__(self, calls: int, replies: int) -> None:
        self.calls, self.replies = calls, replies
        self.flushes = sys.stdout.flush, sys.stderr.flush
        self.made: type | None = None
        self.objects: dict[int | None, Any] = {}
        self.latest: Any = None  # the list or tuple that was returned last
        self.sent = encode(None)  # as what
        self.failed_end: list[BaseException] = []  # exceptions of __del__

    def serve(self) -> NoReturn:
        while True:
            number, verb, *rest = loads(self._receive())
            try:
                reply = getattr(self, verb)(*rest)
            except BaseException as error:
                reply = describe(error)
            del rest
            for flush in self.flushes:  # what was printed in a call reaches the parent before its reply
                try:  # noqa: SIM105 -- contextlib takes its time to import
                    flush()
                except BaseException:
                    pass
            self.send(f"[{number},{reply}]")

    def load(self, source: str, class_name: str) -> str:
        """Run the learner's module."""
        try:
            code = compile(source, FILE, "exec", dont_inherit=True)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            name, text = quote(_name(type(error))), quote(_show(str, getattr(error, "msg", error)))
            return f'"syntax",{name},{text},[[{getattr(error, "lineno", None) or 0},""]]'
        module = type(sys)("solution")
        sys.modules["solution"] = module  # dataclasses look their module up
        exec(code, vars(module))
        made = vars(module).get(class_name)
        if not isinstance(made, type):
            return f'"missing","",{quote(class_name)},[]'
        self.made = made
        return '"value",null'

    def new(self, parameters: dict[str, Any], name: int | None = None) -> str:
        """Make an object; the one that a case starts with has no name."""
        assert self.made is not None
        if name is None:
            self.latest, self.sent = None, encode(None)
        self.objects[name] = self.made(**parameters)
        return '"value",null'

    def call(
        self,
        method: str,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        given_back: bool = False,
        name: int | None = None,
    ) -> str:
        """`given_back`: the latest list is an argument, and so may change from now on; else it is told when it does."""
        if given_back:
            self.latest, self.sent = None, encode(None)
        value = getattr(self.objects[name], method)(*args, **kwargs)
        if (now := encode(self.latest)) != self.sent:
            return '"changed",' + now
        text = encode(value)
        if type(value) is list or type(value) is tuple:
            self.latest, self.sent = (value, text) if len(text) <= MAX_WATCHED else (None, encode(None))
        return '"value",' + text

    def call_all(self, calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]]) -> str:
        """Make many calls on the first object, none of which takes what another returns."""
        values = [encode(getattr(self.objects[None], method)(*args, **kwargs)) for method, args, kwargs in calls]
        return f'"value",[{",".join(values)}]'

    def drop(self) -> str:
        """End the lives of the objects, so that what their __del__ does belongs to their own case."""
        before, sys.unraisablehook = sys.unraisablehook, self._note
        self.objects.clear()
        sys.unraisablehook = before
        return describe(self.failed_end.pop()) if self.failed_end else '"value",null'

    def _note(self, unraisable: Any) -> None:
        if unraisable.exc_value is not None:
            self.failed_end.append(unraisable.exc_value)

    def send(self, reply: str) -> None:
        data = reply.encode("ascii")
        data = len(data).to_bytes(4, "big") + data
        while data:
            data = data[write(self.replies, data) :]

    def _receive(self) -> bytes:
        """The next message. The parent sends none before it has the reply to the one before."""
        chunk = data = read(self.calls, 1 << 16)
        while chunk and len(data) < 4 + int.from_bytes(data[:4], "big"):
            chunk = read(self.calls, 1 << 20)
            data += chunk
        return data[4:] if chunk else _exit(0)
