# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Motion controller as a whole: from samples by estimator, guide and controllers to commands.

A link with its faults carries the guide's setpoints to the controllers.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from rfly_amphibious.scenarios.scenario import Scenario
from rfly_amphibious.sensors.samples import SensorSamples
from rfly_amphibious.sensors.sensor_parameters import SensorParameters
from rfly_amphibious.simulation.commands import Mode, RotorCommand, WheelCommand
from rfly_amphibious.simulation.events import Event
from rfly_amphibious.simulation.faults import LINK, Fault, FaultKind
from rfly_autonomy.control.chassis_controller import ChassisController
from rfly_autonomy.control.command_stream import CommandStream
from rfly_autonomy.control.flight_controller import FlightController
from rfly_autonomy.control.modes import DRIVEN
from rfly_autonomy.control.setpoint import Setpoint
from rfly_autonomy.estimation.estimate import Estimate
from rfly_autonomy.estimation.estimator import StateEstimator
from rfly_autonomy.estimation.estimator_parameters import EstimatorParameters
from rfly_autonomy.guidance.manoeuvre import ManoeuvreGuide
from rfly_autonomy.guidance.mission_guide import MissionGuide
from rfly_missions.followers.land_air import ModeRequests


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
        self._stream = CommandStream(period, timeout)

    @property
    def is_lost(self) -> bool:
        """True if the newest setpoint to arrive was sent too long before the last one."""
        return self._sent - self._arrived > self._timeout

    @property
    def loses_most(self) -> bool:
        """True if most setpoints do not arrive, by those that do."""
        return self._stream.loses_most(self._time)

    def rest(self) -> None:
        """Judge no gap until the next setpoint: there is nothing to answer."""
        self._stream.rest()

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


GUIDE_PERIOD = 0.02
"""Time between setpoints of the guide, s."""


class OnBoard:
    """Motion controller of a scenario's vehicle: it sees samples of sensors, and never the truth.

    It is what state_estimator_node, guidance_node, flight_control_node and chassis_control_node are
    together in lock-step, without ROS.
    """

    def __init__(
        self, scenario: Scenario, sensors: SensorParameters, estimator: EstimatorParameters
    ) -> None:
        params = scenario.params
        self.estimator = StateEstimator(estimator, sensors, params, terrain=scenario.terrain)
        self.guide: MissionGuide | ManoeuvreGuide
        if scenario.manoeuvre is None:
            solids = None if scenario.world is None else scenario.world.solids
            self.guide = MissionGuide(scenario.legs, params, scenario.terrain, solids=solids)
        else:
            self.guide = ManoeuvreGuide(scenario.manoeuvre, params)

        self.flight = FlightController(params, sensors, rotor_command=scenario.rotor_command)
        self.chassis = ChassisController(params)
        self.estimate: Estimate | None = None
        self.refused = ""
        """Reason for refusing the last request, if it was refused."""

        self.link = CommandLink(
            scenario.events, scenario.wind.seed, self.flight.command_timeout, GUIDE_PERIOD
        )
        self._guide_at = -math.inf
        self._estimated_at = -math.inf
        """Time of the last tick with a newer estimate, s."""

        self._mode_requests = ModeRequests()

    @property
    def faults(self) -> dict[str, str]:
        """Texts about the parts that estimator and controllers find at fault, by part.

        A rotor is "rotor 1" …; the reason of an aborted mission is that of the part "ABORT".
        """
        watch = self.flight.rotor_watch
        found = self.flight.warnings
        for rotor in self.flight.failed_rotors:
            name = f"rotor {rotor + 1}"
            found[name] = watch.failed.get(rotor, f"{name} failed")
        if self.link.loses_most:
            found["link"] = "the link loses many motion commands"
        elif self.link.is_lost:
            found["link"] = "the link brings no motion commands in time"
        if isinstance(self.guide, MissionGuide) and self.guide.gauge_fault:
            found["battery_gauge"] = self.guide.gauge_fault
        if self.chassis.steering_watch.text:
            found["steering"] = f"{self.chassis.steering_watch.text}: it stops"
        found |= self.chassis.wheel_watch.faults
        for part, text in self.estimator.faults.items():
            found[part] = f"{part} {text}"
        if self.flight.mode is Mode.ABORT:
            found["ABORT"] = f"ABORT: {self.flight.reason}"
        return found

    def tick(
        self, time: float, samples: SensorSamples, dt: float
    ) -> tuple[RotorCommand, WheelCommand]:
        """Return the commands that answer a tick, which ended at `time` and took dt seconds."""
        now = self.estimator.update(samples)
        if now is not None and (self.estimate is None or now.time > self.estimate.time):
            self._estimated_at = time
        elif time - self._estimated_at > GUIDE_PERIOD:
            self.link.rest()
        self.estimate = now
        for controller in (self.flight, self.chassis):
            controller.advance_clock(time)
            controller.sense(samples)

        # guide
        due = now is not None and time >= self._guide_at - 1e-9
        if now is not None and due and "estimate" not in self.flight.missing:
            self._guide_at = time + GUIDE_PERIOD
            self.link.send(self.guide.step(now, self.flight.mode))
        for setpoint in self.link.receive(time):
            self._apply(setpoint)

        # controllers
        rotors = self.flight.step(now, dt)
        wheels = self.chassis.step(now, self.flight.mode, dt)
        if isinstance(self.guide, ManoeuvreGuide):
            rotors, wheels = self.guide.superimpose(time, self.flight.mode, rotors, wheels)
            self.flight.note_command(rotors.value)
        return rotors, wheels

    def _apply(self, setpoint: Setpoint) -> None:
        """Pass a setpoint to the controllers."""
        if self.flight.mode in DRIVEN:
            self.chassis.set_speed(setpoint.speed, setpoint.steering, setpoint.time)
        if self.flight.mode is Mode.DRIVE:
            self.chassis.set_assist(setpoint.assist, setpoint.time)
            self.flight.set_assist(setpoint.assist, setpoint.time)
        elif setpoint.target is not None:
            self.flight.set_target(setpoint.target, setpoint.velocity, setpoint.yaw, setpoint.time)

        # ask for a mode until it comes
        if self._mode_requests.is_due(setpoint.request, setpoint.time):
            self.flight.no_power = self.chassis.wheel_watch.no_power
            self.refused = self.flight.request(setpoint.request)
