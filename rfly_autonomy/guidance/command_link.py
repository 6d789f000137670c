# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Link that carries the setpoints of a guide to the controllers, and its faults."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from rfly_amphibious.simulation.events import Event
from rfly_amphibious.simulation.faults import LINK, Fault, FaultKind
from rfly_autonomy.control.command_stream import CommandStream
from rfly_autonomy.control.setpoint import Setpoint


class CommandLink:
    """Link under the faults of a scenario. Losses depend on the seed alone."""

    def __init__(
        self, events: Iterable[Event], seed: int, timeout: float, period: float = math.nan
    ) -> None:
        """`timeout`: age at which the controllers take a command for lost, s.

        `period`: known time between setpoints, s.
        """
        self._faults = [e for e in events if isinstance(e, Fault) and e.part == LINK]
        self._generator = np.random.default_rng((seed, *LINK.encode()))
        self._timeout = timeout
        self._under_way: list[tuple[float, Setpoint]] = []
        """Setpoints, each with the time of its arrival, s."""

        self._sent = -math.inf
        self._arrived = -math.inf
        self._time = -math.inf
        self._stream = CommandStream(period)

    @property
    def is_lost(self) -> bool:
        """True if the newest setpoint to arrive was sent too long before the last one."""
        return self._sent - self._arrived > self._timeout

    @property
    def loses_most(self) -> bool:
        """True if most setpoints do not arrive, by those that do."""
        return self._stream.loses_most(self._time)

    def send(self, setpoint: Setpoint) -> None:
        """Send a setpoint at its time."""
        time = setpoint.time
        if not math.isfinite(self._sent):
            self._arrived = time
        self._sent = time
        arrival = time
        for fault in self._faults:
            if not fault.acts(time):
                continue
            if fault.kind is FaultKind.DELAYED:
                arrival += fault.value[0]
            elif fault.kind is FaultKind.OFF or self._generator.random() < fault.value[0]:
                return
        self._under_way.append((arrival, setpoint))

    def receive(self, time: float) -> list[Setpoint]:
        """Return the setpoints that arrive until `time` (s), without those older than others."""
        self._time = time
        if not self._under_way:
            return []
        due = [setpoint for arrival, setpoint in self._under_way if arrival <= time + 1e-9]
        self._under_way = [each for each in self._under_way if each[0] > time + 1e-9]
        newer = []
        for setpoint in due:
            if setpoint.time >= self._arrived:
                self._arrived = setpoint.time
                self._stream.hear(setpoint.time, time)
                newer.append(setpoint)
        return newer
