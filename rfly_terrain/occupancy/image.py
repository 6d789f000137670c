"""Grey levels <-> occupancy costs as in ROS's map_server. Images and matrices both have the top row first."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rfly_terrain.occupancy.cell_grid import number, numbers

FREE_THRESH, OCCUPIED_THRESH = 0.25, 0.65
MODES = ("trinary", "scale", "raw")
_OCCUPIED, _FREE, _UNKNOWN = 0, 254, 205
"""grey levels of a saved map"""


def image_to_cells(
    pixels: ArrayLike,
    negate: Any = 0,
    occupied_thresh: float = OCCUPIED_THRESH,
    free_thresh: float = FREE_THRESH,
    mode: str = "trinary",
) -> NDArray[np.int8]:
    """(rows, columns) of an image 0 … 255, black is occupied -> int8 0 … 100, −1 unknown.

    Pixels (rows, columns), or with 3 colour channels, whose mean counts, or with 2 or 4, the last of which is alpha.
    The mode "trinary" knows 0, 100 and −1, "scale" also what lies between (and −1 where the image is transparent),
    "raw" takes grey levels to 100 as they are. `negate` 1: white is occupied. Raises ValueError for thresholds that
    are not 0 ≤ free_thresh < occupied_thresh ≤ 1, and for other shapes and modes.
    """
    image = numbers(pixels, "pixels")
    if image.ndim not in (2, 3) or (image.ndim == 3 and image.shape[2] not in (1, 2, 3, 4)):
        raise ValueError(f"pixels: the shape {image.shape}, expected (rows, columns) or that with 1 to 4 channels")
    if image.size and (image.min() < 0 or image.max() > 255):
        raise ValueError(f"pixels: {image.min():g} … {image.max():g}, expected 0 … 255")
    occupied = number(occupied_thresh, "occupied_thresh", at_least=0.0)
    free = number(free_thresh, "free_thresh", at_least=0.0)
    if not free < occupied <= 1:
        raise ValueError(f"free_thresh {free:g}, occupied_thresh {occupied:g}: expected 0 ≤ free < occupied ≤ 1")
    if mode not in MODES:
        raise ValueError(f"mode: {mode!r}, expected {', '.join(MODES)}")
    if negate not in (0, 1):
        raise ValueError(f"negate: {negate!r}, expected 0 or 1")
    alpha = image[..., -1] if image.ndim == 3 and image.shape[2] in (2, 4) else None
    grey = image
    if image.ndim == 3:
        grey = image[..., : image.shape[2] - (alpha is not None)].mean(axis=2)
    if mode == "raw":
        return np.where(grey < 100.5, np.floor(grey + 0.5), -1).astype(np.int8)
    p = grey / 255.0 if negate else (255.0 - grey) / 255.0
    if mode == "scale":
        between = np.floor(100.0 * (p - free) / (occupied - free) + 0.5)
        if alpha is not None:
            p = np.where(alpha < 255, np.nan, p)
            between = np.where(alpha < 255, -1, between)
    else:
        between = np.full(p.shape, -1.0)
    return np.where(p > occupied, 100, np.where(p < free, 0, between)).astype(np.int8)


def cells_to_image(cells: ArrayLike) -> NDArray[np.uint8]:
    """(rows, columns) costs −1 … 100 -> uint8: occupied (≥ 65) 0, free (0 … 25) 254, unknown 205."""
    values = numbers(cells, "cells")
    if values.ndim != 2:
        raise ValueError(f"cells: the shape {values.shape}, expected (rows, columns)")
    free = (values >= 0) & (values <= 25)
    return np.where(values >= 65, _OCCUPIED, np.where(free, _FREE, _UNKNOWN)).astype(np.uint8)
