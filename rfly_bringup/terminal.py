# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Foreign texts for a terminal, and the progress of long work on stderr."""

from __future__ import annotations

import functools
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

COMPILING = "compiling kernels, once for this version"
"""What is shown while kernels are compiled."""
_MOMENT = 2.0
"""Work that takes no longer, s, needs no word."""
_NOW_AND_THEN = 5.0
"""Time between two lines about long work, s."""


@functools.cache
def say_compiling() -> None:
    """Print one line on stderr, once in a process, that it compiles kernels."""
    print(f"rfly: {COMPILING}", file=sys.stderr, flush=True)


def printable(text: str) -> str:
    r"""Return a text with everything spelt out that a terminal would act on.

    That is escape sequences (\x1b), line ends, and marks that turn the direction.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def time_left(share: float, elapsed_s: float) -> str:
    """Return ", about 40 s left" for work that keeps its pace; "" before it began."""
    if share <= 0.0:
        return ""
    left_s = elapsed_s * (1.0 / share - 1.0)
    left = f"{left_s:.0f} s" if left_s < 90.0 else f"{left_s / 60.0:.0f} min"
    return f", about {left} left"


@contextmanager
def progress_bar(
    text: str, *, says: bool = False, clock: Callable[[], float] = time.monotonic
) -> Iterator[Callable[[float], None]]:
    """Show a progress bar on stderr, and yield a function that takes the share, 0 … 1.

    says: where stderr is no terminal, print a line now and then if the work takes longer than a
    moment.
    """
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    if not console.is_terminal:
        begun = clock()
        due = begun + _MOMENT

        def say(share: float) -> None:
            nonlocal due
            now = clock()
            if says and now >= due:
                due = now + _NOW_AND_THEN
                left = time_left(share, now - begun)
                print(f"rfly: {text}: {share:.0%}{left}", file=sys.stderr, flush=True)

        yield say
        return

    with Progress(console=console, transient=True) as bar:
        task = bar.add_task(text, total=None)
        yield lambda share: bar.update(task, total=1.0, completed=share)
