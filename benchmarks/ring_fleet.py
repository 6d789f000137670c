# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""A fleet whose every place is known by a plain formula: circles over a map, and a clock in every
packet of 100.

Multi3DData100New carries no time. So the first vehicle of each hundred is a clock: an aircraft that
flies east from x = 0 at 1 m/s, whose place in the packet is the time of the packet's states (a
float32, good to 4 µs in the first two minutes). The others, nine rings of eleven copies, drive and
fly on circles. Nothing in here comes from the library that moves the fleet: angles are speed times
time over radius, and heights are the four samples around a point.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

PER_PACKET = 100
RINGS = 9
COPIES = 11
CLOCK_HEIGHT = 3000.0
CLOCK_SECONDS = 1000.0
CLOCK_SPEED = 1.0


class RingFleet:
    """A fleet of `vehicles`, a multiple of 100, with ids from 1.

    A clock leads each packet; rings of vehicles follow.
    """

    def __init__(self, vehicles: int, seed: int = 17, clock_seconds: float = CLOCK_SECONDS) -> None:
        if vehicles < PER_PACKET or vehicles % PER_PACKET:
            raise ValueError(f"vehicles: {vehicles}, expected a multiple of {PER_PACKET}")
        self.packets = vehicles // PER_PACKET
        self.clock_seconds = clock_seconds
        random = np.random.default_rng(seed)
        shape = (self.packets, RINGS)
        self.center = np.round(random.uniform(-2000.0, 2000.0, (*shape, 2)), 2)
        self.radius = np.round(random.uniform(20.0, 500.0, shape), 2)
        self.start_angle = np.round(random.uniform(0.0, 360.0, shape), 2)
        self.clockwise = random.random(shape) < 0.5
        self.speed = np.round(random.uniform(2.0, 20.0, shape), 2)
        self.delay = np.round(random.uniform(0.0, 2.0, shape), 2)
        self.delay_step = np.round(random.uniform(0.0, 1.0, shape), 2)
        self.spacing = np.round(random.uniform(0.0, 10.0, shape), 2)
        self.height = np.round(random.uniform(0.0, 100.0, shape), 2)
        self.kind = np.broadcast_to(np.arange(RINGS) % 3, shape)
        """0 on the ground, 1 a multirotor `height` above the ground, 2 a fixed-wing aircraft at z =
        1000 + `height`
        """

    def yaml(self) -> str:
        """Return the fleet file."""
        lines = ["version: 1", "vehicles:"]
        for packet in range(self.packets):
            first = PER_PACKET * packet + 1
            end = CLOCK_SPEED * self.clock_seconds
            lines.append(
                f"  - {{id: {first}, type: 3, kind: multirotor, altitude: {{absolute: "
                f"{CLOCK_HEIGHT}}}, "
                f"speed: {CLOCK_SPEED}, shape: {{type: line, from: [0.0, {packet}], to: [{end}, "
                f"{packet}]}}}}"
            )
            lines += [self._ring(packet, ring, first + 1 + COPIES * ring) for ring in range(RINGS)]
        return "\n".join(lines) + "\n"

    def _ring(self, packet: int, ring: int, first: int) -> str:
        """Return the entry of one ring in the fleet file."""
        index = packet, ring
        kind = int(self.kind[index])
        altitude = (
            "agl: 0.0",
            f"agl: {self.height[index]}",
            f"absolute: {1000.0 + self.height[index]}",
        )[kind]
        x, y = self.center[index]
        direction = "clockwise" if self.clockwise[index] else "counter_clockwise"

        return (
            f"  - {{id: {first}, type: 3, count: {COPIES}, kind: "
            f"{('ground', 'multirotor', 'fixed_wing')[kind]}, "
            f"altitude: {{{altitude}}}, speed: {self.speed[index]}, "
            f"spacing: {self.spacing[index]}, "
            f"delay: {{first: {self.delay[index]}, step: {self.delay_step[index]}}}, "
            f"shape: {{type: circle, center: [{x}, {y}], radius: {self.radius[index]}, direction: "
            f"{direction}, "
            f"start_angle_deg: {self.start_angle[index]}}}}}"
        )

    def positions(self, packet: NDArray[np.int64], t: Floats, terrain: Any) -> Floats:
        """Return the vehicles of packets (k,) at times t (k,), s: (k, 99, 3) ENU, m, no clocks.

        terrain: anything with heights (rows along east, columns along north), origin_x, origin_y,
        step_x, step_y.
        """
        copy = np.arange(COPIES)

        def per_ring(values: Any) -> Any:
            """Return the values of the packets' rings."""
            return values[packet][..., None]

        # the way round each circle
        driven = per_ring(self.speed) * np.maximum(
            t[:, None, None] - per_ring(self.delay) - copy * per_ring(self.delay_step), 0.0
        )
        turned = (driven - copy * per_ring(self.spacing)) / per_ring(self.radius)
        angle = np.radians(per_ring(self.start_angle)) + np.where(
            per_ring(self.clockwise), -turned, turned
        )

        x = per_ring(self.center[..., 0]) + per_ring(self.radius) * np.cos(angle)
        y = per_ring(self.center[..., 1]) + per_ring(self.radius) * np.sin(angle)

        # height by kind
        kind = per_ring(self.kind)
        height = per_ring(self.height)
        z = np.where(
            kind == 2,
            1000.0 + height,
            ground(terrain, x, y) + np.where(kind == 1, height, 0.0),
        )
        return np.stack([x, y, z], axis=-1).reshape(len(t), RINGS * COPIES, 3)


def ground(terrain: Any, x: Floats, y: Floats) -> Floats:
    """Return the bilinear height between the four samples around each point, all on the map."""
    u = (x - terrain.origin_x) / terrain.step_x
    v = (y - terrain.origin_y) / terrain.step_y
    i = np.floor(u).astype(int)
    j = np.floor(v).astype(int)

    a = u - i
    b = v - j
    z = terrain.heights.astype(float)
    near = (1 - b) * z[i, j] + b * z[i, j + 1]
    far = (1 - b) * z[i + 1, j] + b * z[i + 1, j + 1]
    return (1 - a) * near + a * far
