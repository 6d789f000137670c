# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""`rfly fleet`: checks, repairs and plots of fleet files."""

import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from rfly_bringup.cli import options
from rfly_bringup.terminal import printable
from rfly_common.files import write_text

if TYPE_CHECKING:
    from rich.table import Table

    from rfly_common.arrays import Floats
    from rfly_trajectory.fleet.fleet import Fleet
    from rfly_trajectory.fleet.limit_check import WheelGap

Result = TypeVar("Result")

fleet_app = typer.Typer(
    help="Fleet files: check what they demand of their vehicles on a map, mend and draw them.\n\n"
    "FILE is a fleet file, or the name of a shipped fleet.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)

MaxVehicles = Annotated[
    int,
    typer.Option(
        min=1,
        max=100_000,
        help="most vehicles of a fleet; the checks take some milliseconds for each",
    ),
]
FileArgument = Annotated[
    str,
    typer.Argument(
        metavar="FILE",
        help="fleet file, or the name of a shipped fleet",
        autocompletion=options.COMPLETIONS["fleet"],
    ),
]

MAX_CHECKED = 2_000
"""Most vehicles without --max-vehicles; their checks take seconds."""

MAX_ROWS = 40
"""Most vehicles in the table, and most findings."""


@fleet_app.command()
def check(
    file: FileArgument,
    map_name: options.MapOption = options.DEMO_MAP,
    seconds: Annotated[
        options.MaybeFloat,
        options.optional(
            "fleet time over which separation is checked, s (default: each vehicle's way once)",
            min=0.1,
        ),
    ] = None,
    out: Annotated[
        options.MaybePath,
        options.optional(
            "draw the fleet too, with a red cross at each finding: .png, .pdf …",
            "--out",
            "-o",
        ),
    ] = None,
    overwrite: options.Overwrite = False,
    max_vehicles: MaxVehicles = MAX_CHECKED,
    search_path: options.SearchPath = None,
) -> None:
    """Check each vehicle of a fleet against the map, the ground, its limits and the others.

    Limits that the file does not set are those of typical vehicles of the kind. Two vehicles must
    not meet: the shapes of their types say how wide they are. A table shows what each vehicle does.
    The exit code is 1 if anything is wrong, 2 if the file can't be read.

    Examples:

        rfly fleet check mixed_fleet

        rfly fleet check my_fleet.yaml --map MountainTerrain --out check.png
    """
    from rich.console import Console

    from rfly_bringup.cli.track_plots import draw_fleet
    from rfly_trajectory.fleet.limit_check import (
        TOUCHING,
        check_separation,
        check_tracks,
        wheel_gaps,
    )

    options.check_new_picture(out, overwrite)
    fleet = _load(file, map_name, search_path, max_vehicles)
    gaps = wheel_gaps(fleet)

    console = Console(highlight=False, soft_wrap=True, width=None if sys.stdout.isatty() else 160)
    console.print(f"{file}: {len(fleet)} vehicles over {map_name}", markup=False)
    console.print(_vehicle_table(fleet, gaps))
    if len(fleet) > MAX_ROWS:
        console.print(f"… and {len(fleet) - MAX_ROWS} more vehicles")

    # vehicles whose wheels do not all touch
    for vehicle, wheels in list(zip(fleet.vehicles, gaps, strict=True))[:MAX_ROWS]:
        if wheels and wheels.gap > TOUCHING:
            console.print(
                f"vehicle {vehicle.name!r}: not all of its wheels can touch: one is up to "
                f"{wheels.gap:.3f} m above the ground at x {wheels.x:.1f}, y {wheels.y:.1f}, "
                f"and more than {TOUCHING:g} m on {100 * wheels.share:.2g} % of its track",
                markup=False,
            )

    # findings
    with options.status("looking for vehicles that come too near"):
        findings = check_tracks(fleet) + check_separation(fleet, seconds, _body_radii(fleet))
    for finding in findings[:MAX_ROWS]:
        where = f"{finding.location}: " if finding.location else ""
        console.print(f"{where}vehicle {finding.vehicle!r}: {finding.text}", markup=False)
    if len(findings) > MAX_ROWS:
        console.print(f"… and {len(findings) - MAX_ROWS} more findings")
    some = f"{len(findings)} finding{'s' if len(findings) > 1 else ''}"
    console.print(some if findings else "nothing is wrong")

    if out is not None:
        draw_fleet(fleet, out, findings=findings)
        console.print(str(out), markup=False)
    raise typer.Exit(1 if findings else 0)


def _body_radii(fleet: "Fleet") -> "Floats":
    """Return half the smaller side of each vehicle from above, (n,) m: nearer centres overlap."""
    import numpy as np

    from rfly_collision.shapes.vehicle_shapes import load_shapes

    shapes = load_shapes()
    rows = shapes.index_of([vehicle.vehicle_type for vehicle in fleet.vehicles])
    scales = np.array([vehicle.scale[:2] for vehicle in fleet.vehicles], float)
    return np.asarray(0.5 * (shapes.footprint[rows] * scales).min(axis=1), np.float64)


def _vehicle_table(fleet: "Fleet", gaps: "list[WheelGap | None]") -> "Table":
    """Return a table of what the first vehicles do on their way."""
    from rich.table import Table

    from rfly_trajectory.fleet.limit_check import drive, duration

    columns = (
        "id",
        "kind",
        "way m",
        "time s",
        "m/s",
        "radius m",
        "m/s² sideways",
        "slope °",
        "wheel gap m",
    )

    table = Table("vehicle", *columns, box=None)
    for index, (vehicle, wheels) in enumerate(
        zip(fleet.vehicles[:MAX_ROWS], gaps[:MAX_ROWS], strict=True)
    ):
        done = drive(fleet, index)
        bend = float(abs(done.curvature).max())
        table.add_row(
            vehicle.name,
            str(vehicle.id),
            vehicle.kind,
            f"{done.distance[-1]:.1f}",
            f"{duration(vehicle):.1f}",
            f"{abs(done.speed).max():.2f}",
            f"{1 / bend:.1f}" if bend > 1e-9 else "straight",
            f"{abs(done.lateral_acceleration).max():.2f}",
            f"{math.degrees(math.atan(abs(done.slope).max())):.1f}",
            f"{wheels.gap:.3f}" if wheels else "",
        )
    return table


@fleet_app.command()
def deconflict(
    file: FileArgument,
    *,
    out: Annotated[Path, typer.Option("--out", "-o", help="fleet file to write, with the changes")],
    map_name: options.MapOption = options.DEMO_MAP,
    later: Annotated[
        float, typer.Option(min=0.0, max=3600.0, help="most that a vehicle may depart later, s")
    ] = 60.0,
    higher: Annotated[
        float,
        typer.Option(min=0.0, max=10_000.0, help="most that an aircraft may fly higher, m"),
    ] = 20.0,
    slower: Annotated[
        float,
        typer.Option(min=0.1, max=1.0, help="slowest speed, as a share of the planned one"),
    ] = 0.5,
    overwrite: options.Overwrite = False,
    max_vehicles: MaxVehicles = MAX_CHECKED,
    search_path: options.SearchPath = None,
) -> None:
    """Write a fleet whose vehicles keep clear of each other, and say what it does otherwise.

    The vehicles of an entry, with its copies, depart later, one after the other at longer
    intervals, fly higher, or go slower: what costs each the least time. Those that come first in
    the file change last. The distance to keep is that of `rfly fleet check`. Comments of the file
    are lost. The exit code is 1 if no way is found; then nothing is written.

    Examples:

        rfly fleet deconflict crossing.yaml --out clear.yaml

        rfly fleet deconflict crossing.yaml --out clear.yaml --higher 0 --slower 1 --later 300
    """
    from rfly_trajectory.fleet.deconflict import AllowedChange
    from rfly_trajectory.fleet.deconflict import deconflict as deconflicted
    from rfly_trajectory.fleet.fleet_file import FleetFile

    options.check_target(out, overwrite, *options.YAML)
    given = _read(lambda: FleetFile(file, max_vehicles))
    fleet = _on_map(given.fleet, map_name, search_path)
    with options.status("looking for a way for each vehicle"):
        found = deconflicted(
            fleet, given.groups, _body_radii(fleet), AllowedChange(later, higher, slower)
        )
    if found.stuck:
        print(
            printable(
                f"no way for {found.stuck!r} that keeps clear of the others; more may be allowed "
                "with --later, --higher and --slower, and rfly fleet check tells whom it meets"
            )
        )
        raise typer.Exit(1)

    changed = 0
    for (name, _), change in zip(given.entries(), found.changes, strict=True):
        words = [
            text.format(value)
            for value, usual, text in (
                (change.later, 0.0, "departs {:g} s later"),
                (change.between, 0.0, "{:g} s more between its copies"),
                (change.higher, 0.0, "{:g} m higher"),
                (100.0 * change.share, 100.0, "at {:.0f} % of its speed"),
            )
            if value != usual
        ]
        if words:
            changed += 1
            print(printable(f"{name}: {', '.join(words)}"))
    if not changed:
        print("no vehicle comes too near to another: nothing is changed")
    write_text(out, given.changed(found.changes))
    print(out)


@fleet_app.command()
def plot(
    file: FileArgument,
    *,
    out: options.PictureOption,
    map_name: options.MapOption = options.DEMO_MAP,
    title: Annotated[
        options.MaybeText, options.optional("by default the fleet's and the map's name")
    ] = None,
    overwrite: options.Overwrite = False,
    max_vehicles: MaxVehicles = MAX_CHECKED,
    search_path: options.SearchPath = None,
) -> None:
    """Draw the tracks over the shaded relief, with altitude, speed and slope along the way.

    Examples:

        rfly fleet plot mixed_fleet --out fleet.png

        rfly fleet plot my_fleet.yaml --out fleet.pdf --map MountainTerrain
    """
    from rfly_bringup.cli.track_plots import draw_fleet

    options.check_new_picture(out, overwrite)
    fleet = _load(file, map_name, search_path, max_vehicles)
    with options.status(f"drawing {out}"):
        draw_fleet(fleet, out, title=title)
    print(out)


def _load(file: str, map_name: str, search_path: list[str] | None, most: int) -> "Fleet":
    """Return a fleet on its map. Raise ConfigError."""
    from rfly_trajectory.fleet.fleet_file import load_fleet

    return _on_map(_read(lambda: load_fleet(file, most)), map_name, search_path)


def _read(read: "Callable[[], Result]") -> "Result":
    """Return what a reader of fleets returns. Raise ConfigError that names --max-vehicles."""
    from rfly_common.errors import TooLargeError

    try:
        return read()
    except TooLargeError as error:
        raise TooLargeError(
            f"{error}; raise --max-vehicles to check more, some milliseconds for each"
        ) from None


def _on_map(fleet: "Fleet", map_name: str, search_path: list[str] | None) -> "Fleet":
    """Return a fleet over a map, and print what is not used of its files."""
    for note in fleet.notes:
        print(printable(f"note: {note}"), file=sys.stderr)
    return fleet.on_terrain(options.load_map(map_name, search_path))
