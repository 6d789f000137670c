"""Point cloud files: PLY and PCD (both binary, little-endian), NumPy and plain text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rfly_common.errors import ConfigError
from rfly_common.files import StrPath

CLOUD_ENDINGS = (".ply", ".pcd", ".npy", ".xyz")


def write_cloud(points: NDArray[np.float32], path: StrPath) -> None:
    """Writes (rows, columns, 3) float32 points, metres; the ending of `path` is the format.

    PCD keeps the order as an organised cloud (HEIGHT rows, WIDTH columns), .npy the array; PLY and .xyz (a line `x y z`
    for each point, to 0.1 mm) list the points row by row. Raises ConfigError for another ending.
    """
    if points.ndim != 3 or points.shape[2] != 3:
        raise ValueError(f"points: shape {points.shape}, expected (rows, columns, 3)")
    path = Path(path)
    ending = path.suffix.lower()
    cloud = np.ascontiguousarray(points, "<f4")
    if ending == ".ply":
        _write_with_header(path, _ply_header(cloud), cloud)
    elif ending == ".pcd":
        _write_with_header(path, _pcd_header(cloud), cloud)
    elif ending == ".npy":
        with path.open("wb") as file:  # np.save by name would add an ending
            np.save(file, points)
    elif ending == ".xyz":
        np.savetxt(path, cloud.reshape(-1, 3), fmt="%.4f")
    else:
        raise ConfigError(
            f"{path}: clouds are written as {', '.join(CLOUD_ENDINGS)}, not {ending or 'without ending'!r}"
        )


def _write_with_header(path: Path, header: str, cloud: NDArray[Any]) -> None:
    with path.open("wb") as file:
        file.write(header.encode("ascii"))
        file.write(cloud.data)


def _ply_header(cloud: NDArray[Any]) -> str:
    """http://paulbourke.net/dataformats/ply/"""
    properties = "".join(f"property float {axis}\n" for axis in "xyz")
    return f"ply\nformat binary_little_endian 1.0\nelement vertex {cloud.size // 3}\n{properties}end_header\n"


def _pcd_header(cloud: NDArray[Any]) -> str:
    """PCD v0.7, Point Cloud Library."""
    rows, columns, _ = cloud.shape
    return (
        "# .PCD v0.7 - Point Cloud Data file format\nVERSION 0.7\nFIELDS x y z\nSIZE 4 4 4\nTYPE F F F\nCOUNT 1 1 1\n"
        f"WIDTH {columns}\nHEIGHT {rows}\nVIEWPOINT 0 0 0 1 0 0 0\nPOINTS {rows * columns}\nDATA binary\n"
    )
