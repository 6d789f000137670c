# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Goals and judged cases of docs/reference/fault-matrix.md, from the table of its runs.

docs/reference_pages.py appends them to the page.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from rfly_lab.runs.fault_matrix import (
    HELPLESS,
    MOST_ABOVE,
    MOST_ACROSS,
    MOST_NAMING,
    MOST_NEES,
    MOST_SINK,
    UNSEEN,
    CaseResult,
    read_matrix,
)
from rfly_lab.runs.fault_verdicts import Verdict, by_case, counted, verdicts_of

ROOT = Path(__file__).resolve().parents[1]
TABLE = "docs/reference/fault-matrix.csv"


def _reasons(reasons: Mapping[tuple[str, ...], str]) -> str:
    """Return a list of faults, by part, kind and mode, with their reasons."""
    return "\n".join(f"- {', '.join(fault)}: {why}" for fault, why in reasons.items())


_INTRODUCTION = f"""What the land-air vehicle does when one of its parts fails. Each row is
one fault in one mode, flown or driven by estimates in light wind on level ground over several
seeds of wind and noise. Speeds, height and NEES are the worst of all seeds. The goals:

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


def fault_matrix_page() -> str:
    """Return the generated part of the page."""
    return matrix_page(read_matrix(ROOT / TABLE), f"rfly sim faults --out {TABLE}")


def matrix_page(results: Sequence[CaseResult], command: str) -> str:
    """Return goals and judged cases of results, in the order of the matrix.

    `command`: command line that made them.
    """
    cases = by_case(results)
    seeds = {len(rows) for rows in cases.values()}
    least, most = min(seeds, default=0), max(seeds, default=0)
    over = counted(most, "seed") if least == most else f"{least} to {most} seeds"
    verdicts = [verdicts_of(rows) for rows in cases.values()]
    missed = sum(not all(v.is_met for v in each.values()) for each in verdicts)

    made = (
        f"Made by `{command}`: {counted(len(cases), 'case')} over {over}. "
        f"{counted(missed, 'case')} {'misses' if missed == 1 else 'miss'} a goal.\n\n"
    )
    return _INTRODUCTION + made + "\n".join(_table(cases)) + "\n"


def _table(cases: Mapping[tuple[str, str, str], list[CaseResult]]) -> Iterator[str]:
    """Yield the lines of the table."""
    yield _HEADER
    yield "| --- " * _HEADER.count(" | ") + "| --- |"
    for (part, kind, mode), rows in cases.items():
        verdicts = {name: _cell(verdict) for name, verdict in verdicts_of(rows).items()}
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


def _cell(verdict: Verdict) -> str:
    return verdict.text if verdict.is_met else f"**{verdict.text} missed**"


def _value(row: CaseResult) -> str:
    """Return quantity and value of a fault in words."""
    return row.fault.removeprefix(f"{row.part} is {row.kind}").strip(" :")


def _most_frequent(texts: Sequence[str]) -> str:
    """Return the most frequent text with its share, if there are others."""
    text, count = Counter(texts).most_common(1)[0]
    return text if count == len(texts) or not text else f"{text} ({count} of {len(texts)})"
