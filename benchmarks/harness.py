# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Rows of the benchmark table: both sides compute the same, take turns on the clock, and are judged
by their ratio.

A module `benchmarks/bench_NAME.py` offers `rows()`, a generator of `Row`. Absolute times depend on
the machine and on what else runs there; the ratio of two sides that were timed in turns in one
process hardly does.
"""

from __future__ import annotations

import gc
import math
import os
import statistics
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from rich.console import Console
from rich.table import Table

from benchmarks.budgets import SCALED

DISAGREES = "DISAGREES"
SHORT_VARIABLE = "RFLY_BENCH_SHORT"
"""Environment variable, 1 for a short run, which shows that benchmarks run, not how fast."""
SHORT_S = 2.0


def is_short() -> bool:
    """Return whether this is a short run."""
    return os.environ.get(SHORT_VARIABLE) == "1"


def lasting(variable: str, usual_s: float, short_s: float = SHORT_S) -> float:
    """Return how long a benchmark with nodes lasts, s, which an environment variable may say."""
    return float(os.environ.get(variable, short_s if is_short() else usual_s))


@dataclass(frozen=True)
class Row:
    """One comparison.

    `kind` "faster": peer / ours should be at least the target. "at most": ours / peer should not
    exceed it.
    """

    name: str
    ours_s: float
    """Median, in `unit` (seconds unless stated otherwise)."""
    peer_s: float
    peer_name: str
    target_ratio: float
    stretch_ratio: float | None = None
    agree: str = ""
    """What was compared before the clock ran and how well it agreed (see `agreement`).

    Empty or DISAGREES… makes the row invalid.
    """
    note: str = ""
    kind: Literal["faster", "at most"] = "faster"
    unit: str = "s"
    failure: str = ""
    """Error that ended the benchmark; its times are then NaN."""

    @classmethod
    def failed(cls, name: str, error: Exception) -> Row:
        """Return the row of a benchmark that an error ended."""
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        return cls(name, math.nan, math.nan, "–", math.nan, failure=reason)

    @property
    def ratio(self) -> float:
        """Ratio peer / ours for "faster", ours / peer for "at most"."""
        return self.peer_s / self.ours_s if self.kind == "faster" else self.ours_s / self.peer_s

    def meets(self, ratio: float) -> bool:
        """Return whether the ratio is good enough for this target."""
        return self.ratio >= ratio if self.kind == "faster" else self.ratio <= ratio

    @property
    def verdict(self) -> str:
        """Verdict: met, met, stretch too, missed; failed after an error, invalid if the sides were
        not shown to agree.
        """
        if self.failure:
            return "failed"
        if not self.agree or self.agree.startswith(DISAGREES):
            return "invalid"
        if not self.meets(self.target_ratio):
            return "missed"
        if self.stretch_ratio is None or not self.meets(self.stretch_ratio):
            return "met"
        return "met, stretch too"

    @property
    def target(self) -> str:
        """Target as text, with the stretch target in brackets."""
        if self.failure:
            return "–"
        sign = "≥" if self.kind == "faster" else "≤"
        stretch = "" if self.stretch_ratio is None else f" ({self.stretch_ratio:g})"
        return f"{sign} {self.target_ratio:g}{stretch}"


def agreement(ours: ArrayLike, peer: ArrayLike, tolerance: float, unit: str = "m") -> str:
    """Return the text for `Row.agree`: the largest difference of two results.

    It begins with DISAGREES if the difference exceeds the tolerance.
    """
    a = np.asarray(ours, dtype=float)
    b = np.asarray(peer, dtype=float)
    if a.shape != b.shape:
        return f"{DISAGREES}: shapes {a.shape} and {b.shape}"

    # a NaN is never <= and so disagrees
    worst = float(np.max(np.abs(a - b), initial=0.0))
    if worst <= tolerance:
        return f"max |Δ| {worst:.1e} {unit} ≤ {tolerance:g}"
    return f"{DISAGREES}: max |Δ| {worst:.3g} {unit} > {tolerance:g}"


def same(equal: bool, what: str) -> str:
    """Return the text for `Row.agree` if equality is exact: `same(a == b, "packets, byte by
    byte")`.
    """
    return f"equal: {what}" if equal else f"{DISAGREES}: {what}"


def measure(
    ours: Callable[[], Any],
    peer: Callable[[], Any],
    repeat: int = 7,
    *,
    ours_calls: int = 1,
    peer_calls: int = 1,
    warm_ups: int = 1,
    clock: Callable[[], float] = time.perf_counter,
) -> tuple[float, float]:
    """Return the median seconds of one call of either side, timed in turns (A B A B …).

    `repeat`: timings of each side. `ours_calls`, `peer_calls`: calls in one timing, if one call is
    too quick for the clock. `warm_ups`: untimed turns. `clock`: `time.process_time` for sides that
    only compute on one core, so that other processes do not count.
    """
    if is_short():
        repeat = ours_calls = peer_calls = 1

    times: tuple[list[float], list[float]] = ([], [])
    sides = ((ours, ours_calls), (peer, peer_calls))
    was_enabled = gc.isenabled()
    gc.collect()
    gc.disable()

    try:
        for turn in range(-warm_ups, repeat):
            for side, (function, calls) in zip(times, sides, strict=True):
                start = clock()
                for _ in range(calls):
                    function()
                elapsed = clock() - start
                if turn >= 0:
                    side.append(elapsed / calls)
    finally:
        if was_enabled:
            gc.enable()

    return statistics.median(times[0]), statistics.median(times[1])


def readable(value: float, unit: str) -> str:
    """Return a value with a prefix: 1.25e-6 s -> 1.25 µs; bytes in MB; other units as they are."""
    if math.isnan(value):
        return "–"
    if unit == "B":
        return f"{value / 1e6:.1f} MB"
    if unit != "s":
        return f"{value:.4g} {unit}"
    for scale, prefix in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if value >= scale:
            return f"{value / scale:.3g} {prefix}"
    return f"{value / 1e-9:.3g} ns"


def print_table(rows: Iterable[Row], console: Console | None = None) -> None:
    """Print one table: times, ratio, target (stretch target in brackets) and verdict."""
    table = Table(
        title="rfly_suite and its peers",
        caption="ratio: peer / ours where the target is ≥, ours / peer where it is ≤",
    )
    for heading, justify in (
        ("what", "left"),
        ("ours", "right"),
        ("peer", "right"),
        ("peer is", "left"),
        ("ratio", "right"),
        ("target", "right"),
        ("", "left"),
        ("agreement, note", "left"),
    ):
        table.add_column(heading, justify=justify, overflow="fold")  # type: ignore[arg-type]

    colours = {
        "met": "green",
        "met, stretch too": "green",
        "missed": "yellow",
        "invalid": "red",
        "failed": "red",
    }
    for row in rows:
        agree = row.failure or row.agree or "not compared"
        remark = "; ".join(part for part in (agree, row.note) if part)
        table.add_row(
            row.name,
            readable(row.ours_s, row.unit),
            readable(row.peer_s, row.unit),
            row.peer_name,
            "–" if row.failure else f"{row.ratio:.3g}",
            row.target,
            f"[{colours[row.verdict]}]{row.verdict}[/]",
            remark,
        )

    (console or Console()).print(table)


def markdown_table(rows: Iterable[Row]) -> str:
    """Return the rows as a table in Markdown, without times: those depend on the machine.

    A ratio without a word is met.
    """
    lines = ["| what | compared with | ratio | target |", "| --- | --- | --- | --- |"]
    for row in rows:
        ratio = f"failed: {row.failure}" if row.failure else f"{row.ratio:,.3g}"
        if row.verdict in ("missed", "invalid"):
            ratio += f" **{row.verdict}**"
        cells = (row.name, row.peer_name.removesuffix(f", {SCALED}"), ratio, row.target)
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines)
