# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Record of a scenario's run: what the vehicle did, and how it ended."""

from __future__ import annotations

import enum
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from rfly_amphibious.dynamics.model import ModelState, Outputs
from rfly_amphibious.scenarios.scenario import Scenario
from rfly_amphibious.simulation.commands import Mode
from rfly_amphibious.simulation.events import RotorFails, SensorOff
from rfly_amphibious.simulation.faults import Fault
from rfly_amphibious.simulation.power_system import PowerSystem
from rfly_amphibious.vehicle import state_layout
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_autonomy.control.modes import STANDING_SHARE
from rfly_autonomy.guidance.manoeuvre import ManoeuvreGuide
from rfly_autonomy.guidance.mission_guide import MissionGuide
from rfly_common.arrays import Bools, Floats
from rfly_common.errors import DynamicsError
from rfly_common.frames import rotation_matrix
from rfly_common.physics import AIR_DENSITY, GRAVITY

Ending = tuple[bool, str]
"""Whether the end condition came true, and one line of text."""

AIRBORNE_CLEARANCE = 0.1
"""Clearance of all wheels above which an aborted vehicle flies, m."""

STANDING_SPEED = 0.1
"""Speed below which a vehicle stands, m/s."""

IDLE_SHARE = 0.03
"""Share of the weight that the rotors of a standing vehicle may still carry."""

MOST_LEVEL_SPEED = 1.0
"""Speed across the ground above which a touch-down has failed, m/s: twice that of the descent."""

MOST_ABORTED_LEVEL_SPEED = 2.0
"""The same for an aborted flight, with the rotors that are left, m/s."""

SLOW_SINKING = 0.5
"""Rate of descent, relative to the velocity that rotors induce in hover, that all models cover."""

STEEPEST_SINKING = 1.5
"""The same at which momentum theory ends, times the root of the relative thrust. Eq. 4.15."""

PROGRESS_PERIOD = 0.25
"""Simulated time between reports of the progress, s."""


@dataclass(frozen=True)
class Touchdown:
    """First contact after a flight."""

    time: float
    """Time, s."""

    sink_speed: float
    """Speed downwards, m/s."""

    level_speed: float
    """Speed across the ground, m/s."""

    position: tuple[float, float, float]
    """Position, ENU, m."""

    skid_speed: float
    """Speed at which the tyres slide, m/s: across them after a rolling landing, else all."""


@dataclass(frozen=True)
class ScenarioRun:
    """Result of a run: samples every 20 ms, the modes, and the ending."""

    scenario: Scenario
    reached: bool
    """True if the scenario's end condition came true."""

    ending: str
    """How and why it ended, in one line."""

    modes: tuple[tuple[float, Mode], ...]
    """Begin, s, of each mode."""

    log: tuple[tuple[float, str], ...]
    """Other events, with their times, s."""

    touchdowns: tuple[Touchdown, ...]

    time: Floats
    """Times of the samples, (k,), s."""

    x: Floats
    """States, (k, states): `state_layout`."""

    outputs: Outputs
    """Outputs of the step before each sample."""

    wind: Floats
    """Mean wind and gusts, (k, 3), ENU, m/s."""

    final: ModelState
    """Last state."""

    rotor_energy: float
    """Energy at the rotors' shafts, J."""

    wheel_energy: float
    """Energy at the wheels, J, less what braking by the motors gave back."""

    battery_energy: float
    """Energy drawn from the battery, J, less what braking has charged it with."""

    charge: float
    """Charge of the battery at the end, 0 … 1."""

    lowest_voltage: float
    """Lowest voltage of the battery, V; 0: the vehicle has none."""

    @property
    def duration(self) -> float:
        """Simulated time, s."""
        return float(self.final.time)

    @property
    def position(self) -> Floats:
        """Positions, (k, 3), ENU, m."""
        return self.x[:, state_layout.POSITION : state_layout.POSITION + 3]

    @property
    def on_wheels(self) -> Bools:
        """True where any wheel carries load, (k,)."""
        return np.asarray((self.outputs.wheel_load > 0.0).any(axis=1))

    @property
    def wheel_power(self) -> Floats:
        """Power of all motors in the wheels, (k,), W."""
        return wheel_power(self.x, self.scenario.params)

    def distances(self) -> tuple[float, float]:
        """Return the distances on the wheels and in the air, along the track, m."""
        steps = np.linalg.norm(np.diff(self.position, axis=0), axis=1)
        driven = self.on_wheels[1:]
        return float(steps[driven].sum()), float(steps[~driven].sum())

    def fingerprint(self, *estimates: Floats) -> str:
        """Return a number of 16 hexadecimal digits for everything that the run computed.

        That is all samples, bit by bit (states, outputs, wind, and the `estimates` given), modes,
        events, touch-downs, the last state with its memory, energies, charge and ending. The
        scenario's texts are not part of it.
        """
        digest = hashlib.sha256()
        arrays = (self.time, self.x, self.outputs.numbers, self.wind, self.final.x)
        for array in (*arrays, self.final.memory, *estimates):
            digest.update(f"{array.shape}".encode())
            digest.update(np.ascontiguousarray(array, "<f8").tobytes())

        events = [(float(time), mode.value) for time, mode in self.modes]
        events += [(float(time), text) for time, text in self.log]
        numbers = [number for t in self.touchdowns for number in (t.time, t.sink_speed)]
        numbers += [number for t in self.touchdowns for number in (t.level_speed, *t.position)]
        numbers += [self.final.time, self.rotor_energy, self.wheel_energy, self.battery_energy]
        numbers += [self.charge, self.lowest_voltage]
        digest.update(repr((events, list(map(float, numbers)), self.ending)).encode())
        return digest.hexdigest()[:16]


def wheel_power(x: Floats, params: VehicleParameters) -> Floats:
    """Return the power of the drive torques of states (…, states), W.

    The spins are those of the wheels against the body.
    """
    columns = state_layout.state_columns(params.rotors, len(params.wheels))
    pitch_rate = x[..., state_layout.RATES + 1 : state_layout.RATES + 2]
    spin = x[..., columns["wheel_speed"]] - pitch_rate
    return (x[..., columns["drive_torque"]] * spin).sum(axis=-1)


class _Phase(enum.Enum):
    """Phase of a run with a flight."""

    GROUND = enum.auto()
    AIRBORNE = enum.auto()
    LANDED = enum.auto()


class RunRecorder:
    """Recorder of a scenario's run, which decides after each step whether the run ends."""

    def __init__(
        self, scenario: Scenario, begin: Mode = Mode.DRIVE, sensor_effect: str = ""
    ) -> None:
        """Begin to record.

        `begin`: first mode; `sensor_effect`: text of the log after a sensor that is off.
        """
        self._scenario = scenario
        self._sensor_effect = sensor_effect
        self.log: list[tuple[float, str]] = []
        self._modes = [(0.0, begin)]
        self._touchdowns: list[Touchdown] = []
        self._phase = _Phase.GROUND
        self._off_map = False
        self._told_of_descents: set[str] = set()

        # energy
        p = scenario.params
        area = p.rotors * np.pi * p.rotor_radius**2
        self._hover_inflow = float(np.sqrt(p.mass * GRAVITY / (2.0 * AIR_DENSITY * area)))
        """Velocity that the rotors induce in hover, m/s."""
        self._rotor_energy = 0.0
        self._wheel_energy = 0.0
        self._samples: list[tuple[float, Floats, Floats, Floats]] = []

    def enter(self, time: float, mode: Mode) -> None:
        """Record the mode at a time (s)."""
        if mode is not self._modes[-1][1]:
            self._modes.append((time, mode))

    def watch(self, now: ModelState, outputs: Outputs, seconds: float) -> None:
        """Record the state after `seconds` more."""
        self._rotor_energy += float(outputs.rotor_power) * seconds
        self._wheel_energy += float(wheel_power(now.x, self._scenario.params)) * seconds

        # flight and touchdown
        mode = self._modes[-1][1]
        is_up = mode is Mode.ABORT and float(outputs.clearance.min()) > AIRBORNE_CLEARANCE
        if mode is Mode.FLIGHT or (is_up and self._phase is _Phase.GROUND):
            self._phase = _Phase.AIRBORNE
        elif self._phase is _Phase.AIRBORNE and bool((outputs.wheel_load > 0.0).any()):
            self._phase = _Phase.LANDED
            vx, vy, vz = now.velocity.tolist()
            x, y, z = now.position.tolist()
            level_speed = skid_speed = float(np.hypot(vx, vy))
            if self._modes[-1][1] is Mode.ROLLING_LAND:
                skid_speed = abs(float(now.velocity @ rotation_matrix(now.orientation)[:, 1]))
            touchdown = Touchdown(now.time, -vz, level_speed, (x, y, z), skid_speed)
            self._touchdowns.append(touchdown)

        if outputs.wheels_off_map and not self._off_map:
            self._off_map = True
            self.log.append((now.time, "leaves the map; the ground goes on at its edge's height"))

        if now.velocity[2] < -SLOW_SINKING * self._hover_inflow:
            self._note_descent(now, outputs)

    def _note_descent(self, now: ModelState, outputs: Outputs) -> None:
        """Record, once each, descents in which the rotors' equations leave something out."""
        p = self._scenario.params
        speed = float(now.x[state_layout.ROTOR_SPEED : state_layout.ROTOR_SPEED + p.rotors].mean())
        if speed <= 0.0 or (outputs.wheel_load > 0.0).any():
            return
        motion = now.velocity - self._scenario.wind.mean
        air = rotation_matrix(now.orientation).T @ motion / (self._hover_inflow * speed)
        forward, left, climb = (p.hover_speed * air).tolist()
        thrust = float(outputs.thrust.mean()) / (p.thrust_coefficient * speed**2)

        what = ""
        if climb < -STEEPEST_SINKING * np.sqrt(thrust):
            what = "the air drives its rotors, whose power is that of a slower descent (Eq. 4.15)"
        elif climb < -SLOW_SINKING and np.hypot(forward, left) < 1.0 and p.vortex_ring == 0.0:
            what = "the vortex-ring state is left out, as rotors.vortex_ring is 0 (Eq. 4.14)"
        if what and what not in self._told_of_descents:
            self._told_of_descents.add(what)
            self.log.append((now.time, f"sinks at {-now.velocity[2]:.1f} m/s: {what}"))

    def sample(self, now: ModelState, outputs: Outputs, wind: Floats) -> None:
        """Keep a state and the wind, (3,), m/s; the same state is kept once."""
        if not self._samples or self._samples[-1][0] != now.time:
            sample = now.time, now.x.copy(), outputs.numbers.copy(), np.array(wind)
            self._samples.append(sample)

    def end(
        self, now: ModelState, outputs: Outputs, done: bool, problem: str, time_is_up: bool
    ) -> Ending | None:
        """Return whether the end condition came true, with one line of text; None: the run goes on.

        `done`: whether the mission is; `problem`: reason why it cannot go on.
        """
        wanted = self._scenario.end
        mode = self._modes[-1][1]
        when = f"at {now.time:.2f} s"
        if now.crashed:
            world = self._scenario.world
            reach = self._scenario.params.reach
            near = "" if world is None else world.nearest(now.position, reach, now.time)
            cause = f"{now.crash_cause}; nearest is {near}" if near else now.crash_cause
            return wanted == "crashed", f"crashed {when} in mode {mode.value}: {cause}"

        standing = self._phase is _Phase.LANDED and self._stands(now, outputs)
        is_done = done and wanted == "mission_done"
        is_landed = standing and wanted == "standing_after_landing"
        if is_done or is_landed:
            aborted = any(mode is Mode.ABORT for _, mode in self._modes)
            most = MOST_ABORTED_LEVEL_SPEED if aborted else MOST_LEVEL_SPEED
            hard = next((touch for touch in self._touchdowns if touch.skid_speed > most), None)
            if hard is not None:
                return False, (
                    f"not reached: {wanted}; touched down at {hard.time:.2f} s with "
                    f"{hard.skid_speed:.2f} m/s across the ground, allowed: at most {most:g} m/s"
                )
            return True, f"{'mission done' if is_done else 'stands after landing'} {when}"

        if time_is_up and wanted == "time":
            return True, f"time is up {when}"
        if time_is_up:
            return False, f"not reached: {wanted}; time is up {when}"

        if wanted in ("mission_done", "standing_after_landing"):
            if problem:
                return False, f"not reached: {wanted}; {problem}"
            if mode is Mode.ABORT and (standing or self._stands(now, outputs)):
                why = "the flight was aborted, it stands after landing"
                if self._phase is _Phase.GROUND:
                    why = "it was aborted and stands"
                return False, f"not reached: {wanted}; {why} {when}"
        return None

    def _stands(self, now: ModelState, outputs: Outputs) -> bool:
        """Return whether the vehicle stands on all its wheels with its rotors idling."""
        load = outputs.wheel_load
        weight = self._scenario.params.mass * GRAVITY
        return bool(
            (load > 0.0).all()
            and load.sum() > STANDING_SHARE * weight
            and np.linalg.norm(now.velocity) < STANDING_SPEED
            and outputs.thrust.sum() < IDLE_SHARE * weight
        )

    def run(
        self,
        ending: Ending,
        now: ModelState,
        log: Sequence[tuple[float, str]],
        power: PowerSystem,
    ) -> ScenarioRun:
        """Return the run up to now; `log`: events of other parts."""
        reached, text = ending
        time, x, numbers, wind = map(np.array, zip(*self._samples, strict=True))

        return ScenarioRun(
            scenario=self._scenario,
            reached=reached,
            ending=text,
            modes=tuple(self._modes),
            log=tuple(sorted([*self.log, *log, *self._events(now.time)])),
            touchdowns=tuple(self._touchdowns),
            time=time,
            x=x,
            outputs=Outputs(numbers, self._scenario.params.rotors),
            wind=wind,
            final=ModelState(now.x.copy(), now.memory.copy(), now.time),
            rotor_energy=self._rotor_energy,
            wheel_energy=self._wheel_energy,
            battery_energy=power.energy,
            charge=power.charge,
            lowest_voltage=power.lowest_voltage,
        )

    def _events(self, end: float) -> list[tuple[float, str]]:
        """Return the scenario's failures until the end (s)."""
        log = []
        for event in self._scenario.events:
            if isinstance(event, RotorFails):
                log.append((event.time, f"rotor {event.rotor + 1} fails"))
            elif isinstance(event, SensorOff):
                span = "" if event.duration is None else f" for {event.duration:g} s"
                log.append((event.time, f"{event.sensor} is off{span}{self._sensor_effect}"))
            elif isinstance(event, Fault):
                effect = self._sensor_effect if event.takes_sensors else ""
                log.append((event.time, f"{event}{effect}"))
        return [(time, text) for time, text in log if time <= end]


class ScenarioLoop(Protocol):
    """Vehicle and its control, tick by tick: with the truth, or with estimates."""

    recorder: RunRecorder

    @property
    def guide(self) -> MissionGuide | ManoeuvreGuide:
        """Guide of its mission or manoeuvre."""

    @property
    def state(self) -> ModelState:
        """State after the last tick."""

    @property
    def outputs(self) -> Outputs:
        """Outputs of the last step."""

    @property
    def power(self) -> PowerSystem:
        """Battery and the energy drawn."""

    @property
    def time_is_up(self) -> bool:
        """True if the scenario's time is over."""

    def tick(self) -> None:
        """Run the commands, and the steps for which they hold. May raise DynamicsError."""

    def sample(self) -> None:
        """Keep the state in the recorder."""


def run_to_end(loop: ScenarioLoop, progress: Callable[[float], None] | None = None) -> ScenarioRun:
    """Run a loop to the scenario's end; call `progress` with the simulated seconds now and then."""
    ending: Ending | None = None
    recorder = loop.recorder
    guide = loop.guide

    reported = 0.0
    while ending is None:
        try:
            loop.tick()
        except DynamicsError as error:
            ending = False, f"not reached: {error}"
            break
        if loop.power.battery is not None and isinstance(guide, MissionGuide):
            guide.watch_battery(loop.power.charge_shown)
        now = loop.state
        ending = recorder.end(now, loop.outputs, guide.done, guide.problem, loop.time_is_up)
        if progress is not None and now.time - reported >= PROGRESS_PERIOD:
            reported = now.time
            progress(reported)
    loop.sample()
    return recorder.run(ending, loop.state, guide.log, loop.power)
