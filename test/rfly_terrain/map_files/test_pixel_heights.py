# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Heights of pixels by the compiled kernel and by the table, against the formula."""

from __future__ import annotations

import numpy as np
import pytest

from rfly_terrain.map_files import calibration
from rfly_terrain.map_files.calibration import calibrate, heights_up, parse_calibration


@pytest.mark.parametrize("kernels", ["sys", "no.such.module"], ids=["compiled", "table"])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_every_pixel_has_the_height_of_the_formula(dtype, kernels, monkeypatch):
    """The height is (z2 + (k - kL)·sz) / 100 in float64, rounded once to float32."""
    monkeypatch.setattr(calibration, "KERNELS", kernels)
    pixels = np.arange(np.iinfo(dtype).max + 1, dtype=dtype).reshape(16, -1)
    points = parse_calibration(b"2000,1500,760,0,0,10,1000,750,400", "map.txt")
    made = calibrate(points, pixels, "map.txt")

    counts = pixels.astype(np.float64) - (made.count_left_bottom + 32_768)
    expected = ((made.z_offset_cm + counts * made.z_scale_cm) / 100.0).astype(np.float32)
    assert np.array_equal(heights_up(made, pixels), expected)
