# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Search path of maps. A folder counts only if it holds both the png and the txt."""

from __future__ import annotations

import difflib
import functools
import importlib.resources
import logging
import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rfly_common.errors import TerrainFileNotFound, TerrainFormatError
from rfly_common.files import StrPath, open_regular
from rfly_common.untrusted_files.mat_size import check_unpacked_size
from rfly_common.untrusted_files.reader_errors import reader_errors

DEFAULT_PSP_PATH = "C:/PX4PSP" if os.name == "nt" else ""
"""RflySim's installation folder if the environment variable PSP_PATH names none: under Windows
only.
"""
_MAP_FOLDER = Path("CopterSim", "external", "map")
MATLAB_MAP_FOLDERS = (Path("map"), Path("..", "..") / _MAP_FOLDER)
"""Folders that RflySim's MATLAB tool searches first, relative to the current folder."""
FIRMWARE_VERSION_FILE = Path(
    "Add-Ons",
    "Toolboxes",
    "PX4PSP",
    "code",
    "+codertarget",
    "+pixhawk",
    "+CMAKE_Utils",
    "FirmwareVersion.mat",
)
"""File below MATLAB's user folder (Documents/MATLAB) with the path of the PX4PSP toolbox's
installation.
"""
INSTALLATION_VARIABLE = "RflyPSP_Px4_Base_Dir"
MAX_FIRMWARE_BYTES = 1_000_000
STAND_INS = ("MountainTerrain", "Grasslands")
"""Maps of this package with the names of RflySim's own, which its experiments use."""
_EXTENSIONS = (".png", ".txt")
_YAML_BYTES = 4096
"""Bytes of an occupancy map's yaml that are read for the name of its image."""
_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class MapFiles:
    """Absolute paths of the two files of a map."""

    png: Path
    txt: Path

    @property
    def name(self) -> str:
        """Name of the map."""
        return self.txt.stem


def find_map(
    name: StrPath, search_path: Iterable[StrPath] = (), script_folder: StrPath | None = None
) -> MapFiles:
    """Return the files of the map `name`, with or without .png or .txt.

    The name may hold folders or be absolute. The first place that holds both files wins:

    - the path itself (a name with a folder or an extension),
    - `search_path`,
    - ./map,
    - the folder of the started script (or `script_folder`),
    - the current folder,
    - ../../CopterSim/external/map,
    - $PSP_PATH/CopterSim/external/map,
    - that of the installation in FirmwareVersion.mat of MATLAB's PX4PSP toolbox,
    - under Windows C:/PX4PSP/CopterSim/external/map,
    - the maps of this package, STAND_INS among them, with a warning.

    Relative places refer to the current folder. An address of a server is no place of such a map.
    Raises TerrainFileNotFound that lists the places and the file that each lacks.
    """
    places = list(search_path)
    folders = [Path(place) for place in places if not is_web(place)]
    try:
        return find_in_folders(name, [*folders, *search_folders(script_folder)])
    except TerrainFileNotFound as error:
        if len(folders) == len(places):
            raise
        raise TerrainFileNotFound(
            f"{error} Servers on the search path are asked for tiles and GeoTIFFs only."
        ) from None


def map_name(path: StrPath) -> str:
    """Return the name of a map without folder and extension; another dot is part of the name."""
    file = Path(path)
    return file.stem if file.suffix.lower() in (*_EXTENSIONS, ".tif", ".tiff") else file.name


def is_web(name: StrPath) -> bool:
    """Return whether a name is an address of a web server."""
    return os.fspath(name).lower().startswith(("http://", "https://"))


def find_in_folders(name: StrPath, folders: Sequence[Path]) -> MapFiles:
    """Return the files of a map like `find_map`, in the caller's folders. A path comes first."""
    text = os.fspath(name)
    has_extension = text[-4:].lower() in _EXTENSIONS
    stem = os.path.expanduser(text[:-4] if has_extension else text)
    if not stem or stem[-1] in "/\\" or "\0" in stem:
        raise TerrainFileNotFound(
            f"map {text!r}: expected a name such as MountainTerrain, or the path of a map's png "
            "or txt"
        )

    # paths without extension, in order
    path = Path(stem)
    if path.is_absolute():
        candidates = [path]
    else:
        # a name with a folder (./NAME, which Path drops, included) is a path of its own first
        is_path = has_extension or os.path.dirname(stem)
        places = [*([path] if is_path else []), *(folder / path for folder in folders)]
        candidates = list(dict.fromkeys(Path(os.path.abspath(place)) for place in places))

    missing: list[str] = []
    for candidate in candidates:
        files, lack = _pair(candidate)
        if files is not None:
            if candidate.name in STAND_INS and candidate.parent == package_maps():
                _warn_of_stand_in(candidate.name)
            return files
        missing.append(lack)
    raise TerrainFileNotFound(_not_found(text, path, candidates, missing))


def search_folders(script_folder: StrPath | None = None) -> list[Path]:
    """Return the standard places of `find_map`, in order."""
    scripts = script_folders() if script_folder is None else [Path(script_folder)]
    below, parent = MATLAB_MAP_FOLDERS
    return [below, *scripts, Path(), parent, *installation_folders(), package_maps()]


def known_maps() -> list[str]:
    """Return the names of the maps in the standard places of `find_map`, sorted."""
    return sorted({name for folder in search_folders() for name in _maps_in(folder)})


def installation_folders() -> list[Path]:
    """Return CopterSim's map folders.

    They are below $PSP_PATH if it is set, below the installation of MATLAB's PX4PSP toolbox, and
    under Windows below C:/PX4PSP.
    """
    roots = [os.environ.get("PSP_PATH", "").strip(), _toolbox_installation(), DEFAULT_PSP_PATH]
    return [
        Path(root.replace("\\", "/") if os.name != "nt" else root) / _MAP_FOLDER
        for root in roots
        if root
    ]


def _toolbox_installation() -> str:
    """Return RflySim's folder as stored by MATLAB's PX4PSP toolbox.

    It is "" without a toolbox or a folder in it.
    """
    path = Path.home() / "Documents" / "MATLAB" / FIRMWARE_VERSION_FILE
    try:
        with reader_errors(TerrainFormatError), open_regular(path, MAX_FIRMWARE_BYTES) as file:
            from scipy.io import loadmat

            check_unpacked_size(file, 10 * MAX_FIRMWARE_BYTES)
            variables = loadmat(
                file, variable_names=(INSTALLATION_VARIABLE,), chars_as_strings=True
            )
            value = variables[INSTALLATION_VARIABLE]
            text = str(value.item()).strip() if value.size == 1 and value.dtype.kind == "U" else ""
    except (OSError, RuntimeError, TerrainFormatError):
        return ""
    return text


def script_folders() -> list[Path]:
    """Return the folders of the started script: sys.path[0], and that of __main__.

    The second one is for a script that has changed the first.
    """
    folders = []
    if sys.path and isinstance(sys.path[0], str):
        folders.append(Path(sys.path[0]))
    main_file = getattr(sys.modules.get("__main__"), "__file__", None)
    if main_file:
        folders.append(Path(main_file).absolute().parent)
    return folders


def package_maps() -> Path:
    """Return the folder of the maps of this package."""
    return Path(str(importlib.resources.files("rfly_terrain"))) / "data" / "maps"


@functools.cache
def _warn_of_stand_in(name: str) -> None:
    """Log a warning, once in a process."""
    _logger.warning(
        "map %r: our stand-in, not RflySim's own, which was not found: set PSP_PATH to its "
        "installation",
        name,
    )


def _pair(stem: Path) -> tuple[MapFiles | None, str]:
    """Return the two files of a map by its path without extension.

    Otherwise return None, and which one is missing if the other exists.
    """
    png = existing_file(stem, ".png")
    txt = existing_file(stem, ".txt")
    if png is not None and txt is not None:
        return MapFiles(Path(os.path.abspath(png)), Path(os.path.abspath(txt))), ""
    if png is None and txt is None:
        return None, ""
    present, missing = ("png", "txt") if txt is None else ("txt", "png")
    return None, f"the {present} is there, the {missing} next to it is missing"


def existing_file(stem: Path, extension: str) -> Path | None:
    """Return the file with that extension, in lower or upper case; None if there is none."""
    for ending in (extension, extension.upper()):
        path = stem.with_name(stem.name + ending)
        if _is_file(path):
            return path
    return None


def names_image(costs: Path, image: str) -> bool:
    """Return whether the yaml of an occupancy map is there and names an image in its folder."""
    if not _is_file(costs):
        return False
    with open(costs, "rb") as file:
        text = file.read(_YAML_BYTES).decode("utf-8", "replace")
    named = re.search(r"""^image:\s*["']?(.*?)["']?\s*$""", text, re.MULTILINE)
    return named is not None and named[1].removeprefix("./") == image


def _is_file(path: Path) -> bool:
    """Return whether a path is a file."""
    try:
        return path.is_file()
    except (OSError, ValueError):  # a name that the file system cannot hold
        return False


def _not_found(text: str, path: Path, candidates: list[Path], missing: list[str]) -> str:
    """Return a message with the places and what each of them lacks."""
    looked = "; ".join(
        f"{c.parent}{f' ({lack})' if lack else ''}"
        for c, lack in zip(candidates, missing, strict=True)
    )

    message = (
        f"map {text!r} not found: no place holds both {path.name}.png and {path.name}.txt. "
        f"Looked in: {looked}."
    )

    known = sorted({name for c in candidates for name in _maps_in(c.parent)})
    close = difflib.get_close_matches(path.name, known, n=1)
    if close:
        return f"{message} Did you mean {close[0]!r}?"
    return (
        f"{message} Give the path of the png, add its folder to the search path, or set PSP_PATH "
        "to RflySim's folder."
    )


def _maps_in(folder: Path) -> Iterator[str]:
    """Yield the names of the maps in a folder."""
    try:
        names = os.listdir(folder)
    except (OSError, ValueError):
        return
    lower = {name.lower() for name in names}
    for name in names:
        if name.lower().endswith(".txt") and f"{name[:-4].lower()}.png" in lower:
            yield name[:-4]
