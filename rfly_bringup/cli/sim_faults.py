# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""`rfly sim faults`: the fault matrix of the land-air vehicle, as a table."""

import itertools
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rfly_bringup.cli import options
from rfly_bringup.terminal import progress_bar
from rfly_bringup.warm_up import compile_first

if TYPE_CHECKING:
    from rfly_lab.runs.fault_matrix import CaseResult


def faults(
    part: Annotated[
        options.MaybeTexts,
        options.optional("only this part, such as gps or rotor_3; repeatable", metavar="PART"),
    ] = None,
    kind: Annotated[
        options.MaybeTexts,
        options.optional("only this kind, such as off or stuck; repeatable", metavar="KIND"),
    ] = None,
    mode: Annotated[
        options.MaybeTexts,
        options.optional(
            "only faults that begin there: take-off, flight, landing, drive; repeatable",
            metavar="MODE",
        ),
    ] = None,
    seeds: Annotated[
        int, typer.Option(min=1, max=1000, help="runs of each case, with other wind and noise")
    ] = 10,
    out: Annotated[
        options.MaybeText,
        options.file_option("table of the results, .csv; one that exists goes on"),
    ] = None,
    jobs: Annotated[
        options.MaybeInt, options.optional("parallel runs (default: one per core)", min=1)
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="begin the table anew")] = False,
) -> None:
    """Fly and drive with one part at fault, by part, kind and mode; print what misses its goal.

    Each row of the table is written when its run ends, the seeds one after the other, so a matrix
    that is interrupted goes on with the same command. Exit code 1 if a case misses a goal.

    Examples:

        rfly sim faults --part gps --seeds 3

        rfly sim faults --out faults.csv --jobs 1
    """
    from rfly_lab.runs.fault_matrix import (
        MatrixTable,
        chosen_cases,
        get_ready,
        missing_runs,
        run_matrix,
    )
    from rfly_lab.runs.sweep import check_table

    # check the arguments before the long work
    cases = chosen_cases(part or (), kind or (), mode or ())
    options.check_target(out, overwrite=True)
    if out is not None and overwrite:
        check_table(Path(out))
        Path(out).unlink(missing_ok=True)

    with MatrixTable(None if out is None else Path(out)) as table:
        runs = list(missing_runs(cases, seeds, table))
        if runs:
            compile_first(["amphibious"])
            with options.status("loading the model"):
                get_ready()
        with progress_bar(f"fault matrix, {len(runs)} runs", says=True) as bar:
            done = itertools.count(1)

            def keep(result: "CaseResult") -> None:
                table.add(result)
                bar(next(done) / len(runs))

            run_matrix(runs, jobs, keep)
        keys = {case.key for case in cases}
        results = [
            each
            for each in table.in_order()
            if (each.part, each.kind, each.mode) in keys and each.seed < seeds
        ]

    misses = _show(results)
    if out is not None:
        print(out)
    if misses:
        raise typer.Exit(1)


def _show(results: "list[CaseResult]") -> int:
    """Print the cases that miss a goal; return their number."""
    from rich.console import Console
    from rich.table import Table

    from rfly_lab.runs.fault_verdicts import by_case, counted, verdicts_of

    console = Console(highlight=False, soft_wrap=True)
    table = Table("part", "kind", "mode", "misses", box=None)
    cases = by_case(results)
    for key, rows in cases.items():
        missed = {name: each.text for name, each in verdicts_of(rows).items() if not each.is_met}
        if missed:
            table.add_row(*key, "; ".join(f"{name}: {text}" for name, text in missed.items()))
    if table.row_count:
        console.print(table)
    console.print(
        f"{counted(len(cases), 'case')}, {counted(len(results), 'run')}; "
        f"{counted(table.row_count, 'case')} {'misses' if table.row_count == 1 else 'miss'} a goal"
    )
    return table.row_count
