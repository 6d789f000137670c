# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""`python -m benchmarks [NAME ...]`: run all `bench_*.py`, or the named ones, and print one table.

The exit code is 1 if a benchmark failed, or if two sides did not compute the same. Missed targets
show in the table only.
"""

from __future__ import annotations

import argparse
import importlib
import os
import platform
import sys
import time
import traceback
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import numpy as np
from rich.console import Console

from benchmarks.harness import SHORT_VARIABLE, Row, markdown_table, print_table

PAGE = Path(__file__).parents[1] / "docs" / "benchmarks.md"
BEGIN = "<!-- begin of the table, written by make bench WRITE=1 -->"
END = "<!-- end of the table -->"


def main() -> int:
    """Run the named benchmarks, or all, and print their table."""
    known = sorted(
        path.stem.removeprefix("bench_") for path in Path(__file__).parent.glob("bench_*.py")
    )
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="Time hot paths and their peers."
    )
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"which: {', '.join(known)}; all by default"
    )
    parser.add_argument(
        "--write", action="store_true", help=f"write the table of all into {PAGE.name}, too"
    )
    parser.add_argument(
        "--short", action="store_true", help="time each side once: does every benchmark run?"
    )
    options = parser.parse_args()
    names = options.names
    if options.write and (names or options.short):
        parser.error(
            "--write: the page has the whole table; neither name benchmarks nor say --short"
        )
    if options.short:
        os.environ[SHORT_VARIABLE] = "1"
    unknown = sorted(set(names) - set(known))
    if unknown:
        parser.error(f"no such benchmark: {', '.join(unknown)}; known: {', '.join(known)}")

    # the rows
    progress = Console(stderr=True)
    start = time.perf_counter()
    rows: list[Row] = []
    for name in names or known:
        begin = time.perf_counter()
        for row in rows_of(name):
            progress.print(f"{name}: {row.name} [dim]{row.ratio:.3g} {row.verdict}[/]")
            rows.append(row)
        progress.print(f"{name}: [dim]{time.perf_counter() - begin:.0f} s[/]")

    # the table
    # 160 columns without a terminal, so that a log holds the table unfolded
    print_table(rows, Console() if sys.stdout.isatty() else Console(width=160))

    # the sum
    verdicts = [row.verdict for row in rows]
    met = sum(verdict.startswith("met") for verdict in verdicts)
    missed = verdicts.count("missed")
    invalid = verdicts.count("invalid")
    failed = verdicts.count("failed")
    elapsed = time.perf_counter() - start
    account = (
        f"{met} of {len(rows)} targets met, {missed} missed, {invalid} invalid, {failed} failed; "
        f"{elapsed:.0f} s"
    )
    versions = f"Python {platform.python_version()}, numpy {np.__version__}"
    machine = f"{versions}, {platform.machine()}, {os.cpu_count()} cores, load {load()}"
    print(f"{account}\n{machine}")
    if options.write:
        write_table(rows, f"{date.today()}: {account}. {machine}.")
    return 1 if invalid or failed else 0


def rows_of(name: str) -> Iterator[Row]:
    """Yield the rows of a benchmark; an error ends it with a row that names the error."""
    try:
        yield from importlib.import_module(f"benchmarks.bench_{name}").rows()
    except Exception as error:  # noqa: BLE001  of any kind: the other benchmarks go on
        traceback.print_exc()
        yield Row.failed(name, error)


def write_table(rows: list[Row], account: str, page: Path = PAGE) -> None:
    """Replace the page's table and the sentence above it by those of this run."""
    text = page.read_text(encoding="utf-8")
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise SystemExit(f"{page}: no {BEGIN} … {END} around the table")
    table = f"\n{account}\n\n{markdown_table(rows)}\n"
    page.write_text(before + begin + table + end + after, encoding="utf-8")


def load() -> str:
    """Return the machine's one-minute load average: under load the times are less reliable."""
    return f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown"


if __name__ == "__main__":
    sys.exit(main())
