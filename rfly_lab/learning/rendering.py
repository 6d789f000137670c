# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Rendering of a batch of environments: pictures from behind, or the browser window live."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rfly_common.arrays import Bools
from rfly_common.config.checks import check_choice
from rfly_common.imports import require
from rfly_lab.learning.chase_camera import ChaseCamera
from rfly_lab.learning.land_air_batch import LandAirBatch

if TYPE_CHECKING:
    from rfly_lab.learning.batch_window import BatchWindow

HUMAN = "human"
"""The window in the browser, which each step moves on."""
PICTURES = "rgb_array"
"""Pictures, which `render` returns."""
RENDER_MODES = (HUMAN, PICTURES)
"""Ways to render."""


class Rendering:
    """Pictures that an environment renders of its batch, by its `render_mode`; None: nothing.

    Raise ConfigError for a mode that there isn't, and for the window without viser.
    """

    def __init__(self, batch: LandAirBatch, render_mode: str | None) -> None:
        if render_mode is not None:
            check_choice("render_mode", render_mode, RENDER_MODES)
        if render_mode == HUMAN:
            require("viser", "render_mode human")
        self._batch = batch
        self._mode = render_mode
        self._camera: ChaseCamera | None = None
        self.window: BatchWindow | None = None
        """The window in the browser, once it is open."""

    def show(self, is_there: Bools | None = None) -> None:
        """Show how the vehicles are now, or those that are still there, (n,), in the window.

        It opens at the first call. Two calls are at least a period of the batch apart: this waits.
        """
        if self._mode != HUMAN:
            return
        if self.window is None:
            from rfly_lab.learning.batch_window import BatchWindow

            self.window = BatchWindow(self._batch)
        self.window.show(is_there)

    def picture(self, vehicle: int, others: Sequence[int] = ()) -> NDArray[np.uint8]:
        """Return what a camera behind a vehicle sees of it and others, (height, width, 3), RGB."""
        if self._camera is None:
            self._camera = ChaseCamera(self._batch)
        return self._camera.picture(vehicle, others)

    def close(self) -> None:
        """Close the window."""
        if self.window is not None:
            self.window.close()
            self.window = None
