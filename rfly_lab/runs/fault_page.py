# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Page of a fault matrix: each case over its seeds, judged against the goals."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from rfly_common.files import open_regular
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

MAX_TITLE_BYTES = 100
"""Bytes of a file in which the title of a page stands."""


def _reasons(reasons: Mapping[tuple[str, ...], str]) -> str:
    """Return a list of faults, by part, kind and mode, with their reasons."""
    return "\n".join(f"- {', '.join(fault)}: {why}" for fault, why in reasons.items())


_INTRODUCTION = f"""# Fault matrix

What the land-air vehicle does when one of its parts fails. Each row is one fault in one mode, flown
or driven by estimates in light wind on level ground over several seeds of wind and noise. Speeds,
height and NEES are the worst of all seeds. The goals:

- the position's NEES (normalised estimation error squared) is below {MOST_NEES:g} at the 95th
  percentile after the fault, or the vehicle says that it is lost (mode ABORT);
- the true height is never more than {MOST_ABOVE:g} m above the commanded one;
- it touches down with less than {MOST_SINK:g} m/s downwards and {MOST_ACROSS:g} m/s across;
- the part is named within {MOST_NAMING:g} s.

A cell in bold with "missed" misses its goal. *Reached* means that the mission ended as without the
fault, *landed* that the vehicle stands on its wheels elsewhere or earlier, and *lost* that it
crashed or was not down at the end of the run.

What physics does not allow is no goal, and the cell says *no help*:

{_reasons(HELPLESS)}

Nor is a name where nothing aboard tells the fault from a sound part (*not to be told*):

{_reasons(UNSEEN)}

Load cells that are stuck in the air are right until the next touch-down: their time counts from
there.

"""

_HEADER = (
    "| part | kind | mode | fault | reaction | named after, s | named as | outcome | down, m/s "
    "| across, m/s | above, m | NEES 95 % |"
)


class Verdict(NamedTuple):
    """Worst figure of a case over its seeds, and whether it meets its goal."""

    text: str
    is_met: bool

    def cell(self) -> str:
        """Return the cell of the page."""
        return self.text if self.is_met else f"**{self.text} missed**"


def matrix_page(results: Sequence[CaseResult], command: str, version: str) -> str:
    """Return the page of results in the order of the matrix.

    `command`: command line that made them; `version`: that of this software, in words.
    """
    cases = by_case(results)
    seeds = {len(rows) for rows in cases.values()}
    least, most = min(seeds, default=0), max(seeds, default=0)
    over = counted(most, "seed") if least == most else f"{least} to {most} seeds"
    verdicts = [verdicts_of(rows) for rows in cases.values()]
    missed = sum(not all(v.is_met for v in each.values()) for each in verdicts)

    made = (
        f"Made by `{command}` with {version}: {counted(len(cases), 'case')} over {over}. "
        f"{counted(missed, 'case')} {'misses' if missed == 1 else 'miss'} a goal.\n\n"
    )
    return _INTRODUCTION + made + "\n".join(_table(cases)) + "\n"


def counted(count: int, word: str) -> str:
    """Return a number of things in words."""
    return f"{count} {word}{'' if count == 1 else 's'}"


def is_matrix_page(path: Path) -> bool:
    """Return whether a file is a page of a fault matrix, by its title."""
    try:
        with open_regular(path) as file:
            first_line = file.readline(MAX_TITLE_BYTES)
    except OSError:
        return False
    return first_line.decode(errors="replace").strip() == _INTRODUCTION.partition("\n")[0]


def by_case(results: Sequence[CaseResult]) -> dict[tuple[str, str, str], list[CaseResult]]:
    """Return the results of all seeds by part, kind and mode, in their order."""
    cases: dict[tuple[str, str, str], list[CaseResult]] = {}
    for result in results:
        cases.setdefault((result.part, result.kind, result.mode), []).append(result)
    return cases


def _table(cases: Mapping[tuple[str, str, str], list[CaseResult]]) -> Iterator[str]:
    """Yield the lines of the table."""
    yield _HEADER
    yield "| --- " * _HEADER.count(" | ") + "| --- |"
    for (part, kind, mode), rows in cases.items():
        verdicts = {name: verdict.cell() for name, verdict in verdicts_of(rows).items()}
        cells = [
            f"`{part}`",
            kind,
            mode,
            _value(rows[0]),
            _most_frequent([row.reaction for row in rows]),
            verdicts["named"],
            _most_frequent([row.named for row in rows]),
            verdicts["outcome"],
            verdicts["sink"],
            verdicts["across"],
            verdicts["above"],
            verdicts["nees"],
        ]
        yield f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"


def _value(row: CaseResult) -> str:
    """Return quantity and value of a fault in words."""
    return row.fault.removeprefix(f"{row.part} is {row.kind}").strip(" :")


def _most_frequent(texts: Sequence[str]) -> str:
    """Return the most frequent text with its share, if there are others."""
    text, count = Counter(texts).most_common(1)[0]
    return text if count == len(texts) or not text else f"{text} ({count} of {len(texts)})"


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
    if (rows[0].part, rows[0].kind, rows[0].mode) in HELPLESS:
        ending = Verdict(f"{outcome} (no help)", True)
        sink = Verdict(sink.text, True)
    return {
        "named": Verdict(naming, is_named),
        "outcome": ending,
        "sink": sink,
        "across": _worst([row.across_mps for row in rows], MOST_ACROSS, "{:.2f}"),
        "above": _worst([row.above_m for row in rows], MOST_ABOVE, "{:.1f}"),
        "nees": Verdict(_worst(nees, MOST_NEES, "{:.3g}").text + said, nees_is_met),
    }


def _worst(values: Sequence[float], limit: float, form: str) -> Verdict:
    """Return the largest of the values that there are."""
    known = [value for value in values if not math.isnan(value)]
    if not known:
        return Verdict("–", True)
    return Verdict(form.format(max(known)), max(known) < limit)
