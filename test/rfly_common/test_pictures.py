# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Pictures as the contents of files."""

from __future__ import annotations

import numpy as np
import pytest

from rfly_common.errors import ConfigError
from rfly_common.pictures import encoded_picture
from rfly_terrain.files.writer import write_map
from rfly_ue_bridge import encode_image


def test_a_picture_that_a_form_cannot_hold_is_refused_by_its_size(tmp_path):
    """OpenCV only says that it failed, and returns no bytes."""
    row = np.zeros((2, 65_501), np.uint8)
    with pytest.raises(
        ConfigError, match=r"2 rows x 65501 columns, expected at most 65,500 .* jpg"
    ):
        encode_image(row)
    assert encode_image(row, "png").startswith(b"\x89PNG")

    with pytest.raises(ConfigError, match=r"1000001 columns, expected at most 1,000,000 .* png"):
        encoded_picture("png", np.zeros((2, 1_000_001), np.uint8))
    assert encoded_picture("pgm", np.zeros((2, 1_000_001), np.uint8)).startswith(b"P5")

    long = np.zeros((1_000_001, 2))
    with pytest.raises(ConfigError, match="1000001 rows x 2 columns"):
        write_map(long, tmp_path / "long.png", origin_x=0, origin_y=0, step_x=1, step_y=1)
    assert not list(tmp_path.iterdir())
