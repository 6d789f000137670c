"""Parquet log of a run, for pandas, Polars, DuckDB; needs pyarrow, the extra `log`."""

from __future__ import annotations

from pathlib import Path

from rfly_amphibious.scenarios.run import ScenarioRun
from rfly_amphibious.scenarios.table import modes, table
from rfly_common.optional import require


def check_parquet() -> None:
    """Raises ConfigError that says what to install where Parquet files can't be written."""
    require("pyarrow", "writing Parquet files")


def write_parquet(run: ScenarioRun, path: Path) -> None:
    """One row a sample, in double precision: the columns of a CSV file.

    The file's metadata say scenario, vehicle, seed and ending. Raises ConfigError without pyarrow.
    """
    check_parquet()
    import pyarrow
    from pyarrow import parquet

    names, numbers = table(run)
    columns = {"mode": pyarrow.array(modes(run)).dictionary_encode()}
    columns.update({name: pyarrow.array(numbers[:, n]) for n, name in enumerate(names)})
    scenario = run.scenario
    said = {
        "scenario": scenario.name,
        "vehicle": scenario.params.name,
        "seed": str(scenario.wind.seed),
        "ending": run.ending,
    }
    parquet.write_table(pyarrow.table(columns).replace_schema_metadata(said), path)
