# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Simulation: one vehicle with its sensors, stepped tick by tick under time-stamped commands.

docs/model, sections 11 and 12.1.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from rfly_amphibious.dynamics.model import (
    STILL,
    AmphibiousModel,
    Controls,
    Method,
    ModelState,
    Outputs,
)
from rfly_amphibious.dynamics.stepper import Stepper
from rfly_amphibious.dynamics.wind import Wind
from rfly_amphibious.dynamics.wind_field import WindField
from rfly_amphibious.sensors.samples import SensorSamples
from rfly_amphibious.sensors.sensor_parameters import SensorParameters
from rfly_amphibious.sensors.sensor_suite import SensorSuite
from rfly_amphibious.simulation.commands import (
    COMMAND_TIMEOUT,
    RotorCommand,
    WheelCommand,
    controls_of,
)
from rfly_amphibious.simulation.events import (
    Event,
    Gust,
    RotorFails,
    SensorOff,
    gust_wind,
    without_rotors,
)
from rfly_amphibious.simulation.faults import LINK, MOST_FAULTS, Fault, faulty_controls
from rfly_amphibious.simulation.power_system import PowerSystem
from rfly_amphibious.simulation.sensor_faults import SensorFaults
from rfly_amphibious.vehicle import state_layout
from rfly_common.arrays import Floats
from rfly_common.config.checks import finite_array, finite_number, unit_quaternion
from rfly_common.errors import CommandError, ConfigError
from rfly_common.frames import rotation_matrix


class FailSafe(Protocol):
    """What brings a vehicle down whose commands have become too old. docs/model, section 11.1."""

    def __call__(self, state: ModelState, outputs: Outputs | None = None) -> Controls:
        """Return the commands for a state.

        `outputs`: those of the last step, if the caller has them.
        """

    def lose_rotor(self, rotor: int) -> None:
        """Fly on without a rotor (from 0), as well as the others can."""


MakeFailSafe = Callable[[AmphibiousModel, float], FailSafe]
"""Maker of a fail-safe for a vehicle, which is asked for commands each period (s)."""

STEP = 0.001
"""Step of the integration, s."""
DEFAULT_STEPS = 4
"""Steps of a tick without an IMU, which would set it."""
BLOCK_TICKS = 1000
"""Ticks for which gusts are drawn at once."""

Start = tuple[float, float, float]
"""x east, m, y north, m, and heading, rad from east."""


class Simulation:
    """Vehicle and its sensors, with the fail-safe. A tick lasts one period of the IMU.

    `start`: a state, or the place of a vehicle that stands there. The same seed and the same
    commands at the same times give the same numbers, bit by bit. The vehicle stands braked before
    its first command. When an actuator's newest command is older than `command_timeout` (s of
    simulation time), the fail-safe takes over until `end_failsafe`: a controller, such as
    `rfly_autonomy.abort_pilot`.
    """

    def __init__(
        self,
        model: AmphibiousModel,
        sensors: SensorParameters,
        start: ModelState | Start = (0.0, 0.0, 0.0),
        *,
        fail_safe: MakeFailSafe,
        wind: Wind = STILL,
        seed: int | Sequence[int] = 0,
        noise: bool = True,
        method: Method = "rk4",
        geo_origin: Sequence[float] | None = None,
        command_timeout: float = COMMAND_TIMEOUT,
        events: Sequence[Event] = (),
    ) -> None:
        finite_number("command_timeout", command_timeout, "s", above=0.0)
        self.model = model
        self.wind = wind
        self.method = method
        self.start = start if isinstance(start, ModelState) else model.standing(*start)
        self.sensors = SensorSuite(
            model, sensors, seed=seed, noise=noise, step=STEP, geo_origin=geo_origin
        )
        self.steps = DEFAULT_STEPS
        """Number of steps of a tick."""
        if sensors.imu is not None:
            self.steps = round(1.0 / (sensors.imu.rate * STEP))
        self.command_timeout = command_timeout
        self._make_fail_safe = fail_safe
        self.wind_disturbance = np.zeros(3)
        """Wind on top of mean, gusts and events, from the next tick on, (3,), m/s, ENU."""

        columns = state_layout.state_columns(model.params.rotors, len(model.params.wheels))
        self._rotor_columns = columns["rotor_speed"]
        self._gusts = [event for event in events if isinstance(event, Gust)]
        self._sensor_outages = [event for event in events if isinstance(event, SensorOff)]
        self._rotor_failures = [event for event in events if isinstance(event, RotorFails)]
        for event in self._sensor_outages:
            self.sensors.switch(event.sensor, True)  # raises an error for an unknown sensor
        # the link lies between guide and controllers, outside of the vehicle
        self._scheduled_faults = [
            event for event in events if isinstance(event, Fault) and event.part != LINK
        ]
        self._faults: list[Fault] = []
        self._sensor_faults = SensorFaults(self.sensors, seed)
        self._braked_wheels = WheelCommand.braked(model.params, 0.0, model.params.max_brake_torque)
        self.dropped = 0
        """Number of commands that were older than the one already in use."""
        self._wind_field = WindField(model, wind)
        self._done = 0
        """Number of steps since the time 0."""
        self._failed: list[int] = []
        self._sensors_off: set[str] = set()
        self._rotors: RotorCommand | None = None
        self._wheels: WheelCommand | None = None
        self._controls: Controls | None = None
        self._applied = Controls()
        self._failsafe: FailSafe | None = None
        self.power = PowerSystem(model.params)
        """Battery and the energy drawn."""
        self._set_state(self.start)
        for fault in self._scheduled_faults:
            self.inject(fault)

    # present state

    @property
    def period(self) -> float:
        """Period of a tick, s."""
        return self.steps * STEP

    @property
    def ticks(self) -> int:
        """Number of ticks since the time 0."""
        return self._done // self.steps

    @property
    def time(self) -> float:
        """Simulation time, s."""
        return self._done * STEP

    @property
    def time_ns(self) -> int:
        """Simulation time in whole nanoseconds."""
        return self._done * round(STEP * 1e9)

    @property
    def state(self) -> ModelState:
        """Present state, as views that change with the next tick."""
        return ModelState(*self._stepper.arrays, self.time)

    @property
    def outputs(self) -> Outputs:
        """Outputs of the last step; before the first tick those of the start."""
        return self._outputs

    @property
    def step_states(self) -> tuple[Floats, Floats]:
        """Times (k,) and states (k, states) of the last tick's steps; empty before the first."""
        x = self._step_states[0]
        steps = np.arange(self._done - len(x) + 1, self._done + 1)
        return steps.astype(np.float64) * STEP, x

    @property
    def crashed(self) -> bool:
        """True if the vehicle has crashed.

        Its motors are then off and its brakes on, whatever the commands are.
        """
        return bool(self.state.crashed)

    @property
    def crash_cause(self) -> str:
        """Part that broke, and how; "" before a crash."""
        return self.state.crash_cause

    @property
    def failsafe(self) -> bool:
        """True if the fail-safe acts instead of commands."""
        return self._failsafe is not None

    @property
    def failed_rotors(self) -> tuple[int, ...]:
        """Rotors (from 0) that do not turn any more."""
        return tuple(self._failed)

    @property
    def wind_now(self) -> Floats:
        """Wind with mean, gusts and events, (3,), m/s, ENU."""
        return self._mean_wind() + self._gust()

    def derivative(self) -> Floats:
        """Return dx/dt now, (states,), with the commands of the last tick."""
        return self.model.evaluate(self.state, self._applied, self._mean_wind())[0]

    def _mean_wind(self) -> Floats:
        """Return the wind without gusts of the model, (3,), m/s, ENU."""
        return self._total_disturbance() + self.wind.mean

    def _gust(self) -> Floats:
        """Return the gust of the model, (3,), m/s, ENU."""
        return self.state.memory[state_layout.GUST : state_layout.GUST + 3]

    # commands

    def command_rotors(self, command: RotorCommand) -> bool:
        """Use a command; return False, and do not use it, where it is older than the present one.

        Raise CommandError for a bad command.
        """
        if not self._is_new(command, self._rotors):
            return False
        self._rotors = command
        self._controls = None
        return True

    def command_wheels(self, command: WheelCommand) -> bool:
        """Use a command, as `command_rotors` does."""
        if not self._is_new(command, self._wheels):
            return False
        self._wheels = command
        self._controls = None
        return True

    def _is_new(
        self, command: RotorCommand | WheelCommand, last: RotorCommand | WheelCommand | None
    ) -> bool:
        """Return whether a command is not older than the last one; count one that is.

        Raise CommandError for a bad command, and for one from the future.
        """
        command.check(self.model.params)
        if command.time > self.time + 0.5 * STEP:
            raise CommandError(
                f"its stamp is {command.time:.6g} s, the simulation's time {self.time:.6g} s"
            )
        is_new = last is None or command.time >= last.time
        self.dropped += not is_new
        return is_new

    def stale(self, ahead: float = 0.0) -> list[str]:
        """Return the commands that will be too old in `ahead` s, each with its age.

        The list is empty while new commands arrive for all actuators that have had one.
        """
        ages = [
            (name, self.time + ahead - command.time)
            for name, command in (("rotors", self._rotors), ("wheels", self._wheels))
            if command is not None
        ]
        return [
            f"{name}: {age:.3f} s" for name, age in ages if age > self.command_timeout + 0.5 * STEP
        ]

    def end_failsafe(self) -> str:
        """Obey commands again. Return "", or why not: some commands are still too old."""
        stale = self.stale()
        if stale:
            return f"commands are older than {self.command_timeout:g} s ({', '.join(stale)})"
        self._failsafe = None
        return ""

    def fail_rotor(self, rotor: int) -> None:
        """Stop driving a rotor (from 0). Raise ConfigError for a number that is too large."""
        if not 0 <= rotor < self.model.params.rotors:
            raise ConfigError(f"rotor {rotor}: there are 0 … {self.model.params.rotors - 1}")
        if rotor not in self._failed:
            self._failed.append(rotor)
            self._controls = None
            if self._failsafe is not None:
                self._failsafe.lose_rotor(rotor)

    @property
    def acting_faults(self) -> list[Fault]:
        """Faults that act now, in the order in which they were scheduled or injected."""
        soon = self.time + 0.5 * STEP
        return [fault for fault in self._faults if fault.acts(soon)]

    def inject(self, fault: Fault) -> None:
        """Schedule a fault, until the next reset.

        Raise ConfigError for one that this vehicle or its sensors cannot have.
        """
        fault.check(self.model.params)
        if fault.part == LINK:
            raise ConfigError(
                "part: the link's faults belong into scenarios; no command uses it here"
            )
        if fault.is_of_sensor and fault.part not in self.sensors.parameters.sensors():
            raise ConfigError(f"part: {fault.part!r} is not among this vehicle's sensors")
        self._faults = [known for known in self._faults if not known.has_ended(self.time)]
        if len(self._faults) >= MOST_FAULTS:
            raise ConfigError(f"there are {MOST_FAULTS} faults already; mend some first")
        self._faults.append(fault)

    def mend(self, part: str) -> int:
        """End all faults of a part that have begun. Return their number."""
        acting = [fault for fault in self.acting_faults if fault.part == part]
        self._faults = [fault for fault in self._faults if fault not in acting]
        return len(acting)

    # progress

    def tick(self) -> SensorSamples:
        """Simulate one period; return the samples that arrived.

        Raise DynamicsError as the model does.
        """
        begin = self.time
        self._apply_events(begin)
        if self._failsafe is None and self.stale():
            self._failsafe = self._make_fail_safe(self.model, self.period)
            for rotor in self._failed:
                self._failsafe.lose_rotor(rotor)
        x, memory = self._stepper.arrays
        before = ModelState(x.copy(), memory.copy(), begin)
        faults = self.acting_faults
        spins = before.x[self._rotor_columns]
        controls = faulty_controls(self._commanded(before), faults, self.model.params, spins)
        self.power.suffer(faults)
        controls = self.power.limited(controls)
        self._applied = controls
        disturbance = self._total_disturbance()

        if self._stepper.done == self._block:
            self._new_block(before)
        self._stepper.advance(controls, self.steps, disturbance)
        self._done += self.steps
        self._step_states = self._stepper.step_states
        self._outputs = self._stepper.outputs
        self.power.draw(self._stepper.arrays[0], self._outputs, self.period)

        wind = self.wind
        if disturbance.any():
            wind = dataclasses.replace(wind, mean=np.add(wind.mean, disturbance))
        sensed = self.sensors.observe(before, *self._step_states, controls, wind)
        return self._sensor_faults.apply(sensed, faults, self.time)

    def _apply_events(self, now: float) -> None:
        """Let rotors fail and sensors fall silent or come back."""
        soon = now + 0.5 * STEP
        for failure in self._rotor_failures:
            if failure.time <= soon:
                self.fail_rotor(failure.rotor)
        for outage in self._sensor_outages:
            off = outage.off(soon)
            if off == (outage.sensor in self._sensors_off):
                continue
            if off:
                self._sensors_off.add(outage.sensor)
            else:
                self._sensors_off.discard(outage.sensor)
            self.sensors.switch(outage.sensor, not off)

    def _total_disturbance(self) -> Floats:
        """Return the wind on top of the stated mean and its gusts, (3,), m/s, ENU."""
        local = self._wind_field.change(self.state.position)
        return gust_wind(self._gusts, self.time) + self.wind_disturbance + local

    def _commanded(self, state: ModelState) -> Controls:
        """Return the controls for the next tick."""
        rotors = self.model.params.rotors
        if self._failsafe is not None:
            return without_rotors(self._failsafe(state, self._outputs), self._failed, rotors)
        if self._controls is None:
            wheels = self._wheels or self._braked_wheels
            controls = controls_of(self.model.params, self._rotors, wheels)
            self._controls = without_rotors(controls, self._failed, rotors)
        return self._controls

    def _new_block(self, begin: ModelState) -> None:
        """Draw gusts for the next ticks."""
        self._block = BLOCK_TICKS * self.steps
        self._stepper = Stepper(
            self.model, begin, self._block, STEP, self.wind, self.method, keep_steps=True
        )

    # reset

    def reset(self, *, time: bool = True, state: bool = True) -> None:
        """Return to the start: its `time`, its `state`, or both.

        The time begins at 0 again with the same noise and events. Commands are forgotten and the
        fail-safe ends in any case.
        """
        begin = self.start if state else self.state
        self._faults = list(self._scheduled_faults)
        if time:
            self._done = 0
            self.sensors.reset()
            self._sensor_faults.reset()
            self._sensors_off = set()
        if state:
            self._failed = []
            self.power = PowerSystem(self.model.params)
        self._rotors = None
        self._wheels = None
        self._controls = None
        self._failsafe = None
        self._applied = Controls()
        self._set_state(begin)

    def _set_state(self, state: ModelState) -> None:
        """Continue from a state."""
        begin = ModelState(np.array(state.x), np.array(state.memory), self.time)
        self._new_block(begin)
        self._outputs = self.model.outputs(begin, wind=self.wind.mean)
        no_memories = np.empty((0, begin.memory.size))
        self._step_states = (np.empty((0, begin.x.size)), no_memories)

    def set_pose(
        self,
        position: ArrayLike,
        orientation: ArrayLike,
        velocity: ArrayLike = (0.0, 0.0, 0.0),
        rates: ArrayLike = (0.0, 0.0, 0.0),
    ) -> None:
        """Move the vehicle: position (3,) m, orientation (4,) x y z w, velocity (3,) m/s, world.

        `rates` (3,) are in rad/s, body axes. Wheels roll along, struts stay, a crash is forgotten.
        Raise ConfigError for numbers that can't be.
        """
        x = np.array(self.state.x)
        memory = np.array(self.state.memory)

        parts = (
            ("position", position, state_layout.POSITION),
            ("velocity", velocity, state_layout.VELOCITY),
            ("rates", rates, state_layout.RATES),
        )
        for name, value, first in parts:
            x[first : first + 3] = finite_array(name, value, (3,))
        x[state_layout.QUATERNION_XYZW] = unit_quaternion("orientation", orientation)

        # wheels roll along
        params = self.model.params
        wheels = len(params.wheels)
        columns = state_layout.state_columns(params.rotors, wheels)
        forward = rotation_matrix(x[state_layout.QUATERNION_XYZW])[:, 0]
        speed = float(forward @ x[state_layout.VELOCITY : state_layout.VELOCITY + 3])
        rolling = speed / params.rolling_radius
        x[columns["wheel_speed"]] = rolling + x[state_layout.RATES + 1]
        x[columns["tyre_x"]] = 0.0
        x[columns["tyre_y"]] = 0.0

        memory[state_layout.OVERTURNED] = 0.0
        memory[state_layout.CRASHED] = 0.0
        memory[state_layout.memory_columns(wheels)["brake_acting"]] = 0.0
        self._set_state(ModelState(x, memory))
