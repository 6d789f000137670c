"""`rfly sim sweep`: parameter sweeps of one scenario, and one table of results.

No `from __future__ import annotations` here: typer 0.9 (Ubuntu 24.04) cannot read annotations that are still text.
"""

import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rfly_bringup.cli.options import MaybeInt, MaybeText, MaybeTexts, Overwrite, SearchPath, check_new_file, status
from rfly_bringup.progress import progress_bar
from rfly_common.errors import ConfigError

if TYPE_CHECKING:
    from rfly_amphibious.scenarios.sweep_results import Result

_MAX_ENDINGS = 8


def sweep(
    scenario: Annotated[
        str,
        typer.Argument(metavar="SCENARIO", help="scenario file, or a shipped one: hills, hop, rotor_failure, valley"),
    ],
    vary: Annotated[
        MaybeTexts,
        typer.Option(
            metavar="KEY=VALUES",
            help="a key of the scenario, or of its vehicle as vehicle.KEY, and its values: a,b,c or start:stop or "
            "start:stop:step, which end before stop; may be repeated: all combinations are run",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        MaybeText, typer.Option(metavar="FILE", help="table of the results, .csv or .parquet", show_default=False)
    ] = None,
    jobs: Annotated[
        MaybeInt, typer.Option(min=1, help="runs at once (default: one a core)", show_default=False)
    ] = None,
    dask: Annotated[
        MaybeText,
        typer.Option(
            metavar="ADDRESS",
            help="run on the Dask cluster of this scheduler, such as tcp://10.0.0.5:8786",
            show_default=False,
        ),
    ] = None,
    overwrite: Overwrite = False,
    search_path: SearchPath = None,
) -> None:
    """Run a scenario with all combinations of values; the same table whatever the number of jobs.

    Examples:

        rfly sim sweep hop --vary seed=0:20 --vary "wind.mean_mps[1]=0,2,4" --out wind.csv

        rfly sim sweep valley --vary vehicle.mass.body_kg=18:24:2 --jobs 4 --out mass.parquet
    """
    from rfly_amphibious.scenarios.sweep import Sweep, Variation, check_dask, run_sweep, run_sweep_on_dask
    from rfly_amphibious.scenarios.sweep_results import check_table, write_results
    from rfly_amphibious.warm_up import warm_up

    if dask is not None:
        if jobs is not None:
            raise ConfigError("--jobs and --dask: the cluster's workers say how many runs it does at once")
        check_dask()
    if out is not None:
        check_new_file("--out", out, overwrite)
        check_table(Path(out))
    with status("reading the scenario"):
        loaded = Sweep.load(scenario, [Variation.parse(text) for text in vary or ()], search_path or ())
    if dask is None:
        with status("compiling the model, once"):
            warm_up()
    begin = time.perf_counter()
    with progress_bar(f"{scenario}, {len(loaded)} runs") as bar:

        def progress(done: int, runs: int) -> None:
            bar(done / runs)

        results = run_sweep(loaded, jobs, progress) if dask is None else run_sweep_on_dask(loaded, dask, progress)
    _show(results, time.perf_counter() - begin)
    if out is not None:
        write_results(loaded.combinations(), results, Path(out))
        print(out)


def _show(results: "list[Result]", seconds: float) -> None:
    from rich.console import Console
    from rich.table import Table

    from rfly_amphibious.scenarios.sweep_results import spreads

    console = Console(highlight=False, soft_wrap=True)
    table = Table("", "least", "median", "largest", box=None)
    for column in table.columns[1:]:
        column.justify = "right"
    for spread in spreads(results):
        table.add_row(spread.name, *(f"{value:.6g}" for value in spread[1:]))
    console.print(table)
    missed = Counter(result.ending.split(" at ")[0] for result in results if not result.reached)
    for ending, count in missed.most_common(_MAX_ENDINGS):
        console.print(f"{count} × {ending}", markup=False)
    reached = sum(result.reached for result in results)
    simulated = sum(result.duration_s for result in results)
    console.print(f"end reached: {reached} of {len(results)} ({100 * reached / len(results):.1f} %)")
    console.print(f"simulated {simulated:.1f} s in {seconds:.1f} s, {simulated / seconds:.1f} × real time")
