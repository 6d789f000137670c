"""Record of a scenario's run: what the vehicle did, and how it ended."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from rfly_amphibious.control.modes import STANDING_SHARE, Mode
from rfly_amphibious.dynamics.model import ModelState, Outputs
from rfly_amphibious.guidance.manoeuvre import ManoeuvreGuide
from rfly_amphibious.guidance.mission_guide import MissionGuide
from rfly_amphibious.scenarios.scenario import Scenario
from rfly_amphibious.simulation.events import RotorFails, SensorOff
from rfly_amphibious.vehicle import state_layout as at
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_common.arrays import Bools, Floats
from rfly_common.errors import DynamicsError
from rfly_common.physics import GRAVITY

Ending = tuple[bool, str]
"""whether the end condition came true, and one line of text"""

STANDING_SPEED = 0.1
IDLE_SHARE = 0.03
"""of the weight, that the rotors of a vehicle at rest may still carry"""
PROGRESS_PERIOD = 0.25


@dataclass(frozen=True)
class Touchdown:
    """The first contact after a flight."""

    time: float
    sink_speed: float
    """m/s, downwards"""
    level_speed: float
    """m/s, across the ground"""
    position: tuple[float, float, float]


@dataclass(frozen=True)
class ScenarioRun:
    """What happened: samples every 20 ms, the modes, and how it ended."""

    scenario: Scenario
    reached: bool
    """whether the scenario's end condition came true"""
    ending: str
    """one line: how it ended, and why"""
    modes: tuple[tuple[float, Mode], ...]
    """from when on which mode"""
    log: tuple[tuple[float, str], ...]
    """what else happened, and when"""
    touchdowns: tuple[Touchdown, ...]
    time: Floats
    """(k,) s"""
    x: Floats
    """(k, states): `state_layout`"""
    outputs: Outputs
    """of the step before each sample"""
    wind: Floats
    """(k, 3) m/s, ENU, mean and gusts"""
    final: ModelState
    rotor_energy: float
    """J, at the rotors' shafts"""
    wheel_energy: float
    """J, at the wheels; what braking by the motors gave back is taken off"""

    @property
    def duration(self) -> float:
        """s of simulated time."""
        return float(self.final.time)

    @property
    def position(self) -> Floats:
        """(k, 3) m, ENU."""
        return self.x[:, at.POSITION : at.POSITION + 3]

    @property
    def on_wheels(self) -> Bools:
        """(k,) whether any wheel carries load."""
        return np.asarray((self.outputs.wheel_load > 0.0).any(axis=1))

    @property
    def wheel_power(self) -> Floats:
        """(k,) W, of the motors in the wheels together."""
        return wheel_power(self.x, self.scenario.params)

    def distances(self) -> tuple[float, float]:
        """m on the wheels and m in the air, along the track."""
        steps = np.linalg.norm(np.diff(self.position, axis=0), axis=1)
        driven = self.on_wheels[1:]
        return float(steps[driven].sum()), float(steps[~driven].sum())

    def save(self, path: str | os.PathLike[str]) -> None:
        """All samples and the final state, bit by bit, to an .npz file of NumPy."""
        with open(path, "wb") as file:
            np.savez_compressed(
                file,
                time_s=self.time,
                x=self.x,
                names=np.array(
                    at.state_names(self.scenario.params.rotors, len(self.scenario.params.wheels))
                ),
                outputs=self.outputs.numbers,
                wind_mps=self.wind,
                mode_time_s=np.array([time for time, _ in self.modes]),
                mode=np.array([mode.value for _, mode in self.modes]),
                final_x=self.final.x,
                final_memory=self.final.memory,
                final_time_s=np.float64(self.final.time),
            )


def wheel_power(x: Floats, params: VehicleParameters) -> Floats:
    """W of the drive torques at the spins of their wheels against the body, of states (…, states)."""
    rotors = params.rotors
    wheels = len(params.wheels)
    spin = (
        x[..., at.state_columns(rotors, wheels)["wheel_speed"]]
        - x[..., at.RATES + 1 : at.RATES + 2]
    )
    return (x[..., at.state_columns(rotors, wheels)["drive_torque"]] * spin).sum(axis=-1)


class RunRecorder:
    """Keeps what happens in a run of a scenario, and says when it ends; asked after each of its
    steps.
    """

    def __init__(
        self, scenario: Scenario, begin: Mode = Mode.DRIVE, sensor_effect: str = ""
    ) -> None:
        """`begin`: mode in which it begins; `sensor_effect`: what the log adds to a sensor that is
        off.
        """
        self._scenario = scenario
        self._sensor_effect = sensor_effect
        self.log: list[tuple[float, str]] = []
        self._modes = [(0.0, begin)]
        self._touchdowns: list[Touchdown] = []
        self._airborne = self._landed = self._off_map = False
        self._energy = [0.0, 0.0]
        self._samples: list[tuple[float, Floats, Floats, Floats]] = []

    def enter(self, time: float, mode: Mode) -> None:
        """The vehicle is in a mode at a time (s)."""
        if mode is not self._modes[-1][1]:
            self._modes.append((time, mode))

    def watch(self, now: ModelState, outputs: Outputs, seconds: float) -> None:
        """The state after `seconds` more."""
        self._energy[0] += float(outputs.rotor_power) * seconds
        self._energy[1] += float(wheel_power(now.x, self._scenario.params)) * seconds
        if self._modes[-1][1] is Mode.FLIGHT:
            self._airborne = True
            self._landed = False
        elif self._airborne and bool((outputs.wheel_load > 0.0).any()):
            self._airborne = False
            self._landed = True
            vx, vy, vz = now.velocity.tolist()
            x, y, z = now.position.tolist()
            self._touchdowns.append(Touchdown(now.time, -vz, float(np.hypot(vx, vy)), (x, y, z)))
        if outputs.wheels_off_map and not self._off_map:
            self._off_map = True
            self.log.append((now.time, "leaves the map; the ground goes on at its edge's height"))

    def sample(self, now: ModelState, outputs: Outputs, wind: Floats) -> None:
        """Keep a state and the wind (3,) m/s; the same state is kept once."""
        if not self._samples or self._samples[-1][0] != now.time:
            self._samples.append((now.time, now.x.copy(), outputs.numbers.copy(), np.array(wind)))

    def end(
        self, now: ModelState, outputs: Outputs, done: bool, problem: str, time_is_up: bool
    ) -> Ending | None:
        """Whether the end condition came true, and one line of text; None: it goes on.

        `done`: the mission; `problem`: why it can't go on.
        """
        wanted = self._scenario.end
        mode = self._modes[-1][1]
        when = f"at {now.time:.2f} s"
        if now.crashed:
            return wanted == "crashed", f"crashed {when} in mode {mode.value}: {now.crash_cause}"
        if wanted == "mission_done" and done:
            return True, f"mission done {when}"
        standing = self._landed and self._stands(now, outputs)
        if standing and wanted == "standing_after_landing":
            return True, f"stands after landing {when}"
        if time_is_up:
            return (
                wanted == "time",
                f"{'' if wanted == 'time' else f'not reached: {wanted}; '}time is up {when}",
            )
        if wanted in ("mission_done", "standing_after_landing"):
            if problem:
                return False, f"not reached: {wanted}; {problem}"
            if standing and mode is Mode.ABORT:
                return (
                    False,
                    f"not reached: {wanted}; the flight was aborted, it stands after landing {when}",
                )
        return None

    def _stands(self, now: ModelState, outputs: Outputs) -> bool:
        load = outputs.wheel_load
        weight = self._scenario.params.mass * GRAVITY
        return bool(
            (load > 0.0).all()
            and load.sum() > STANDING_SHARE * weight
            and np.linalg.norm(now.velocity) < STANDING_SPEED
            and outputs.thrust.sum() < IDLE_SHARE * weight
        )

    def run(self, ending: Ending, now: ModelState, log: Sequence[tuple[float, str]]) -> ScenarioRun:
        """All of it; `log`: what others have to say."""
        time, x, numbers, wind = map(np.array, zip(*self._samples, strict=True))
        return ScenarioRun(
            self._scenario,
            *ending,
            tuple(self._modes),
            tuple(sorted([*self.log, *log, *self._events(now.time)])),
            tuple(self._touchdowns),
            time,
            x,
            Outputs(numbers, self._scenario.params.rotors),
            wind,
            ModelState(now.x.copy(), now.memory.copy(), now.time),
            *self._energy,
        )

    def _events(self, end: float) -> list[tuple[float, str]]:
        """What went wrong by the scenario's events until the end, s."""
        log = []
        for event in self._scenario.events:
            if isinstance(event, RotorFails):
                log.append((event.time, f"rotor {event.rotor + 1} fails"))
            elif isinstance(event, SensorOff):
                span = "" if event.duration is None else f" for {event.duration:g} s"
                log.append((event.time, f"{event.sensor} is off{span}{self._sensor_effect}"))
        return [(time, text) for time, text in log if time <= end]


class ScenarioLoop(Protocol):
    """A vehicle and what controls it, tick by tick: with the truth, or with estimates."""

    recorder: RunRecorder

    @property
    def guide(self) -> MissionGuide | ManoeuvreGuide:
        """Of its mission or manoeuvre."""

    @property
    def state(self) -> ModelState:
        """After the last tick."""

    @property
    def outputs(self) -> Outputs:
        """Of the last step."""

    @property
    def time_is_up(self) -> bool:
        """Whether the scenario's time is over."""

    def tick(self) -> None:
        """Commands, and the steps for which they hold. Raises DynamicsError as the model does."""

    def sample(self) -> None:
        """Keeps the state in the recorder."""


def run_to_end(loop: ScenarioLoop, progress: Callable[[float], None] | None = None) -> ScenarioRun:
    """Runs a loop to the scenario's end; `progress` is told the simulated seconds now and then."""
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
        ending = recorder.end(loop.state, loop.outputs, guide.done, guide.problem, loop.time_is_up)
        time = loop.state.time
        if progress is not None and time - reported >= PROGRESS_PERIOD:
            reported = time
            progress(time)
    loop.sample()
    return recorder.run(ending, loop.state, guide.log)
