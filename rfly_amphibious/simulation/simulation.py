"""Simulation: one vehicle with its sensors, stepped tick by tick under time-stamped commands.

docs/model, sections 11 and 12.1.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rfly_amphibious.control.commands import RotorCommand, WheelCommand, controls_of
from rfly_amphibious.control.modes import Mode
from rfly_amphibious.control.pilot import Pilot, timed_setpoints
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
from rfly_amphibious.sensors.samples import SensorSamples
from rfly_amphibious.sensors.sensor_parameters import SensorParameters
from rfly_amphibious.sensors.sensor_suite import SensorSuite
from rfly_amphibious.simulation.events import (
    Event,
    Gust,
    RotorFails,
    SensorOff,
    gust_wind,
    without_rotors,
)
from rfly_amphibious.vehicle import state_layout as at
from rfly_common.arrays import Floats
from rfly_common.config.checks import finite_array, finite_number, unit_quaternion
from rfly_common.errors import CommandError, ConfigError
from rfly_common.frames import rotation_matrix


class FailSafe:
    """A pilot in ABORT: level, 0.5 m/s down, brakes after contact. docs/model, section 11.1."""

    def __init__(self, model: AmphibiousModel, period: float, failed: Iterable[int] = ()) -> None:
        """`failed`: rotors (from 0) that turn no more."""
        self._pilot = Pilot(model, timed_setpoints([]), Mode.ABORT, period)
        for rotor in failed:
            self.lose_rotor(rotor)

    def __call__(self, state: ModelState, outputs: Outputs | None = None) -> Controls:
        """The commands from a state on; `outputs`: those of the last step, where the caller has
        them.
        """
        return self._pilot(state, outputs)

    def lose_rotor(self, rotor: int) -> None:
        """Rotor (from 0) turns no more: the others do what they can."""
        self._pilot.lose_rotor(rotor)

    def save(self) -> dict[str, Any]:
        """All that its next commands depend on beside the vehicle's state, fit for JSON."""
        modes = self._pilot.flight_modes
        logic = self._pilot.logic
        return {
            "place": modes.position.tolist(),
            "attitude": modes.attitude.tolist(),
            "integral": modes.position_controller.integral.tolist(),
            "numbers": [
                modes.yaw,
                modes.thrust,
                logic.contact.load_share,
                logic.contact.wheels_down,
                logic.since,
            ],
            "flags": [modes.touched, not self._pilot.entered],
            "failed": sorted(modes.failed_rotors),
        }

    @classmethod
    def restored(cls, model: AmphibiousModel, period: float, saved: dict[str, Any]) -> FailSafe:
        """One that goes on from `save`. Raises ConfigError where it is none."""
        try:
            made = cls(model, period, [int(rotor) for rotor in saved["failed"]])
            modes = made._pilot.flight_modes
            logic = made._pilot.logic
            modes.position, modes.attitude = (
                np.array(saved[key], float) for key in ("place", "attitude")
            )
            modes.position_controller.integral = np.array(saved["integral"], float)
            modes.yaw, modes.thrust, load_share, wheels_down, logic.since = saved["numbers"]
            logic.contact.load_share = load_share
            logic.contact.wheels_down = wheels_down
            modes.touched, fresh = map(bool, saved["flags"])
            made._pilot.entered = not fresh
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise ConfigError(f"no saved state of a failsafe ({error!r})") from None
        return made


STEP = 0.001
"""s"""
DEFAULT_STEPS = 4
"""of a tick, where there is no IMU to set it"""
COMMAND_TIMEOUT = 0.2
"""s of simulation time"""
BLOCK_TICKS = 1000
"""for which gusts are drawn at once"""

Place = tuple[float, float, float]


class Simulation:
    """The plant and its sensors, with the fail-safe. A tick lasts one period of the IMU.

    `start`: a state, or x east, y north and heading (rad from east) of a vehicle that stands there.
    The same seed and the same commands at the same times give the same numbers, bit by bit. Before
    its first command the vehicle stands braked. An actuator whose newest command is older than
    `command_timeout` (s of simulation time) brings the fail-safe, which lasts until `end_failsafe`.
    """

    def __init__(
        self,
        model: AmphibiousModel,
        sensors: SensorParameters,
        start: ModelState | Place = (0.0, 0.0, 0.0),
        *,
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
        self.steps = (
            DEFAULT_STEPS if sensors.imu is None else round(1.0 / (sensors.imu.rate * STEP))
        )
        """of a tick"""
        self.command_timeout = command_timeout
        self.wind_disturbance = np.zeros(3)
        """(3,) m/s, ENU: wind on top of mean, gusts and events, from the next tick on"""
        self._gusts = [event for event in events if isinstance(event, Gust)]
        self._sensor_outages = [event for event in events if isinstance(event, SensorOff)]
        self._rotor_failures = [event for event in events if isinstance(event, RotorFails)]
        for event in self._sensor_outages:
            self.sensors.switch(event.sensor, True)  # raises for a sensor that is not there
        self._braked_wheels = WheelCommand.braked(model.params, 0.0, model.params.max_brake_torque)
        self._fresh_sensors = self.sensors.save()
        self.dropped = 0
        """commands older than one that was there already"""
        self._done = 0
        """steps"""
        self._failed: list[int] = []
        self._sensors_off: set[str] = set()
        self._rotors: RotorCommand | None = None
        self._wheels: WheelCommand | None = None
        self._controls: Controls | None = None
        self._applied = Controls()
        self._failsafe: FailSafe | None = None
        self._set_state(self.start)

    # what there is

    @property
    def period(self) -> float:
        """s of a tick."""
        return self.steps * STEP

    @property
    def ticks(self) -> int:
        """Since the time 0."""
        return self._done // self.steps

    @property
    def time(self) -> float:
        """s."""
        return self._done * STEP

    @property
    def time_ns(self) -> int:
        """The same in whole nanoseconds."""
        return self._done * round(STEP * 1e9)

    @property
    def state(self) -> ModelState:
        """Views of what is there now: they change with the next tick."""
        now = self._stepper.state
        return ModelState(now.x, now.memory, self.time)

    @property
    def outputs(self) -> Outputs:
        """Of the last step; before the first tick those of the start."""
        return self._outputs

    @property
    def step_states(self) -> tuple[Floats, Floats]:
        """Times (k,) and states (k, states) of every step of the last tick; before the first tick:
        none.
        """
        x = self._step_states[0]
        steps = np.arange(self._done - len(x) + 1, self._done + 1)
        return steps.astype(np.float64) * STEP, x

    @property
    def crashed(self) -> bool:
        """Whether the vehicle has crashed: its motors are off, its brakes on, whatever is
        commanded.
        """
        return bool(self.state.crashed)

    @property
    def crash_cause(self) -> str:
        """Which part broke, and how; "" before a crash."""
        return self.state.crash_cause

    @property
    def failsafe(self) -> bool:
        """Whether the fail-safe acts instead of commands."""
        return self._failsafe is not None

    @property
    def failed_rotors(self) -> tuple[int, ...]:
        """Rotors (from 0) that turn no more."""
        return tuple(self._failed)

    @property
    def wind_now(self) -> Floats:
        """(3,) m/s, ENU: mean, gusts and events."""
        return self._total_disturbance() + self.wind.mean + self.state.memory[at.GUST : at.GUST + 3]

    def derivative(self) -> Floats:
        """(states,) dx/dt now, with the commands of the last tick."""
        wind = self.wind_now - self.state.memory[at.GUST : at.GUST + 3]
        return self.model.evaluate(self.state, self._applied, wind)[0]

    # what is commanded

    def command_rotors(self, command: RotorCommand) -> bool:
        """Takes a command; False where it is older than the one that is there. Raises CommandError
        for a bad one.
        """
        command.check(self.model.params)
        self._check_time(command.time)
        if self._rotors is not None and command.time < self._rotors.time:
            self.dropped += 1
            return False
        self._rotors = command
        self._controls = None
        return True

    def command_wheels(self, command: WheelCommand) -> bool:
        """As `command_rotors`."""
        command.check(self.model.params)
        self._check_time(command.time)
        if self._wheels is not None and command.time < self._wheels.time:
            self.dropped += 1
            return False
        self._wheels = command
        self._controls = None
        return True

    def _check_time(self, time: float) -> None:
        if time > self.time + 0.5 * STEP:
            raise CommandError(
                f"its stamp is {time:.6g} s, the simulation's time {self.time:.6g} s"
            )

    def stale(self, ahead: float = 0.0) -> list[str]:
        """Which commands are too old (`ahead` s from now), and how old: [] while all that have ever
        come still come.
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
        """Commands count again. "", or why not: some are still too old."""
        stale = self.stale()
        if stale:
            return f"commands are older than {self.command_timeout:g} s ({', '.join(stale)})"
        self._failsafe = None
        return ""

    def fail_rotor(self, rotor: int) -> None:
        """Rotor (from 0) is driven no more. Raises ConfigError where there is none of this number."""
        if not 0 <= rotor < self.model.params.rotors:
            raise ConfigError(f"rotor {rotor}: there are 0 … {self.model.params.rotors - 1}")
        if rotor not in self._failed:
            self._failed.append(rotor)
            self._controls = None
            if self._failsafe is not None:
                self._failsafe.lose_rotor(rotor)

    # going on

    def tick(self) -> SensorSamples:
        """One period on: what became available in it. Raises DynamicsError as the model does."""
        begin = self.time
        self._apply_events(begin)
        if self._failsafe is None and self.stale():
            self._failsafe = FailSafe(self.model, self.period, self._failed)
        before = ModelState(self.state.x.copy(), self.state.memory.copy(), begin)
        self._applied = controls = self._commanded(before)
        disturbance = self._total_disturbance()
        if self._stepper.done == self._block:
            self._new_block(before)
        self._stepper.advance(controls, self.steps, disturbance)
        self._done += self.steps
        self._step_states = self._stepper.step_states
        self._outputs = self._stepper.outputs
        wind = self.wind
        if disturbance.any():
            wind = dataclasses.replace(wind, mean=np.add(wind.mean, disturbance))
        return self.sensors.observe(before, *self._step_states, controls, wind)

    def _apply_events(self, now: float) -> None:
        for failure in self._rotor_failures:
            if failure.time <= now + 0.5 * STEP:
                self.fail_rotor(failure.rotor)
        for outage in self._sensor_outages:
            off = outage.off(now + 0.5 * STEP)
            if off != (outage.sensor in self._sensors_off):
                (self._sensors_off.add if off else self._sensors_off.discard)(outage.sensor)
                self.sensors.switch(outage.sensor, not off)

    def _total_disturbance(self) -> Floats:
        return gust_wind(self._gusts, self.time) + self.wind_disturbance

    def _commanded(self, state: ModelState) -> Controls:
        if self._failsafe is not None:
            return without_rotors(
                self._failsafe(state, self._outputs), self._failed, self.model.params.rotors
            )
        if self._controls is None:
            controls = controls_of(self._rotors, self._wheels or self._braked_wheels)
            self._controls = without_rotors(controls, self._failed, self.model.params.rotors)
        return self._controls

    def _new_block(self, begin: ModelState) -> None:
        self._block = BLOCK_TICKS * self.steps
        self._stepper = Stepper(
            self.model, begin, self._block, STEP, self.wind, self.method, keep_steps=True
        )

    # reset

    def reset(self, *, time: bool = True, state: bool = True) -> None:
        """To the start: its `time`, which begins at 0 again with the same noise and events, its
        `state`, or both.

        Commands are forgotten and the fail-safe ends, in any case.
        """
        begin = self.start if state else self.state
        if time:
            self._done = 0
            self.sensors.restore(self._fresh_sensors)
            self._sensors_off = set()
        if state:
            self._failed = []
        self._rotors = self._wheels = self._controls = self._failsafe = None
        self._applied = Controls()
        self._set_state(begin)

    def _set_state(self, state: ModelState) -> None:
        begin = ModelState(np.array(state.x), np.array(state.memory), self.time)
        self._new_block(begin)
        self._outputs = self.model.outputs(begin, wind=self.wind.mean)
        self._step_states = np.empty((0, begin.x.size)), np.empty((0, begin.memory.size))

    def set_pose(
        self,
        position: ArrayLike,
        orientation: ArrayLike,
        velocity: ArrayLike = (0.0, 0.0, 0.0),
        rates: ArrayLike = (0.0, 0.0, 0.0),
    ) -> None:
        """Elsewhere, from now on: position (3,) m, orientation (4,) x y z w, velocity (3,) m/s,
        world; rates (3,) rad/s, body. Wheels roll along, struts stay, a crash is forgotten. Raises
        ConfigError for numbers that can't be.
        """
        x = np.array(self.state.x)
        memory = np.array(self.state.memory)
        parts = (
            ("position", position, at.POSITION),
            ("velocity", velocity, at.VELOCITY),
            ("rates", rates, at.RATES),
        )
        for name, given, first in parts:
            x[first : first + 3] = finite_array(name, given, (3,))
        x[at.QUATERNION_XYZW] = unit_quaternion("orientation", orientation)
        forward = rotation_matrix(x[at.QUATERNION_XYZW])[:, 0]
        rolling = (
            float(forward @ x[at.VELOCITY : at.VELOCITY + 3]) / self.model.params.rolling_radius
        )
        rotors = self.model.params.rotors
        wheels = len(self.model.params.wheels)
        columns = at.state_columns(rotors, wheels)
        x[columns["wheel_speed"]] = rolling + x[at.RATES + 1]
        x[columns["tyre_x"]] = 0.0
        x[columns["tyre_y"]] = 0.0
        memory[at.OVERTURNED] = 0.0
        memory[at.CRASHED] = 0.0
        memory[at.memory_columns(wheels)["brake_acting"]] = 0.0
        self._set_state(ModelState(x, memory))

    def save(self) -> dict[str, Any]:
        """All that the next ticks depend on, fit for JSON; the same simulation goes on from it bit
        by bit.
        """
        rotors = self._rotors
        wheels = self._wheels
        return {
            "steps_done": self._done,
            "x": self.state.x.tolist(),
            "memory": self.state.memory.tolist(),
            "outputs": self._outputs.numbers.tolist(),
            "sensors": self.sensors.save(),
            "silent": sorted(self._sensors_off),
            "wind_disturbance": np.asarray(self.wind_disturbance, float).tolist(),
            "failed": list(self._failed),
            "rotors": None
            if rotors is None
            else [rotors.time, rotors.torques, np.asarray(rotors.value).tolist()],
            "wheels": None
            if wheels is None
            else [
                wheels.time,
                wheels.steering_angle,
                np.asarray(wheels.drive_torque).tolist(),
                np.asarray(wheels.brake_torque).tolist(),
            ],
            "failsafe": None if self._failsafe is None else self._failsafe.save(),
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Goes on from `save` of a simulation like this one. Raises ConfigError where it does not
        fit.
        """
        try:
            done = int(saved["steps_done"])
            x, memory, numbers, wind = (
                np.array(saved[key], np.float64)
                for key in ("x", "memory", "outputs", "wind_disturbance")
            )
            failed = [int(rotor) for rotor in saved["failed"]]
            sensors_off = set(saved["silent"])
            shapes = x.shape, memory.shape, numbers.shape, wind.shape
            count = len(self.model.params.wheels)
            expected = (
                (self.model.params.state_size,),
                (at.memory_size(count),),
                (at.reported(count),),
                (3,),
            )
            if shapes != expected:
                raise ValueError(f"arrays of {shapes}, expected {expected}")
            rotors: RotorCommand | None = None
            wheels: WheelCommand | None = None
            failsafe: FailSafe | None = None
            if saved["rotors"] is not None:
                time, torques, value = saved["rotors"]
                rotors = RotorCommand(float(time), np.array(value, float), bool(torques))
                rotors.check(self.model.params)
            if saved["wheels"] is not None:
                time, steering, drive, brake = saved["wheels"]
                wheels = WheelCommand(
                    float(time), float(steering), np.array(drive, float), np.array(brake, float)
                )
                wheels.check(self.model.params)
            if saved["failsafe"] is not None:
                failsafe = FailSafe.restored(self.model, self.period, saved["failsafe"])
        except (KeyError, TypeError, ValueError) as error:
            raise ConfigError(f"no saved state of this simulation ({error!r})") from None
        self.sensors.restore(saved["sensors"])
        self._done = done
        self._set_state(ModelState(x, memory))
        self._outputs = Outputs(numbers, self.model.params.rotors)
        self._failed = failed
        self._sensors_off = sensors_off
        self.wind_disturbance = wind
        self._rotors = rotors
        self._wheels = wheels
        self._failsafe = failsafe
        self._controls = None
