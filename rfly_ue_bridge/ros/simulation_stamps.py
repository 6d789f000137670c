# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Stamps of data whose times are s of CopterSim's clock."""

from __future__ import annotations

from typing import Any

from rclpy.node import Node

from rfly_common.errors import PacketError
from rfly_ue_bridge.sensors.frame_times import LATEST_S, FrameTimes, SimulationStarts


class SimulationStamps:
    """Stamps `by` the arrival of data, or by the simulation's time (parameter `stamp`).

    The node's clock is CopterSim's own, from 0, if it follows /clock. The methods are called in the
    receiver's thread.
    """

    def __init__(self, node: Node, by: str) -> None:
        self._clock: Any = node.get_clock()
        self._by = by
        self._starts = SimulationStarts()

    def take_heart_beat(self, datagram: bytes, _arrival_s: float) -> None:
        """Take CopterSim's heart-beat, the start of its clock; ignore other datagrams."""
        self._starts.hear(datagram, self._clock.now().nanoseconds * 1e-9)

    def stamp_ns(self, times: FrameTimes, copter_id: int, time_s: float) -> int:
        """Return the stamp of data of a vehicle that have just arrived.

        `times` are those of the same stream; a time below 0 is none. Raises PacketError
        `impossible_time` for one that is no number, or that no stamp can hold.
        """
        if not abs(time_s) < LATEST_S:
            raise PacketError("impossible_time", f"{time_s} s, expected less than {LATEST_S:g} s")
        now_ns: int = self._clock.now().nanoseconds
        if self._by == "arrival":
            return now_ns
        if self._clock.ros_time_is_active:
            return round(time_s * 1e9) if time_s >= 0.0 else now_ns

        stamp_s = times.stamp(time_s, now_ns * 1e-9, self._starts.of(copter_id))
        if not 0.0 <= stamp_s < LATEST_S:
            raise PacketError("impossible_time", f"{stamp_s} s since 1970")
        return round(stamp_s * 1e9)
