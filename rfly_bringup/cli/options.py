# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Shared options of the commands: argument types, map loading, progress on stderr.

The commands must run with typer 0.9 (Ubuntu 24.04's python3-typer, which rosdep installs). It reads
`Optional[...]` but not `... | None`, it reads no annotations that are still text, and a tuple whose
default is None ends with a TypeError (typer 0.12.5 accepts it). So none of these modules has `from
__future__ import annotations`, optional types are written with `Optional`, and a tuple of NaN marks
a tuple option that is not on the command line.
"""

import inspect
import itertools
import math
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import MISSING, dataclass, fields
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional, TypeVar, get_type_hints

import typer

from rfly_bringup.terminal import COMPILING
from rfly_common.arrays import Triple
from rfly_common.errors import ConfigError
from rfly_common.files import check_ending, check_folder
from rfly_common.kernels.compiling import on_compile

if TYPE_CHECKING:
    from rfly_terrain.height_map.height_map import HeightMap
    from rfly_terrain.height_map.terrain import Terrain
    from rfly_terrain.imagery.imagery import Imagery
    from rfly_terrain.map_files.png_txt import RflySimMap

DEMO_MAP = "JacksboroFault"

MaybeFloat = Optional[float]  # noqa: UP045
MaybeInt = Optional[int]  # noqa: UP045
MaybePath = Optional[Path]  # noqa: UP045
MaybeText = Optional[str]  # noqa: UP045
MaybeTexts = Optional[list[str]]  # noqa: UP045
Pair = tuple[float, float]
Quadruple = tuple[float, float, float, float]
NO_PAIR: Pair = (math.nan,) * 2
NO_TRIPLE: Triple = (math.nan,) * 3
NO_QUADRUPLE: Quadruple = (math.nan,) * 4
Numbers = TypeVar("Numbers", Pair, Triple, Quadruple)


class MapFrame(str, Enum):
    """Axes of coordinates. map: x east, y north, z up. map_ned: x north, y east, z down."""

    map = "map"
    map_ned = "map_ned"


def takes(record: type[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the arguments and options that a dataclass declares.

    The command gets the record as its last parameter, `given`. What the record requires, such as
    a file, comes before the command's own arguments.
    """
    hints = get_type_hints(record, include_extras=True)
    declared = [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if field.default is MISSING else field.default,
            annotation=hints[field.name],
        )
        for field in fields(record)
    ]

    def with_options(command: Callable[..., None]) -> Callable[..., None]:
        own = list(inspect.signature(command).parameters.values())[:-1]
        required = [each for each in declared if each.default is inspect.Parameter.empty]
        parameters = [*required, *own, *(each for each in declared if each not in required)]

        def run(**values: Any) -> None:
            given = record(**{each.name: values.pop(each.name) for each in declared})
            command(**values, given=given)

        run.__name__ = command.__name__
        run.__doc__ = command.__doc__
        run.__annotations__ = {each.name: each.annotation for each in parameters}
        run.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
            [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in parameters]
        )
        return run

    return with_options


def finite(value: float) -> float:
    """Return the value of an option with bounds. Raise BadParameter for NaN or infinity.

    Up to click 8.1 the bounds let NaN pass.
    """
    if not math.isfinite(value):
        raise typer.BadParameter(f"{value}: expected a finite number")
    return value


def metres(text: str) -> float:
    """Return a coordinate, m, which may be negative.

    No type of typer accepts a negative number as an argument. Raise BadParameter for anything but a
    finite number.
    """
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        hint = "; a space parts X and Y" if "," in text else ""
        raise typer.BadParameter(f"{text!r}: expected a finite number of metres{hint}")
    return value


class ThirdPixel(str, Enum):
    """Rule that turns the third point of the txt into a pixel."""

    truncate = "truncate"
    round = "round"


def optional(text: str, *names: str, **settings: Any) -> Any:
    """Return an option whose default is None and not shown; typer 0.9 would show it."""
    return typer.Option(*names, help=text, show_default=False, **settings)


def file_option(text: str, *names: str) -> Any:
    """Return an `optional` option that takes a file."""
    return optional(text, *names, metavar="FILE")


def _complete_map(incomplete: str) -> list[str]:
    from rfly_terrain.map_files.search import known_maps

    return [name for name in known_maps() if name.startswith(incomplete)]


def _of_shipped(package: str, folder: str, suffix: str = ".yaml") -> Callable[[str], list[str]]:
    """Return the completion of the names of shipped files, for a shell."""

    def complete(incomplete: str) -> list[str]:
        from rfly_common.config.documents import shipped_names

        names = shipped_names(package, folder, suffix)
        return [name for name in names if name.startswith(incomplete)]

    return complete


COMPLETIONS = {
    "fleet": _of_shipped("rfly_trajectory", "fleets"),
    "map": _complete_map,
    "policy": _of_shipped("rfly_lab", "policies", ".onnx"),
    "scenario": _of_shipped("rfly_amphibious", "scenarios"),
    "sensors": _of_shipped("rfly_amphibious", "sensors"),
    "vehicle": _of_shipped("rfly_amphibious", "vehicles"),
    "world": _of_shipped("rfly_terrain", "worlds"),
}
"""Names that a shell completes, by the option; paths it completes by itself."""

_MAP: Any = {"metavar": "MAP", "autocompletion": _complete_map}
MapOption = Annotated[str, typer.Option("--map", "-m", help="name or path of the map", **_MAP)]
SearchPath = Annotated[
    MaybeTexts,
    typer.Option(
        "--search-path",
        metavar="FOLDER",
        help="a folder to look in first, or the http(s) address of one with tiles; repeatable",
    ),
]
ThirdPixelOption = Annotated[
    ThirdPixel,
    typer.Option(
        help="the third point's pixel: truncate as RflySim's Python tool, round as MATLAB's",
        show_choices=True,
    ),
]


@dataclass(frozen=True)
class MapSource:
    """The map of a command of `rfly terrain`, by position or by --map, and how it is read."""

    name: Annotated[
        MaybeText,
        typer.Argument(
            help=f"name or path of the map [default: {DEMO_MAP}]", show_default=False, **_MAP
        ),
    ] = None
    map_name: Annotated[
        MaybeText,
        typer.Option("--map", "-m", help="the same as MAP without an option", **_MAP),
    ] = None
    search_path: SearchPath = None
    third_pixel: ThirdPixelOption = ThirdPixel.truncate

    @property
    def map(self) -> str:
        """Name or path of the map. Raise BadParameter for two."""
        maps = {name for name in (self.name, self.map_name) if name is not None}
        if len(maps) > 1:
            raise typer.BadParameter(f"two maps, {self.name} and --map {self.map_name}: give one")
        return maps.pop() if maps else DEMO_MAP

    def read(self) -> "RflySimMap":
        """Return the map's two files as read, before they become heights. Raise TerrainError."""
        return read_rfly_map(self.map, self.search_path, self.third_pixel)

    def load(self) -> "HeightMap":
        """Return the map's heights, all of them in memory. Raise TerrainError, ConfigError."""
        return load_map(self.map, self.search_path, self.third_pixel)

    def open(self) -> "Terrain":
        """Return the map; tiles and a GeoTIFF are not read. Raise TerrainError."""
        from rfly_terrain.tiles.open_terrain import find_tiles
        from rfly_terrain.tiles.tiled_height_map import TiledHeightMap

        tiles = find_tiles(self.map, self.search_path or ())
        return self.load() if tiles is None else TiledHeightMap.open(tiles)


X = Annotated[
    float,
    typer.Argument(metavar="X", parser=metres, help="m; east in map, north in map_ned"),
]
Y = Annotated[
    float,
    typer.Argument(metavar="Y", parser=metres, help="m; north in map, east in map_ned"),
]
MaybeX = Annotated[MaybeFloat, X.__metadata__[0]]
MaybeY = Annotated[MaybeFloat, Y.__metadata__[0]]
FrameOption = Annotated[
    MapFrame,
    typer.Option(help="map: x east, y north, z up; map_ned: x north, y east, z down"),
]
RegionOption = Annotated[
    Quadruple,
    typer.Option(
        metavar="X_MIN X_MAX Y_MIN Y_MAX",
        show_default=False,
        help="only this part (m, east and north)",
    ),
]
TopicOption = Annotated[
    MaybeTexts,
    typer.Option(
        metavar="REGEX",
        help="only ROS topics whose whole name matches; repeatable",
    ),
]
ExcludeOption = Annotated[
    MaybeTexts,
    typer.Option(
        metavar="REGEX",
        help="no ROS topics whose whole name matches; repeatable",
    ),
]
HostOption = Annotated[str, typer.Option(help="machine that runs RflySim3D: name or IPv4 address")]
PortOption = Annotated[int, typer.Option(min=1, max=65535, help="UDP port of window 0")]
WindowOption = Annotated[
    int,
    typer.Option(min=-1, help="window 0, 1, …; -1: windows 0, 1 and 2, as RflySim's SDK"),
]
TABLE = (".csv",)
"""Endings of tables."""
YAML = (".yaml", ".yml")
"""Endings of worlds, fleets, scenarios and vehicles."""
BindOption = Annotated[
    str, typer.Option(help="address to listen on; 0.0.0.0 hears other machines too")
]
PictureOption = Annotated[
    Path, typer.Option("--out", "-o", help="picture to write: .png, .pdf, .svg, .jpg …")
]
ImageryOption = Annotated[
    MaybePath,
    file_option(
        "picture of the ground, such as an orthophoto: a GeoTIFF, or a picture with three points "
        "in NAME.csv"
    ),
]
ResolutionOption = Annotated[MaybeFloat, optional("cell size, m; by default the sources' finest")]
CenterOption = Annotated[
    Pair,
    typer.Option(
        metavar="LAT LON",
        show_default=False,
        help="place of x = y = 0, degrees; by default the middle",
    ),
]
SizeOption = Annotated[
    Pair,
    typer.Option(
        metavar="EAST NORTH", show_default=False, help="only this much around the center, m"
    ),
]
UnitOption = Annotated[
    MaybeText,
    optional(
        "unit of the heights: m, km, dm, cm, mm, ft or us-ft; by default the file's, or metres",
        metavar="UNIT",
    ),
]
NodataOption = Annotated[
    MaybeText,
    optional(
        "number in a file that stands for no height; none: every number is a height; by default "
        "what the file says, and what can be no height",
        metavar="NUMBER|none",
    ),
]
FillNodata = Annotated[bool, typer.Option("--fill-nodata", help="interpolate cells without data")]
BandOption = Annotated[
    MaybeInt,
    optional("band of the heights; by default the only one that can hold them", min=1),
]
CrsOption = Annotated[
    MaybeText, optional("coordinates of a raster that does not name them", metavar="EPSG:N")
]
DaskOption = Annotated[
    MaybeText,
    optional(
        "run on the Dask cluster of this scheduler, such as tcp://10.0.0.5:8786",
        metavar="ADDRESS",
    ),
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="replace files that exist")]
GeoOrigin = Annotated[
    Triple,
    typer.Option(
        metavar="LAT LON ALT",
        show_default=False,
        help="latitude, longitude (degrees), altitude (m) of x = y = z = 0",
    ),
]


def read_rfly_map(
    name: str, search_path: list[str] | None, third_pixel: ThirdPixel
) -> "RflySimMap":
    """Return a map's two files as read, before they become heights. Raise TerrainError."""
    from rfly_terrain.map_files.png_txt import read_map
    from rfly_terrain.map_files.search import find_map

    return read_map(find_map(name, search_path or ()), third_pixel.value)


def load_map(
    name: str, search_path: list[str] | None, third_pixel: ThirdPixel = ThirdPixel.truncate
) -> "HeightMap":
    """Return the heights of a map, all of them in memory. Raise TerrainError, ConfigError."""
    from rfly_terrain.height_map.height_map import HeightMap
    from rfly_terrain.tiles.open_terrain import find_tiles, whole_map

    tiles = find_tiles(name, search_path or ())
    if tiles is not None:
        return whole_map(tiles)
    return HeightMap.of_map(read_rfly_map(name, search_path, third_pixel))


def open_imagery(path: Path | None, terrain: "Terrain") -> "Imagery | None":
    """Return a picture of a terrain's ground, if one is named. Raise TerrainError, ConfigError."""
    from rfly_terrain.imagery.imagery import Imagery

    return None if path is None else Imagery.open(path, terrain)


def given(values: Numbers, option: str) -> Numbers | None:
    """Return the numbers of a tuple option, or None if it is not on the command line.

    Raise BadParameter for a number that is not finite.
    """
    if all(map(math.isnan, values)):
        return None
    if not all(map(math.isfinite, values)):
        raise typer.BadParameter(f"{option} {' '.join(map(str, values))}: expected finite numbers")
    return values


def check_target(target: Path | str | None, overwrite: bool, *endings: str, hint: str = "") -> None:
    """Raise FileExistsError if a command would write over a file without --overwrite.

    ConfigError for a name whose ending is that of another kind of file than `endings`; for a
    folder, for a file of a missing one or without the permission; and for a named pipe or a socket:
    to open a pipe would wait for its reader. None: nothing will be written.
    """
    if target is None:
        return
    out = Path(target)
    if endings:
        check_ending(out, *endings, hint=hint)
    check_folder(out)
    if out.is_dir():
        raise ConfigError(f"{out}: a folder, expected the name of a file")
    if out.exists() and not overwrite:
        raise FileExistsError(f"{out} exists; choose another name or add --overwrite")
    if out.exists() and not os.access(out, os.W_OK):
        raise ConfigError(f"{out}: a file without the permission to write it")
    if (out.is_fifo() or out.is_socket()) and not out.is_relative_to("/dev"):
        raise ConfigError(f"{out}: a pipe or a socket, expected a regular file")


def check_cluster(jobs: int | None, dask: str | None) -> None:
    """Raise ConfigError for processes and a cluster at once, or where Dask is not installed."""
    if dask is None:
        return
    if jobs is not None:
        raise ConfigError(
            "--jobs and --dask: expected one; a cluster's workers set its parallel runs"
        )
    from rfly_common.threads.processes import check_dask

    check_dask()


def check_new_picture(path: Path | str | None, overwrite: bool) -> None:
    """Raise an error if a picture could not be written: unknown format, or the file exists."""
    if path is not None:
        from rfly_terrain.plots.relief import check_picture_format

        check_target(path, overwrite)
        check_picture_format(path)


@contextmanager
def needs_ros(what: str) -> Iterator[None]:
    """Turn a failed import of a ROS module into a ConfigError that says what needs ROS."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"{error.name} is not importable: {what} needs ROS 2 (rclpy and the interfaces of "
            "rfly_suite)"
        ) from None


def on_command_line(ctx: typer.Context, name: str) -> bool:
    """Return whether a parameter is on the command line, not left at its default."""
    source: Any = ctx.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def refuse_options(ctx: typer.Context, reason: str, names: Iterable[str]) -> None:
    """Raise BadParameter for an option that is on the command line and has no meaning here."""
    for name in names:
        if on_command_line(ctx, name):
            flag = name.replace("_", "-")
            raise typer.BadParameter(f"--{flag}: {reason} it has no meaning")


@contextmanager
def status(text: str) -> Iterator[None]:
    """Show a spinner on stderr during long work, and what kernels it compiles.

    Nothing is shown if stderr is no terminal.
    """
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        yield
        return

    with console.status(text) as spinner:
        count = itertools.count(1)

        def compiling(name: str) -> None:
            spinner.update(f"{text}: {COMPILING}: {next(count)} so far ({name})")

        with on_compile(compiling):
            yield
