# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Make the demo map JacksboroFault from an elevation model that matplotlib ships.

    python examples/make_demo_map.py [folder]        (needs: pip install ".[geo,plot]")

It does what `rfly terrain import` would do with a GeoTIFF of the whole model:

    rfly terrain import jacksboro.tif --out JacksboroFault \
        --center 36.6033 -84.2217 --size 6000 6000 --resolution 20 \
        --origin-altitude ground --resampling cubic_spline
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np
import rasterio
from matplotlib.cbook import get_sample_data

from rfly_terrain import import_dem, package_maps, write_height_map

NAME = "JacksboroFault"
CENTER = (36.6033, -84.2217)
"""Latitude and longitude of a valley floor between a plateau and mountains of 550 m, degrees."""
SIZE_M = (6000.0, 6000.0)
CELL_M = 20.0


def write_geotiff(path: Path) -> None:
    """Write matplotlib's array as a GeoTIFF, at the place that its own dx, dy and limits name.

    Its ymin and ymax are exchanged.
    """
    model = np.load(get_sample_data("jacksboro_fault_dem.npz", asfileobj=False))
    elevation = model["elevation"]
    north = max(float(model["ymin"]), float(model["ymax"]))
    transform = rasterio.transform.from_origin(
        float(model["xmin"]), north, float(model["dx"]), float(model["dy"])
    )

    rows, columns = elevation.shape
    with rasterio.open(
        path,
        "w",
        driver="GTiff",
        width=columns,
        height=rows,
        count=1,
        dtype="int16",
        crs="EPSG:4326",
        transform=transform,
    ) as dataset:
        dataset.write(elevation, 1)


def main(folder: Path) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        tif = Path(scratch, "jacksboro.tif")
        write_geotiff(tif)
        terrain = import_dem(
            tif,
            resolution=CELL_M,
            center=CENTER,
            size=SIZE_M,
            origin_altitude="ground",
            resampling="cubic_spline",
            name=NAME,
        )

    files = write_height_map(terrain, folder / NAME, overwrite=True, compression=9)
    print(
        f"{terrain}\n{files.png} ({files.png.stat().st_size:,} bytes)\n{files.txt}: "
        f"{files.txt.read_text().strip()}"
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else package_maps())
