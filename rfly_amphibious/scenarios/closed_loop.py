"""Closed loop without ROS, in lock-step: sensors, estimator, guidance, controllers, commands.

Nothing in the loop knows the ground truth.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from rfly_amphibious.control.chassis_controller import ChassisController
from rfly_amphibious.control.commands import RotorCommand, Setpoint, WheelCommand
from rfly_amphibious.control.flight_controller import FlightController
from rfly_amphibious.control.modes import Mode
from rfly_amphibious.estimation.estimate import Estimate
from rfly_amphibious.estimation.estimator import StateEstimator
from rfly_amphibious.estimation.estimator_parameters import EstimatorParameters
from rfly_amphibious.guidance.mission_guide import ASK_AGAIN, WORDS, MissionGuide
from rfly_amphibious.scenarios.run import Ending, RunRecorder, ScenarioRun
from rfly_amphibious.scenarios.scenario import Scenario
from rfly_amphibious.sensors.samples import SensorSamples
from rfly_amphibious.sensors.sensor_parameters import SensorParameters
from rfly_amphibious.simulation.events import RotorFails, SensorOff
from rfly_common.errors import DynamicsError

Floats = NDArray[np.float64]

GUIDE_PERIOD = 0.02
"""s between setpoints of the guide"""
SAMPLE_PERIOD = 0.02
PROGRESS_PERIOD = 0.25
WARM_UP_TIME = 1.2
"""s"""


class OnBoard:
    """All that computes aboard a vehicle, of samples of its sensors only."""

    def __init__(self, scenario: Scenario, sensors: SensorParameters, estimator: EstimatorParameters) -> None:
        params = scenario.params
        self.estimator = StateEstimator(estimator, sensors, params, terrain=scenario.terrain)
        self.guide = MissionGuide(scenario.legs, params, scenario.terrain)
        self.flight, self.chassis = FlightController(params, sensors), ChassisController(params)
        self.estimate: Estimate | None = None
        self.refused = ""
        """why the last request was"""
        self._guide_at = -np.inf
        self._asked, self._ask_again_at = "", -np.inf

    def tick(self, time: float, samples: SensorSamples, dt: float) -> tuple[RotorCommand, WheelCommand]:
        """The commands that answer a tick which ended at `time` and took dt seconds."""
        self.estimate = now = self.estimator.update(samples)
        self.flight.sense(samples)
        self.chassis.sense(samples)
        if now is not None and not self.flight.missing and time >= self._guide_at - 1e-9:
            self._guide_at = time + GUIDE_PERIOD
            self._apply(self.guide.step(now, self.flight.mode))
        rotors = self.flight.step(now, dt)
        return rotors, self.chassis.step(now, self.flight.mode, dt)

    def _apply(self, setpoint: Setpoint) -> None:
        if self.flight.mode is Mode.DRIVE:
            self.chassis.set_speed(setpoint.speed, setpoint.steering, setpoint.time)
        elif setpoint.target is not None:
            self.flight.set_target(setpoint.target, setpoint.velocity, setpoint.yaw, setpoint.time)
        word = "" if setpoint.mode is None else WORDS[setpoint.mode]
        if word and (word != self._asked or setpoint.time >= self._ask_again_at):
            self.refused = self.flight.request(word)
            self._ask_again_at = setpoint.time + ASK_AGAIN
        self._asked = word


@dataclass(frozen=True)
class ClosedLoopRun:
    """What happened in truth, and what the estimator made of it; one row each for every sample of the run."""

    run: ScenarioRun
    estimated: Floats
    """(k, 3) m: where it seemed to be; NaN before the estimator was aligned"""
    estimated_velocity: Floats
    """(k, 3) m/s"""

    @property
    def position_error(self) -> Floats:
        """(k, 3) m, of the estimate: east, north, up."""
        return self.estimated - self.run.position

    def rms_error(self) -> tuple[float, float]:
        """m, of the estimated position: across the ground and upright."""
        error = self.position_error[np.isfinite(self.estimated[:, 0])]
        level, upright = (error[:, :2] ** 2).sum(axis=1), error[:, 2] ** 2
        return float(np.sqrt(level.mean())), float(np.sqrt(upright.mean()))

    def largest_error(self) -> float:
        """m, of the estimated position."""
        return float(np.nanmax(np.linalg.norm(self.position_error, axis=1)))


def run_closed_loop(
    scenario: Scenario,
    sensors: SensorParameters | None = None,
    estimator: EstimatorParameters | None = None,
    progress: Callable[[float], None] | None = None,
) -> ClosedLoopRun:
    """Runs a scenario to its end condition, or until it can't be reached any more; its seed is that of wind and noise.

    `sensors`, `estimator`: by default the shipped sets of the vehicle's name. The ground truth is no sensor here. The
    same scenario gives the same numbers, bit by bit. `progress` is told the simulated seconds now and then.
    """
    sensors = SensorParameters.load(scenario.params.name) if sensors is None else sensors
    estimator = EstimatorParameters.load(scenario.params.name) if estimator is None else estimator
    return _ClosedLoop(scenario, sensors.replace(ground_truth=None), estimator).run(progress or (lambda seconds: None))


def warm_up(scenario: Scenario) -> None:
    """Compiles all that a run needs, or loads it, before anyone waits for it: by the time the estimator is aligned."""
    run_closed_loop(replace(scenario, events=(), end="time", end_time=WARM_UP_TIME))


class _ClosedLoop:
    def __init__(self, scenario: Scenario, sensors: SensorParameters, estimator: EstimatorParameters) -> None:
        self._scenario = scenario
        self._simulation = scenario.simulation(sensors)
        self._aboard = OnBoard(scenario, sensors, estimator)
        self._recorder = RunRecorder(scenario, Mode.DISARMED)
        self._seen: list[tuple[Floats, Floats]] = []
        self._sample_every = max(1, round(SAMPLE_PERIOD / self._simulation.period))

    def run(self, progress: Callable[[float], None]) -> ClosedLoopRun:
        simulation, aboard, recorder = self._simulation, self._aboard, self._recorder
        ending: Ending | None = None
        reported, failsafe = 0.0, False
        while ending is None:
            try:
                samples = simulation.tick()
            except DynamicsError as error:
                ending = False, f"not reached: {error}"
                break
            time = simulation.time
            recorder.watch(simulation.state, simulation.outputs, simulation.period)
            rotors, wheels = aboard.tick(time, samples, simulation.period)
            simulation.command_rotors(rotors)
            simulation.command_wheels(wheels)
            if simulation.failsafe is not failsafe:
                failsafe = simulation.failsafe
                aboard.flight.failsafe(failsafe)
                recorder.log.append((time, "the simulation's fail-safe acts" if failsafe else "the fail-safe ends"))
            recorder.enter(time, aboard.flight.mode)
            if simulation.ticks % self._sample_every == 0:
                self._sample()
            time_is_up = time >= self._scenario.end_time - 1e-9
            guide = aboard.guide
            ending = recorder.end(simulation.state, simulation.outputs, guide.done, guide.problem, time_is_up)
            if time - reported >= PROGRESS_PERIOD:
                reported = time
                progress(time)
        self._sample()
        recorder.log += _told_of(self._scenario, simulation.time)
        run = recorder.run(ending, simulation.state, aboard.guide.log)
        seen = np.array(self._seen[: len(run.time)])
        return ClosedLoopRun(run, seen[:, 0], seen[:, 1])

    def _sample(self) -> None:
        now = self._aboard.estimate
        self._recorder.sample(self._simulation.state, self._simulation.outputs, self._simulation.wind_now)
        unknown = np.full(3, np.nan)
        self._seen.append((unknown, unknown) if now is None else (now.position.copy(), now.velocity.copy()))


def _told_of(scenario: Scenario, end: float) -> list[tuple[float, str]]:
    """What went wrong by the scenario's events until the end, s."""
    told = []
    for event in scenario.events:
        if isinstance(event, RotorFails):
            told.append((event.time, f"rotor {event.rotor + 1} fails"))
        elif isinstance(event, SensorOff):
            span = "" if event.duration is None else f" for {event.duration:g} s"
            told.append((event.time, f"{event.sensor} is off{span}"))
    return [(time, text) for time, text in told if time <= end]
