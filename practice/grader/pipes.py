"""One call to the child and its reply, and what the child prints meanwhile: never longer, never more than allowed.

`PolledPipes` waits for all pipes at once. `ThreadedPipes` is for Windows, where pipes cannot be polled.
"""

from __future__ import annotations

import contextlib
import os
import select
import threading
import time
from collections.abc import Callable
from queue import Empty, Queue
from typing import IO

from practice.grader.protocol import MAX_REPLY, Garbled

Left = Callable[[], float]  # how many seconds to wait before asking again; none are left: no longer
CHUNK = 1 << 16
SHORT = 4096  # a call that fits into any pipe, and so cannot block


class Closed(Exception):
    """The child has ended, or closed its end of the pipes."""


class Overdue(Exception):
    """No reply within the time."""


class Flooded(Exception):
    """More was printed than is allowed."""


def lasting(seconds: float) -> Left:
    """What is left of so many seconds, which begin now."""
    until = time.monotonic() + seconds
    return lambda: until - time.monotonic()


class Pipes:
    """What both ways have in common: the bytes that have come."""

    def __init__(self, calls: IO[bytes], replies: IO[bytes], printed: IO[bytes]) -> None:
        self._files = calls, replies, printed
        self.calls, self.replies, self.printing = (file.fileno() for file in self._files)
        self.printed = bytearray()
        self.room = 0  # bytes that may still be printed
        self._reply = bytearray()
        self._open = {self.replies, self.printing}

    def _take(self) -> bytes | None:
        """The reply, once all of it is there."""
        size = int.from_bytes(self._reply[:4], "big")
        if size > MAX_REPLY or len(self._reply) > size + 4:
            raise Garbled("too long, or more than one reply")
        if len(self._reply) < size + 4:
            return None
        reply, self._reply = self._reply[4:], bytearray()
        return bytes(reply)

    def _add(self, chunk: bytes) -> None:
        self._reply += chunk
        if len(self._reply) > MAX_REPLY + CHUNK:
            raise Garbled("a flood of replies")

    def _keep(self, chunk: bytes) -> None:
        self.printed += chunk[: self.room]
        if len(chunk) > self.room:
            self.room = 0
            raise Flooded
        self.room -= len(chunk)

    def exchange(self, call: bytes, left: Left) -> bytes:
        """Send the call and return the bytes of its reply."""
        raise NotImplementedError

    def drain(self, seconds: float) -> None:
        """Keep what is still printed by a child that ends, until it has ended or the seconds are over."""
        raise NotImplementedError

    def close(self) -> None:
        for file in self._files:
            file.close()


class PolledPipes(Pipes):
    """The pipes of a child on a POSIX system."""

    def __init__(self, calls: IO[bytes], replies: IO[bytes], printed: IO[bytes]) -> None:
        super().__init__(calls, replies, printed)
        self._to_read, self._to_write = select.poll(), select.poll()
        for pipe in (self.calls, self.replies, self.printing):
            os.set_blocking(pipe, False)
            self._to_write.register(pipe, select.POLLOUT if pipe == self.calls else select.POLLIN)
            if pipe != self.calls:
                self._to_read.register(pipe, select.POLLIN)

    def exchange(self, call: bytes, left: Left) -> bytes:
        unsent = memoryview(call)
        while unsent:
            try:
                unsent = unsent[os.write(self.calls, unsent) :]
            except BlockingIOError:
                self._wait(self._to_write, left)
            except BrokenPipeError:
                raise Closed from None
        while (reply := self._take()) is None:
            self._wait(self._to_read, left)
        return reply

    def drain(self, seconds: float) -> None:
        left = lasting(seconds)
        self._forget(self.replies)
        with contextlib.suppress(Overdue, Flooded):
            while self.printing in self._open:
                self._wait(self._to_read, left)

    def _wait(self, poll: select.poll, left: Left) -> None:
        ready = [pipe for pipe, _ in poll.poll(max(0.0, left()) * 1000)]
        if not ready and left() <= 0:
            raise Overdue
        if self.printing in ready:
            if chunk := os.read(self.printing, CHUNK):
                self._keep(chunk)
            else:
                self._forget(self.printing)
        if self.replies in ready:
            if chunk := os.read(self.replies, CHUNK):
                self._add(chunk)
            else:
                self._forget(self.replies)
                raise Closed

    def _forget(self, pipe: int) -> None:
        if pipe in self._open:
            self._open.remove(pipe)
            for poll in (self._to_read, self._to_write):
                poll.unregister(pipe)


class ThreadedPipes(Pipes):
    """The same with a thread for each pipe that is read; `kill` ends a child that does not read a long call."""

    def __init__(self, calls: IO[bytes], replies: IO[bytes], printed: IO[bytes], kill: Callable[[], None]) -> None:
        super().__init__(calls, replies, printed)
        self._kill = kill
        self._chunks: Queue[tuple[int, bytes]] = Queue(maxsize=8)
        for pipe in self._open:
            threading.Thread(target=self._pump, args=(pipe,), daemon=True).start()

    def _pump(self, pipe: int) -> None:
        chunk = b"-"
        while chunk:
            try:
                chunk = os.read(pipe, CHUNK)
            except OSError:
                chunk = b""
            self._chunks.put((pipe, chunk))

    def exchange(self, call: bytes, left: Left) -> bytes:
        watchdog = threading.Timer(left(), self._kill) if len(call) > SHORT else None
        if watchdog:
            watchdog.start()
        try:
            unsent = memoryview(call)
            while unsent:
                unsent = unsent[os.write(self.calls, unsent) :]
        except OSError:
            raise (Closed if left() > 0 else Overdue) from None
        finally:
            if watchdog:
                watchdog.cancel()
        while (reply := self._take()) is None:
            if self.replies not in self._open:
                raise Closed
            self._wait(left)
        return reply

    def drain(self, seconds: float) -> None:
        left = lasting(seconds)
        with contextlib.suppress(Overdue, Flooded, Garbled):
            while self._open:
                self._wait(left)

    def _wait(self, left: Left) -> None:
        try:
            pipe, chunk = self._chunks.get(timeout=max(0.0, left()))
        except Empty:
            if left() <= 0:
                raise Overdue from None
            return
        if not chunk:
            self._open.remove(pipe)
        elif pipe == self.printing:
            self._keep(chunk)
        else:
            self._add(chunk)

    def close(self) -> None:
        left = lasting(1.0)
        while self._open:  # a pipe that is being read cannot be closed; the threads end when the child has ended
            with contextlib.suppress(Flooded, Garbled):
                try:
                    self._wait(left)
                except Overdue:
                    self._files[0].close()
                    return
        super().close()
