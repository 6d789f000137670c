# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The part of a program that answers requests for cameras and lidars in the window's scene.

It renders with what lies above this package, so the window gets it from whoever starts it.
"""

from __future__ import annotations

from typing import Protocol

from rfly_terrain.height_map.height_map import HeightMap
from rfly_terrain.world.weather import Weather
from rfly_viewer.scene.vehicle_table import WorldPoses


class SensorAnswering(Protocol):
    """Answers to requests. No call waits or raises."""

    @property
    def is_running(self) -> bool:
        """Return whether there are sensors, which want the scene often."""

    def show(self, terrain: HeightMap, poses: WorldPoses, weather: Weather) -> None:
        """Take over what the window shows now; the arrays stay as they are."""

    def request(self, datagram: bytes, source: str) -> None:
        """Start or change the sensor that a datagram from an IPv4 address requests."""

    def clear_sensors(self, seq_id: int | None = None) -> None:
        """Remove a sensor, or all."""

    def take_messages(self) -> list[str]:
        """Return lines for the window's log."""

    def close(self) -> None:
        """Stop; the thread ends after its frame."""
