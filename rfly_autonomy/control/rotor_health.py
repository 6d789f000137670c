# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Health of a vehicle's rotors and of the battery that turns them, and what it forbids."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from rfly_amphibious.sensors.samples import JointSamples
from rfly_amphibious.simulation.commands import Mode
from rfly_autonomy.control.attitude_controller import AttitudeController, MomentObserver
from rfly_autonomy.control.flight_modes import FlightModes
from rfly_autonomy.control.modes import FLYING
from rfly_autonomy.control.rotor_link import RotorLink
from rfly_autonomy.control.rotor_torque import RotorTorqueLaw
from rfly_autonomy.control.rotor_watch import RotorWatch
from rfly_common.arrays import Floats

ENCODER_TIMEOUT = 0.2
"""Age from which speeds of rotors are too old to compare with their commands, s."""


class RotorWitnesses(NamedTuple):
    """What shows how rotors turn besides their encoders."""

    force: float
    """Specific force along the body's z axis, m/s²; NaN: unknown."""

    observer: MomentObserver | None
    """Observer of the moments that the expected speeds leave open; None: unknown."""

    loads: Floats | None
    """Loads of the wheels, (wheels,), N; None: unknown."""

    climb: float
    """Speed along the body's z axis, m/s."""


class RotorHealth:
    """Health of the rotors that an attitude loop commands over a link."""

    def __init__(
        self, loop: AttitudeController, link: RotorLink, torque_law: RotorTorqueLaw | None
    ) -> None:
        """`torque_law`: that commands torques; None: speeds are commanded."""
        self._loop = loop
        self._link = link
        self._torque_law = torque_law
        self.reset()

    def reset(self) -> None:
        """Forget everything."""
        self.watch = RotorWatch(self._loop.params)
        """Watch over the rotors."""

        self.weak_battery = ""
        """Text about a battery that has ended a flight; it begins none until it is disarmed."""

    @property
    def warnings(self) -> dict[str, str]:
        """Texts about rotors, encoders and the link to the rotors, by the part's name."""
        return self.watch.warnings | self._link.warnings

    def refusal(self, wanted: Mode) -> str:
        """Return why a battery does not let a mode begin; "" if it does."""
        return self.weak_battery if wanted in FLYING else ""

    def forget(self, modes: FlightModes) -> None:
        """Forget what has failed: it is repaired, or else it will be noticed again."""
        self.weak_battery = ""
        if modes.failed_rotors or self.watch.lying:
            modes.set_failed_rotors(frozenset())
            self.watch.reset()

    def note_battery(self, modes: FlightModes) -> None:
        """Note in flight whether the battery is weak: the vehicle sinks more slowly with it."""
        self.weak_battery = self.weak_battery or self.watch.warnings.get("battery", "")
        modes.is_weak = bool(self.weak_battery)

    def check(
        self,
        joints: JointSamples | None,
        now: float,
        stepped_at: float,
        witnesses: RotorWitnesses,
        modes: FlightModes,
        *,
        failsafe: bool,
    ) -> None:
        """Find the rotors that do not follow their commands, and how late the link brings them.

        `joints`: new samples; None: no encoder delivers any. `now` and `stepped_at`: present time
        and that of the last step, s. `failsafe`: True while a fail-safe commands the rotors.
        """
        loop = self._loop
        watch = self.watch
        speeds = None if joints is None else self._measured_speeds(joints, now)
        if failsafe:
            watch.reset()
            return
        if joints is None or speeds is None:
            watch.update_unmeasured(now, loop.expected, witnesses.force, witnesses.observer)
            return

        time = float(joints.time[-1])
        ahead = time - stepped_at
        self._link.measure(speeds, ahead, watch.shows_delay, modes)
        watch.update(
            time,
            speeds,
            loop.expected,
            loop.commanded,
            witnesses.force,
            witnesses.observer,
            witnesses.loads,
            loop.command_age.possible(ahead),
            witnesses.climb,
        )
        loop.note_speeds(watch.believed)

    def _measured_speeds(self, joints: JointSamples, now: float) -> Floats | None:
        """Return the newest speeds that encoders show, (rotors,), rad/s.

        None if they are too old to show anything of the present commands.
        """
        time = float(joints.time[-1])
        if now - time > ENCODER_TIMEOUT or joints.rotor_rate.shape[1] != len(self._loop.expected):
            return None

        speeds = np.abs(joints.rotor_rate[-1])
        if self._torque_law is not None:
            sound = speeds.copy()
            sound[list(self.watch.lying)] = math.nan
            self._torque_law.measure(time, sound)
        return speeds
