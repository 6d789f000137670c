# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Pictures as the contents of files, by OpenCV."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import cv2
from numpy.typing import NDArray

from rfly_common.errors import ConfigError

_MOST = {"png": "1,000,000", "jpg": "65,500"}
"""Most rows and columns of OpenCV's writers, by format."""


def encoded_picture(form: str, pixels: NDArray[Any], options: Sequence[int] = ()) -> bytes:
    """Return pixels (rows, columns[, 3]) as a file of the form png, jpg or pgm; colours are BGR.

    `options` are OpenCV's flags and their values. Raise ConfigError for more than the form holds.
    """
    done, content = cv2.imencode(f".{form}", pixels, options)
    if not done:
        rows, columns = pixels.shape[:2]
        raise ConfigError(
            f"{rows} rows x {columns} columns, expected at most {_MOST.get(form, 'fewer')} each "
            f"in a {form}"
        )
    return content.tobytes()
