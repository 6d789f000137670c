# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""`python -m attacks [AREA ...]`: attack in all areas, or in the named ones, and print one table.

The exit code is 1 if anything failed. The same seed tries the same things again.
"""

from __future__ import annotations

import argparse
import importlib
import random
import re
import signal
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType

from rich.console import Console

from attacks.table import Result, machine_line, print_table

Attack = Callable[[random.Random, int], Result]


def areas() -> list[str]:
    """Return the modules of this folder that offer attacks."""
    modules = sorted(Path(__file__).parent.glob("*.py"))
    return [
        path.stem
        for path in modules
        if re.search(r"^ATTACKS\b", path.read_text("utf-8"), re.MULTILINE)
    ]


def run_area(
    area: ModuleType, seed: int, tries: int, progress: Console, results: list[Result]
) -> None:
    """Run each attack of an area with a generator of its own, and add what it found."""
    for name, attack in area.ATTACKS.items():
        start = time.monotonic()
        result: Result = attack(random.Random(f"{seed} {area.__name__} {name}"), tries)
        seconds = time.monotonic() - start
        progress.print(
            f"{result.name}: {result.tried:,} tried, {result.failed:,} failed, {seconds:.0f} s",
            markup=False,
        )
        results.append(result)


def main(arguments: Sequence[str] | None = None) -> int:
    known = areas()
    parser = argparse.ArgumentParser(
        prog="python -m attacks",
        description="Attack the running nodes and commands, and the file readers.",
    )
    parser.add_argument(
        "areas", nargs="*", metavar="AREA", help=f"which: {', '.join(known)}; all by default"
    )
    parser.add_argument(
        "--seed", type=int, default=1, metavar="N", help="seed of the random attacks (default 1)"
    )
    parser.add_argument(
        "--tries",
        type=int,
        metavar="N",
        help="tries of each attack, instead of the area's own number",
    )
    parser.add_argument(
        "--short", action="store_true", help="the short form, seconds for each area"
    )
    parser.add_argument(
        "--share", type=float, default=1.0, metavar="X", help="share of a full run (default 1)"
    )
    options = parser.parse_args(arguments)

    unknown = sorted(set(options.areas) - set(known))
    if unknown:
        parser.error(f"no such area: {', '.join(unknown)}; known: {', '.join(known)}")

    # end what was started on a signal, too
    progress = Console(stderr=True)
    # (a shell's background job ignores SIGINT, and so would all that is started from here until it
    # takes the signal in hand)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    signal.signal(signal.SIGINT, signal.default_int_handler)

    start = time.monotonic()
    results: list[Result] = []
    try:
        for name in options.areas or known:
            area = importlib.import_module(f"attacks.{name}")
            if options.tries:
                tries = options.tries
            elif options.short:
                tries = area.SHORT_TRIES
            else:
                tries = max(1, round(options.share * area.TRIES))
            run_area(area, options.seed, tries, progress, results)
    finally:
        # also after Ctrl-C: the results so far
        # (160 columns without a terminal, so that a log holds the table unfolded)
        print_table(results, Console() if sys.stdout.isatty() else Console(width=160))

    failed = sum(result.failed for result in results)
    slow = sum(result.is_slow for result in results)
    tried = sum(result.tried for result in results)
    seconds = time.monotonic() - start
    print(
        f"{tried:,} tried, {failed:,} failed, {slow} let others wait for too long, "
        f"seed {options.seed}; {seconds:.0f} s"
    )
    print(machine_line())
    return 1 if failed or slow else 0


if __name__ == "__main__":
    sys.exit(main())
