# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Each case of a fault matrix, judged over its seeds against the goals."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from rfly_lab.runs.fault_matrix import (
    HELPLESS,
    MOST_ABOVE,
    MOST_ACROSS,
    MOST_NAMING,
    MOST_NEES,
    MOST_SINK,
    UNSEEN,
    CaseResult,
    Outcome,
)


class Verdict(NamedTuple):
    """Worst figure of a case over its seeds, and whether it meets its goal."""

    text: str
    is_met: bool


def counted(count: int, word: str) -> str:
    """Return a number of things in words."""
    return f"{count} {word}{'' if count == 1 else 's'}"


def by_case(results: Sequence[CaseResult]) -> dict[tuple[str, str, str], list[CaseResult]]:
    """Return the results of all seeds by part, kind and mode, in their order."""
    cases: dict[tuple[str, str, str], list[CaseResult]] = {}
    for result in results:
        cases.setdefault((result.part, result.kind, result.mode), []).append(result)
    return cases


def verdicts_of(rows: Sequence[CaseResult]) -> dict[str, Verdict]:
    """Return the figures of one case's seeds with their verdicts, by name."""
    lost = sum(row.outcome == Outcome.LOST.value for row in rows)
    counts = Counter(row.outcome for row in rows)
    outcome = ", ".join(
        f"{count} {each.value}" for each in Outcome if (count := counts[each.value])
    )
    times = [row.named_after_s for row in rows]
    named = sum(not math.isnan(time) for time in times)
    is_named = named == len(rows) and max(times) <= MOST_NAMING
    naming = "never" if not named else f"{max(t for t in times if not math.isnan(t)):.2f}"
    if 0 < named < len(rows):
        naming += f" ({named} of {len(rows)})"
    if not named and (rows[0].part, rows[0].kind) in UNSEEN:
        naming = "not to be told"
        is_named = True

    # a vehicle that says that it is lost may be off
    trusted = [row.nees_95 for row in rows if not row.said_lost]
    said = " (says it is lost)" if len(trusted) < len(rows) else ""
    nees = [row.nees_95 for row in rows]
    nees_is_met = all(value < MOST_NEES for value in trusted)

    # what physics does not allow
    ending = Verdict(outcome, not lost)
    sink = _worst([row.sink_mps for row in rows], MOST_SINK, "{:.2f}")
    across = _worst([row.across_mps for row in rows], MOST_ACROSS, "{:.2f}")
    if (rows[0].part, rows[0].kind, rows[0].mode) in HELPLESS:
        ending = Verdict(f"{outcome} (no help)", True)
        sink = Verdict(sink.text, True)
        across = Verdict(across.text, True)
    return {
        "named": Verdict(naming, is_named),
        "outcome": ending,
        "sink": sink,
        "across": across,
        "above": _worst([row.above_m for row in rows], MOST_ABOVE, "{:.1f}"),
        "nees": Verdict(_worst(nees, MOST_NEES, "{:.3g}").text + said, nees_is_met),
    }


def _worst(values: Sequence[float], limit: float, form: str) -> Verdict:
    """Return the largest of the values that there are."""
    known = [value for value in values if not math.isnan(value)]
    if not known:
        return Verdict("–", True)
    return Verdict(form.format(max(known)), max(known) < limit)
