# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The thread that reads sockets: UDP ports, and connections that their owner serves.

One thread waits for all sockets of its owner. It reads at most `_BATCH` datagrams of one socket
before the next has its turn, and no more than its `ReadBudget` in the long run: more waits in the
system's buffer, and is dropped there when that is full. A flood therefore neither grows the memory
nor starves the rest of the process. An error in a handler costs one datagram (`LoopThread`).
"""

from __future__ import annotations

import contextlib
import errno
import selectors
import socket
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from rfly_common.files import Closing
from rfly_common.sockets.udp_sockets import AllowList, dropped_by_system
from rfly_common.threads.loop_thread import LoopThread

LARGEST = 65_536
"""Longest datagram there is, bytes."""
_BATCH = 64
"""Datagrams of one socket that are read before the next socket's turn."""
_AFTER_ERROR_S = 0.01
"""Pause after a failed read, s: one that repeats for ever must not keep a processor busy."""
_SHORTEST_PAUSE_S = 0.004
_LONGEST_PAUSE_S = 0.1
_TOO_LONG = (errno.EMSGSIZE, 10040)
"""Errors by which Windows reports a datagram that is longer than the buffer."""

Address = tuple[str, int]
"""Host and port of a sender."""
Take = Callable[[bytes, Address], object]
"""Function that takes a datagram and its sender, in the reading thread; it must not wait."""
Serve = Callable[[Any, int], object]
"""Function that serves a ready socket; it gets the selector's events too."""


class ReadBudget:
    """Bound on the reading in the long run: `rate` a second, after `burst` at once.

    Each read costs `per_read`, and `per_byte` for each of its bytes.
    """

    def __init__(
        self, rate: float, burst: float, per_read: float = 1.0, per_byte: float = 0.0
    ) -> None:
        self.rate = rate
        self.burst = burst
        self.per_read = per_read
        self.per_byte = per_byte
        self.left = burst
        self._earned_at_s = time.monotonic()

    def spend(self, size: int, reads: int = 1) -> None:
        """Pay for reads of `size` bytes together."""
        self.left -= reads * self.per_read + size * self.per_byte

    def pause_s(self) -> float:
        """Add what was earned since the last call; return the pause that is due, s."""
        now_s = time.monotonic()
        self.left = min(self.burst, self.left + (now_s - self._earned_at_s) * self.rate)
        self._earned_at_s = now_s
        if self.left >= 0.0:
            return 0.0
        return min(max(-self.left / self.rate, _SHORTEST_PAUSE_S), _LONGEST_PAUSE_S)


class SocketThread(Closing):
    """Thread that serves its sockets from `start` to `close`; then they are closed.

    - allow: addresses or networks whose datagrams are read; empty = all.
    - largest: longest datagram that is read, bytes; a longer one is cut to this length.
    - budget: bound on reading; None = no bound.
    - tick: called in the thread every `tick_s`, with the time on the steady clock, whether or not
      something arrives.

    Raises ConfigError for an entry of `allow` that is no address.
    """

    def __init__(
        self,
        name: str,
        *,
        allow: Sequence[str] = (),
        largest: int = LARGEST,
        budget: ReadBudget | None = None,
        tick: Callable[[float], object] | None = None,
        tick_s: float = 0.5,
    ) -> None:
        self.received = 0
        """Datagrams that were read."""
        self.not_allowed = 0
        """Datagrams of senders that are not on the list."""
        self.too_long = 0
        """Datagrams that the system refused to cut (Windows)."""
        self.read_errors = 0
        """Failed reads."""

        self.budget = budget
        self._allow = AllowList(allow)
        self._view = memoryview(bytearray(largest))
        self._tick = tick
        self._tick_s = tick_s
        self._next_tick_s = time.monotonic() + tick_s
        self._failed = False
        self._stop = threading.Event()
        self._udp: list[socket.socket] = []
        self._dropped_before = 0

        self._selector = selectors.DefaultSelector()
        self._woken, self._wake = socket.socketpair()
        for end in (self._woken, self._wake):
            end.setblocking(False)
        self.add(self._woken, lambda woken, _events: woken.recv(4096))
        self._thread = LoopThread(self._pass, name)

    def start(self) -> None:
        """Begin to read."""
        self._thread.start()

    def stop(self) -> None:
        """Stop reading, at once."""
        self._stop.set()
        self.wake()
        if self._thread.is_alive():
            self._thread.join()

    def close(self) -> None:
        """Stop reading and close the sockets, at once."""
        self.stop()
        self._dropped_before = self.dropped
        self._udp.clear()
        for key in list((self._selector.get_map() or {}).values()):
            key.fileobj.close()  # type: ignore[union-attr]
        self._wake.close()
        self._selector.close()

    def wake(self) -> None:
        """End the wait of the thread; any thread may call it."""
        with contextlib.suppress(OSError):  # awake already, or closed
            self._wake.send(b"w")

    def add(self, sock: Any, serve: Serve, events: int = selectors.EVENT_READ) -> None:
        """Call `serve` whenever the socket is ready; any thread may call it."""
        self._selector.register(sock, events, serve)
        self.wake()

    def watch(self, sock: Any, events: int) -> None:
        """Wait for these events of a socket from now on."""
        self._selector.modify(sock, events, self._selector.get_key(sock).data)

    def remove(self, sock: Any) -> None:
        """Forget a socket, which its owner closes."""
        self._selector.unregister(sock)

    def receive(
        self, sock: socket.socket, take: Take, batch_taken: Callable[[], object] | None = None
    ) -> None:
        """Read the datagrams of a UDP socket; call `batch_taken` after each batch of them."""
        self._udp.append(sock)
        self.add(sock, partial(self._read_batch, take, batch_taken))

    @property
    def dropped(self) -> int:
        """Datagrams that full buffers have cost, where the system counts them (Linux)."""
        return self._dropped_before + sum(map(dropped_by_system, self._udp))

    def _pass(self) -> bool:
        """Serve what is ready; return False at the end."""
        timeout_s = None
        if self._tick is not None:
            timeout_s = max(0.0, self._next_tick_s - time.monotonic())
        for key, events in self._selector.select(timeout_s):
            if self._stop.is_set():
                return False
            key.data(key.fileobj, events)

        now_s = time.monotonic()
        if self._tick is not None and now_s >= self._next_tick_s:
            self._next_tick_s = now_s + self._tick_s
            self._tick(now_s)

        # a flood waits in the system's buffer, or is lost there
        pause_s = self.budget.pause_s() if self.budget is not None else 0.0
        if self._failed:
            pause_s = max(pause_s, _AFTER_ERROR_S)
            self._failed = False
        if pause_s:
            self._stop.wait(pause_s)
        return not self._stop.is_set()

    def _read_batch(
        self,
        take: Take,
        batch_taken: Callable[[], object] | None,
        sock: socket.socket,
        _events: int,
    ) -> None:
        """Hand on what waits at a UDP socket."""
        view = self._view
        allow = self._allow
        receive = sock.recvfrom_into
        count = 0
        total = 0
        try:
            for _ in range(_BATCH):
                try:
                    size, sender = receive(view)
                except (BlockingIOError, InterruptedError):
                    break
                except OSError as error:
                    if error.errno in _TOO_LONG:
                        self.too_long += 1
                        continue
                    self.read_errors += 1
                    self._failed = True
                    break

                count += 1
                total += size
                if allow and not allow.allows(sender[0]):
                    self.not_allowed += 1
                else:
                    take(bytes(view[:size]), sender)
        finally:
            self.received += count
            if self.budget is not None:
                self.budget.spend(total, count)

        if batch_taken is not None:
            batch_taken()
