"""Texts of others on their way to a terminal; progress of long work on stderr."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager


def printable(text: str) -> str:
    r"""What a terminal would act on is spelt out: escape sequences (\x1b), line ends, marks that
    turn the direction.
    """
    return (
        text
        if text.isprintable()
        else "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
    )


@contextmanager
def progress_bar(text: str) -> Iterator[Callable[[float], None]]:
    """A progress bar on stderr that is given shares, 0 … 1; it swings to and fro until the first."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda share: None
        return
    with Progress(console=console, transient=True) as bar:
        task = bar.add_task(text, total=None)
        yield lambda share: bar.update(task, total=1.0, completed=share)
