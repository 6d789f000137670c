# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Notice of each kernel that is compiled, for programs that show how far they are.

Without numba, as commands that may need no kernel at all listen too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

Listener = Callable[[str], None]
"""Function that takes the name of a kernel."""

_listeners: list[Listener] = []


@contextmanager
def on_compile(listener: Listener) -> Iterator[None]:
    """Call `listener` before each kernel that this process compiles, in place of an outer one."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


def tell(name: str) -> None:
    """Call the innermost listener, if there is one."""
    if _listeners:
        _listeners[-1](name)
