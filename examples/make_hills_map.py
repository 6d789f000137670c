"""Makes the map RollingHills of the scenario `hills` from a formula: 384 m of round hills with bumps on them.

python examples/make_hills_map.py [folder]
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from rfly_terrain import package_maps, write_map

NAME = "RollingHills"
CELLS, CELL_M = 129, 3.0


def main(folder: Path) -> None:
    axis = (np.arange(CELLS) - CELLS // 2) * CELL_M
    x, y = np.meshgrid(axis, axis, indexing="ij")
    hills = 6.0 * np.sin(x / 31.0 + 0.5) * np.cos(y / 43.0) + 2.5 * np.sin((x + y) / 19.0)
    bumps = 0.12 * np.sin(x / 2.9) * np.sin(y / 3.7)
    files = write_map(
        hills + bumps,
        folder / NAME,
        origin_x=float(axis[0]),
        origin_y=float(axis[0]),
        step_x=CELL_M,
        step_y=CELL_M,
        gps=(40.0, 116.3, 50.0),
        overwrite=True,
        compression=9,
    )
    print(files.png, files.txt, sep="\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else package_maps())
