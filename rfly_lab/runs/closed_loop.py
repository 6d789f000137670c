# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Closed loop without ROS, in lock-step: the simulation, its sensors, and the controller on board.

Nothing on board knows the ground truth.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np

from rfly_amphibious.dynamics.model import ModelState, Outputs
from rfly_amphibious.scenarios.scenario import Scenario
from rfly_amphibious.sensors.samples import SensorSamples
from rfly_amphibious.sensors.sensor_parameters import SensorParameters
from rfly_amphibious.simulation.commands import Mode, RotorCommand, WheelCommand
from rfly_amphibious.simulation.power_system import PowerSystem
from rfly_autonomy.control.pilot import abort_pilot
from rfly_autonomy.estimation.estimate import Estimate
from rfly_autonomy.estimation.estimator_parameters import EstimatorParameters
from rfly_autonomy.guidance.on_board import OnBoard
from rfly_common.arrays import Floats
from rfly_lab.runs.recorder import RunRecorder, ScenarioRun, run_to_end

SAMPLE_PERIOD = 0.02
"""Time between samples of the run, s."""

WAITING_TIME = 5.0
"""Time without a first estimate after which the run's log tells what it waits for, s."""

WARM_UP_TIME = 1.2
"""Time of a run that compiles everything, s: the estimator is aligned by then."""


class Tick(NamedTuple):
    """Samples, estimate and commands of one tick."""

    time: float
    samples: SensorSamples
    estimate: Estimate | None
    rotors: RotorCommand
    wheels: WheelCommand


class DetectedFault(NamedTuple):
    """A part that the vehicle itself has found at fault."""

    time: float
    """Time, s."""

    part: str
    """Name of the part, as in `OnBoard.faults`."""

    text: str
    """What is wrong with it, in words."""


@dataclass(frozen=True)
class ClosedLoopRun:
    """Run with its estimates, one row for every sample of the run."""

    run: ScenarioRun
    estimated: Floats
    """Estimated position, (k, 3), m; NaN before the alignment."""

    estimated_velocity: Floats
    """Estimated velocity, (k, 3), m/s."""

    position_covariance: Floats
    """Covariance of the position by the estimator, (k, 3, 3), m²."""

    sensors: SensorParameters
    """Sensors of the vehicle."""

    ticks: tuple[Tick, ...] = ()
    """All ticks, if they were kept."""

    findings: tuple[DetectedFault, ...] = ()
    """Parts found at fault on board, by time."""

    @property
    def has_estimates(self) -> bool:
        """True if there was any estimate."""
        return bool(np.isfinite(self.estimated[:, 0]).any())

    @property
    def position_error(self) -> Floats:
        """Error of the estimated position, (k, 3), m: east, north, up."""
        return self.estimated - self.run.position

    def position_nees(self) -> Floats:
        """Return the normalised estimation error squared of the position, (k,).

        NaN before the alignment. With the right covariance it is chi-square of 3 degrees of freedom
        (Bar-Shalom, Li & Kirubarajan 2001, section 5.4).
        """
        error = self.position_error
        return np.einsum("ki,kij,kj->k", error, np.linalg.inv(self.position_covariance), error)

    def fingerprint(self) -> str:
        """Return the run's number, which covers the estimates, too."""
        return self.run.fingerprint(
            self.estimated, self.estimated_velocity, self.position_covariance
        )

    def rms_error(self) -> tuple[float, float]:
        """Return the root mean square error of the position, m: across the ground and upright.

        NaN without any estimate.
        """
        if not self.has_estimates:
            return np.nan, np.nan
        error = self.position_error[np.isfinite(self.estimated[:, 0])]
        level = (error[:, :2] ** 2).sum(axis=1)
        upright = error[:, 2] ** 2
        return float(np.sqrt(level.mean())), float(np.sqrt(upright.mean()))

    def largest_error(self) -> float:
        """Return the largest error of the estimated position, m; NaN without any estimate."""
        if not self.has_estimates:
            return np.nan
        return float(np.nanmax(np.linalg.norm(self.position_error, axis=1)))


def run_closed_loop(
    scenario: Scenario,
    sensors: SensorParameters | None = None,
    estimator: EstimatorParameters | None = None,
    progress: Callable[[float], None] | None = None,
    keep_ticks: bool = False,
) -> ClosedLoopRun:
    """Run a scenario to its end condition, or until that cannot be reached any more.

    The scenario's seed is that of wind and noise. `sensors`, `estimator`: by default the shipped
    sets of the vehicle's name, or `scale`; a sensor of the ground truth is left out. The same
    scenario gives the same numbers, bit by bit. `progress` is called with the simulated seconds now
    and then.
    """
    if sensors is None:
        sensors = SensorParameters.for_vehicle(scenario.params.name)
    if estimator is None:
        estimator = EstimatorParameters.for_vehicle(scenario.params.name)
    sensors = sensors.replace(ground_truth=None)

    loop = _ClosedLoop(scenario, sensors, estimator, keep_ticks)
    run = run_to_end(loop, progress)
    position, velocity, covariance = (
        np.array(part[: len(run.time)]) for part in zip(*loop.estimates, strict=True)
    )
    ticks = tuple(loop.ticks)
    findings = tuple(loop.findings)
    return ClosedLoopRun(run, position, velocity, covariance, sensors, ticks, findings)


def warm_up(
    scenario: Scenario,
    sensors: SensorParameters | None = None,
    estimator: EstimatorParameters | None = None,
) -> None:
    """Compile or load everything that a run needs, before it is needed."""
    short = replace(scenario, events=(), end="time", end_time=WARM_UP_TIME)
    run_closed_loop(short, sensors, estimator)


class _ClosedLoop:
    """Simulation with its sensors, and the computer aboard, in lock-step."""

    def __init__(
        self,
        scenario: Scenario,
        sensors: SensorParameters,
        estimator: EstimatorParameters,
        keep_ticks: bool,
    ) -> None:
        self._keeps_ticks = keep_ticks
        self.ticks: list[Tick] = []
        self._end_time = scenario.end_time
        fail_safe = partial(abort_pilot, rotor_command=scenario.rotor_command)
        self._simulation = scenario.simulation(sensors, fail_safe=fail_safe)
        self._aboard = OnBoard(scenario, sensors, estimator)
        self._failsafe = False
        self._waiting_told = False
        self._faults: dict[str, str] = {}
        """Parts at fault, as estimator and controllers see them."""

        self.findings: list[DetectedFault] = []

        self._sample_every = max(1, round(SAMPLE_PERIOD / self._simulation.period))
        self.guide = self._aboard.guide
        self.recorder = RunRecorder(scenario, Mode.DISARMED)
        self.estimates: list[tuple[Floats, Floats, Floats]] = []
        """Position and velocity, (3,) each, and covariance (3, 3) of the position, per sample."""

    @property
    def state(self) -> ModelState:
        return self._simulation.state

    @property
    def outputs(self) -> Outputs:
        return self._simulation.outputs

    @property
    def power(self) -> PowerSystem:
        return self._simulation.power

    @property
    def time_is_up(self) -> bool:
        return self._simulation.time >= self._end_time - 1e-9

    def tick(self) -> None:
        """Run one tick of the simulation, and answer it."""
        simulation = self._simulation
        aboard = self._aboard
        recorder = self.recorder
        samples = simulation.tick()
        time = simulation.time
        recorder.watch(simulation.state, simulation.outputs, simulation.period)

        # commands
        rotors, wheels = aboard.tick(time, samples, simulation.period)
        if self._keeps_ticks:
            self.ticks.append(Tick(time, samples, aboard.estimate, rotors, wheels))
        simulation.command_rotors(rotors)
        simulation.command_wheels(wheels)

        # a first estimate that does not come
        if aboard.estimate is None and time >= WAITING_TIME and not self._waiting_told:
            self._waiting_told = True
            waits_for = aboard.estimator.waits_for or "the alignment"
            recorder.log.append((time, f"no estimate yet: it waits for {waits_for}"))

        # fail-safe
        if simulation.failsafe is not self._failsafe:
            self._failsafe = simulation.failsafe
            aboard.flight.failsafe(self._failsafe)
            text = "the simulation's fail-safe acts" if self._failsafe else "the fail-safe ends"
            recorder.log.append((time, text))

        recorder.enter(time, aboard.flight.mode)
        if simulation.ticks % self._sample_every == 0:
            self.sample()

    def _log_faults(self, time: float) -> None:
        """Log the parts that are found at fault on board, and those that are sound again."""
        before = self._faults
        faults = self._faults = self._aboard.faults
        for part in sorted(faults.keys() | before.keys()):
            if faults.get(part) == before.get(part):
                continue
            text = faults.get(part, f"{part} is sound again")
            self.recorder.log.append((time, text))
            if part in faults:
                self.findings.append(DetectedFault(time, part, text))

    def sample(self) -> None:
        """Keep the state and the estimate, and log what is at fault."""
        simulation = self._simulation
        self._log_faults(simulation.time)
        self.recorder.sample(simulation.state, simulation.outputs, simulation.wind_now)

        now = self._aboard.estimate
        if now is None or now.covariance is None:
            unknown = np.full(3, np.nan)
            self.estimates.append((unknown, unknown, np.full((3, 3), np.nan)))
        else:
            self.estimates.append(
                (now.position.copy(), now.velocity.copy(), now.covariance[:3, :3].copy())
            )
