# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""`python -m benchmarks [NAME ...]`: run all `bench_*.py`, or the named ones, and print one table.

The exit code is 1 if two sides did not compute the same. Missed targets show in the table only.
"""

from __future__ import annotations

import argparse
import importlib
import os
import platform
import sys
import time
from pathlib import Path

import numpy as np
from rich.console import Console

from benchmarks.harness import Row, print_table


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
    names = parser.parse_args().names
    unknown = sorted(set(names) - set(known))
    if unknown:
        parser.error(f"no such benchmark: {', '.join(unknown)}; known: {', '.join(known)}")

    # the rows
    progress = Console(stderr=True)
    start = time.perf_counter()
    rows: list[Row] = []
    for name in names or known:
        for row in importlib.import_module(f"benchmarks.bench_{name}").rows():
            progress.print(f"{name}: {row.name} [dim]{row.ratio:.3g} {row.verdict}[/]")
            rows.append(row)

    # the table
    # 160 columns without a terminal, so that a log holds the table unfolded
    print_table(rows, Console() if sys.stdout.isatty() else Console(width=160))

    # the sum
    verdicts = [row.verdict for row in rows]
    met = sum(verdict.startswith("met") for verdict in verdicts)
    missed = verdicts.count("missed")
    invalid = verdicts.count("invalid")
    elapsed = time.perf_counter() - start
    print(f"{met} of {len(rows)} targets met, {missed} missed, {invalid} invalid; {elapsed:.0f} s")
    versions = f"Python {platform.python_version()}, numpy {np.__version__}"
    print(f"{versions}, {platform.machine()}, {os.cpu_count()} cores, load {load()}")
    return 1 if "invalid" in verdicts else 0


def load() -> str:
    """Return the machine's one-minute load average: under load the times are less reliable."""
    return f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown"


if __name__ == "__main__":
    sys.exit(main())
