# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Rendering of a batch of environments: pictures from behind, or the browser window live.

The pictures are those of the suite's colour camera.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rfly_amphibious.dynamics.model import ModelState
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_collision.shapes.shape import Box, ConvexHull, Shape, Sphere
from rfly_common.arrays import Bools, Floats
from rfly_common.config.checks import check_choice
from rfly_common.frames import rotation_matrix
from rfly_common.imports import require
from rfly_lab.learning.land_air_batch import LandAirBatch
from rfly_sensing.cameras import CameraPose, ColorCamera
from rfly_sensing.neighbours import world_bodies
from rfly_sensing.range_sensor_parameters import ColorCameraParameters
from rfly_sensing.scene_rays import SceneBodies, SceneRays, joined

if TYPE_CHECKING:
    from rfly_lab.learning.batch_window import BatchWindow

HUMAN = "human"
"""The window in the browser, which each step moves on."""
PICTURES = "rgb_array"
"""Pictures, which `render` returns."""
RENDER_MODES = (HUMAN, PICTURES)
"""Ways to render."""

BEHIND = 4.0
"""Distance of the camera behind the vehicle, relative to the vehicle's reach."""
ABOVE = 2.0
"""Height of the camera above the vehicle, relative to the vehicle's reach."""
CLEAR = 0.5
"""Least height of the camera above the ground, m."""
SIDES = 16
"""Corners of a wheel or a rotor's disc."""
BODY = (0.75, 0.2, 0.15)
"""Colour of the body: red, green, blue, 0 … 1."""
WHEEL = (0.1, 0.1, 0.1)
"""Colour of the wheels."""
ROTOR = (0.3, 0.35, 0.4)
"""Colour of the rotors' discs."""
NEXT = (1.0, 0.85, 0.1)
"""Colour of the next target."""
LATER = (0.2, 0.45, 0.9)
"""Colour of the targets after it."""


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


class ChaseCamera:
    """Camera behind and above a vehicle of a batch, which shows it and its targets."""

    def __init__(self, batch: LandAirBatch) -> None:
        self._batch = batch
        self._camera = ColorCamera(ColorCameraParameters(), noise=False)
        self._parts = _parts(batch.params)
        self._reach = batch.params.reach
        self._objects = world_bodies(batch.objects)

    def picture(self, vehicle: int, others: Sequence[int] = ()) -> NDArray[np.uint8]:
        """Return what it sees behind a vehicle of it, its targets and others, RGB.

        The picture is (height, width, 3).
        """
        batch = self._batch
        state = self._state(vehicle)
        targets = batch.episodes.targets[vehicle, batch.episodes.target[vehicle] :]
        bodies = self._bodies([state, *map(self._state, others)], targets)
        return self._camera.image(0, self._pose(state), SceneRays(batch.terrain, bodies)).color

    def _state(self, vehicle: int) -> ModelState:
        """Return the state of a vehicle."""
        vehicles = self._batch.vehicles
        return ModelState(vehicles.x[vehicle], vehicles.memory[vehicle])

    def _pose(self, state: ModelState) -> CameraPose:
        """Return the camera's pose: it looks at the vehicle, level from side to side."""
        forward = rotation_matrix(state.orientation)[:, 0]
        yaw = math.atan2(forward[1], forward[0])
        back = BEHIND * self._reach
        offset = np.array((-back * math.cos(yaw), -back * math.sin(yaw), ABOVE * self._reach))
        eye = state.position + offset
        ground = float(self._batch.terrain.altitude(eye[0], eye[1]))
        eye[2] = max(eye[2], ground + CLEAR)

        x = state.position - eye
        x /= np.linalg.norm(x)
        y = np.array((-math.sin(yaw), math.cos(yaw), 0.0))
        return CameraPose(eye, np.column_stack([x, y, np.cross(x, y)]))

    def _bodies(self, states: Sequence[ModelState], targets: Floats) -> SceneBodies:
        """Return the parts of vehicles, and targets."""
        shapes = [shape for shape, _ in self._parts]
        colors = [color for _, color in self._parts] * len(states)

        parts = len(shapes)
        position = np.repeat([state.position for state in states], parts, axis=0)
        orientation = np.repeat([state.orientation for state in states], parts, axis=0)
        kind = np.tile(np.arange(parts), len(states))

        # targets
        upright = np.tile((0.0, 0.0, 0.0, 1.0), (len(targets), 1))
        colors += [NEXT, *[LATER] * (len(targets) - 1)]
        ball = Sphere(0.3 * self._reach)
        count = len(colors)
        own = SceneBodies(
            (*shapes, ball),
            np.concatenate([kind, np.full(len(targets), parts)]),
            np.concatenate([position, targets]),
            np.concatenate([orientation, upright]),
            np.zeros((count, 3)),
            np.zeros(count),
            np.arange(count),
            np.array(colors),
        )
        return joined([self._objects, own])


def _parts(p: VehicleParameters) -> list[tuple[Shape, tuple[float, float, float]]]:
    """Return the shapes of body, wheels and rotors, each with its colour."""
    turn = np.linspace(0.0, 2.0 * math.pi, SIDES, endpoint=False)
    c = np.tile(np.cos(turn), 2)
    s = np.tile(np.sin(turn), 2)
    side = np.repeat((1.0, -1.0), SIDES)
    width = 0.3 * p.wheel_radius
    wheel = np.column_stack([p.wheel_radius * c, width * side, p.wheel_radius * s])
    disc = np.column_stack([p.rotor_radius * c, p.rotor_radius * s, 0.02 * p.rotor_radius * side])
    return [
        (Box(p.body_box), BODY),
        *((ConvexHull(hub + wheel), WHEEL) for hub in p.hub_position),
        *((ConvexHull(hub + disc), ROTOR) for hub in p.rotor_position),
    ]
