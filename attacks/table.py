# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Results of attacks, and the table of them with the machine that they ran on."""

from __future__ import annotations

import math
import os
import platform
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.markup import escape
from rich.table import Table

SHOWN_FAILURES = 5
"""Failures of each attack that are shown below the table."""


@dataclass(frozen=True)
class Result:
    """Result of one attack: the number of tries, and what went wrong."""

    name: str
    tried: int
    failed: int
    largest_memory_mb: float | None
    """Largest resident memory of the attacked process, 10^6 bytes; None if none was watched."""
    longest_stall_s: float | None
    """Longest time without a sign of life or an answer, s; None if none was due."""
    failures: tuple[str, ...]
    """Failures, some with how to reproduce them: what was tried, and the outcome."""
    most_stall_s: float = math.inf
    """Longest stall that an otherwise idle machine may show, s.

    It is judged by `python -m attacks` alone: the tests run beside others.
    """

    @property
    def is_slow(self) -> bool:
        """Whether others had to wait for longer than `most_stall_s`."""
        return self.longest_stall_s is not None and self.longest_stall_s > self.most_stall_s


def print_table(results: Sequence[Result], console: Console) -> None:
    """Print one row for each attack, and the failures below the table."""
    table = Table(title="What was thrown at rfly_suite")
    for heading in ("attack", "tried", "failed", "largest memory", "longest stall"):
        table.add_column(
            heading, justify="left" if heading == "attack" else "right", overflow="fold"
        )

    for result in results:
        stall = "" if result.longest_stall_s is None else f"{result.longest_stall_s:.2f} s"
        table.add_row(
            escape(result.name),
            f"{result.tried:,}",
            f"[red]{result.failed:,}[/]" if result.failed else "0",
            "" if result.largest_memory_mb is None else f"{result.largest_memory_mb:,.0f} MB",
            f"[red]{stall}[/]" if result.is_slow else stall,
        )

    console.print(table)
    for result in results:
        for failure in result.failures[:SHOWN_FAILURES]:
            console.print(
                f"{result.name}: {failure}", markup=False, highlight=False, soft_wrap=True
            )
        if len(result.failures) > SHOWN_FAILURES:
            console.print(
                f"{escape(result.name)}: and {len(result.failures) - SHOWN_FAILURES} more"
            )


def largest(values: Iterable[float | None]) -> float | None:
    """Return the largest measured value; None if nothing was measured."""
    return max((value for value in values if value is not None), default=None)


def machine_line() -> str:
    """Return Python, system, cores and the load of the last minute, which affects the times."""
    load = f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown"
    system = f"{platform.system()} {platform.machine()}"
    return f"Python {platform.python_version()}, {system}, {os.cpu_count()} cores, load {load}"
