"""CSV log of a run."""

from __future__ import annotations

from pathlib import Path

from rfly_amphibious.scenarios.run import ScenarioRun
from rfly_amphibious.scenarios.table import modes, table


def write_csv(run: ScenarioRun, path: Path) -> None:
    """One row a sample: the mode, then the columns of `scenario_table.table`."""
    names, numbers = table(run)
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.write(",".join(["mode", *names]) + "\n")
        for mode, row in zip(modes(run), numbers.tolist(), strict=True):
            file.write(mode + "," + ",".join(f"{value:.9g}" for value in row) + "\n")
