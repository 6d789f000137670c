# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Flight by a policy without ROS: simulation, noisy sensors, estimator, controller and pilot.

They are in lock-step, as the nodes are. Nothing aboard knows the truth; it judges the flight. The
trials of a policy are in the environment that it was trained in.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rfly_amphibious.dynamics.model import AmphibiousModel
from rfly_amphibious.dynamics.wind import Wind
from rfly_amphibious.sensors.sensor_parameters import SensorParameters
from rfly_amphibious.simulation.commands import Mode
from rfly_amphibious.simulation.simulation import Simulation
from rfly_autonomy.control.flight_controller import FlightController
from rfly_autonomy.control.pilot import abort_pilot
from rfly_autonomy.estimation.estimate import Estimate
from rfly_autonomy.estimation.estimator import StateEstimator
from rfly_autonomy.estimation.estimator_parameters import EstimatorParameters
from rfly_common.arrays import Floats
from rfly_common.config.checks import finite_number, whole_number
from rfly_common.errors import ConfigError
from rfly_common.files import StrPath
from rfly_lab.learning.episodes import (
    CHAIN_STEP,
    HIGHEST,
    HOP_DISTANCE,
    LOWEST,
    NEAR,
    ROOF_DISTANCE,
    ROOF_HEIGHT,
)
from rfly_lab.learning.grounds import hills
from rfly_lab.learning.land_air_batch import MOST_GUSTS, MOST_WIND, LandAirBatch, houses, roofs_of
from rfly_lab.learning.policy import Policy
from rfly_lab.learning.policy_pilot import PolicyPilot
from rfly_lab.learning.task_judge import TaskJudge
from rfly_lab.learning.tasks import Course, Ending
from rfly_lab.learning.views import sensors_of

CLIMB = 5.0
"""Height above the start to which it climbs before the policy flies, m; else that above a roof."""
CALM = 0.2
"""Speed below which the policy takes over, m/s."""
LONGEST_BEGIN = 40.0
"""Time until then after which the flight is given up, s."""
LONGEST_LANDING = 8.0
"""Time from the end of a task on the wheels within which the rotors stop, s."""
STANDING = 2.0
"""Time for which the flight goes on after that, s."""


class PolicyFlight(NamedTuple):
    """Flight by a policy, from the moment at which it takes over, until the rotors stand."""

    ending: Ending
    """How the task has ended, by the vehicle's own estimates."""
    true_ending: Ending
    """How it has ended by the truth, which lies beside the estimates by the error of the GPS."""
    time: Floats
    """Time, s, (k,), once a period."""
    position: Floats
    """True position, m, (k, 3)."""
    estimated: Floats
    """Estimated position, m, (k, 3)."""
    targets: Floats
    """Targets, m, (n, 3)."""
    mode: Mode
    """Mode at the end."""


def fly_policy(
    policy: Policy,
    seed: int,
    *,
    sensors: StrPath | SensorParameters | None = None,
    wind: float = 0.0,
    gusts: float = 0.0,
) -> PolicyFlight:
    """Let a policy fly its task over the usual terrain, to targets of its own.

    A task in the air begins after a take-off by the flight controller. Everything random follows
    from the seed: place, targets, noise, direction of the wind, gusts. `sensors`: those aboard, or
    the name or path of a set; None: those by which the policy sees, or the vehicle's. `wind`:
    greatest mean wind, `gusts`: standard deviation of the gusts, m/s. Raise ConfigError for a task
    that isn't to be flown so, for numbers that the environment does not take, and if the vehicle
    does not get into the air.
    """
    seed = whole_number("seed", seed, at_least=0)
    wind = finite_number("wind", wind, "m/s", at_least=0.0, at_most=MOST_WIND)
    gusts = finite_number("gusts", gusts, "m/s", at_least=0.0, at_most=MOST_GUSTS)
    course = policy.task.course
    if course not in (Course.POINT, Course.CHAIN, Course.HOP, Course.ROOF):
        raise ConfigError(f"task: {policy.facts.task!r}, expected hover, waypoints, hop or roof")
    own = sensors_of(policy.params, policy.sensors if sensors is None else sensors)
    flight = _Flight(policy, seed, own.replace(ground_truth=None), wind, gusts)
    flight.begin()
    return flight.task()


class _Flight:
    """Vehicle with everything aboard."""

    def __init__(
        self, policy: Policy, seed: int, sensors: SensorParameters, wind: float, gusts: float
    ) -> None:
        params = policy.params
        random = np.random.default_rng((seed, 4))
        self._random = random
        self._policy = policy
        self._terrain = hills()

        # outside; a roof is beside the vehicle
        x, y = random.uniform(-100.0, 100.0, 2).tolist()
        self._roof: Floats | None = None
        boxes = None
        if policy.task.course == Course.ROOF:
            boxes = houses(params, self._terrain)
            self._roof = random.choice(roofs_of(params, boxes))
            beside = random.uniform(-math.pi, math.pi)
            x = self._roof[0] + ROOF_DISTANCE[1] * math.cos(beside)
            y = self._roof[1] + ROOF_DISTANCE[1] * math.sin(beside)
        direction = random.uniform(-math.pi, math.pi)
        speed = random.uniform(0.0, wind)
        air = Wind(
            mean=(speed * math.cos(direction), speed * math.sin(direction), 0.0),
            gust_sigma=(gusts, gusts, 0.5 * gusts),
            seed=seed,
        )
        self.simulation = Simulation(
            AmphibiousModel(params, self._terrain, solids=boxes),
            sensors,
            (x, y, random.uniform(-math.pi, math.pi)),
            fail_safe=abort_pilot,
            wind=air,
            seed=seed,
        )

        # aboard
        estimator = EstimatorParameters.for_vehicle(params.name)
        self._estimator = StateEstimator(estimator, sensors, params, terrain=self._terrain)
        self.flight = FlightController(params, sensors)
        self._pilot = PolicyPilot(policy, sensors)
        self._pilot.set_origin(self._estimator.geo_origin)
        self._estimate: Estimate | None = None
        self._judge = TaskJudge(policy.task, policy.facts.period, params)
        """Judge by the truth."""
        self._rows: list[tuple[float, Floats, Floats]] = []
        """Time, position and estimated position, once a period."""
        self._hover: Floats | None = None
        self._refusal = ""
        """Why the last request was refused; "" if it was not."""

    def tick(self) -> None:
        """Run one tick, and answer it."""
        samples = self.simulation.tick()
        self._estimate = now = self._estimator.update(samples)
        self.flight.advance_clock(self.simulation.time)
        self.flight.sense(samples)
        self._pilot.sense(samples)
        if now is not None:
            wrench = self._pilot.step(now)
            if wrench is not None and self.flight.mode in self._pilot.modes:
                self.flight.set_wrench(wrench, now.time)
            elif self._hover is not None:
                self.flight.set_target(self._hover)
        self.simulation.command_rotors(self.flight.step(now, self.simulation.period))

    def _run(self, until: Callable[[], bool]) -> None:
        """Run until something has happened. Raise ConfigError if it takes too long."""
        while not until():
            if self.simulation.time > LONGEST_BEGIN:
                reason = self._refusal or self.flight.reason or "no reason is known"
                raise ConfigError(f"the vehicle does not get into the air: {reason}")
            self.tick()

    def begin(self) -> None:
        """Arm; take off and hover for a task in the air."""
        self._run(lambda: self._estimate is not None and self._request("arm"))
        if self._pilot.takes_off:
            return
        self._run(lambda: self._request("takeoff"))
        self._run(lambda: self.flight.mode is Mode.FLIGHT)
        self._hover = np.add(self._estimate_now.position, (0.0, 0.0, CLIMB))
        if self._roof is not None:
            self._hover[2] = self._roof[2] + self._random.uniform(*ROOF_HEIGHT)
        self._run(self._hovers)

    def _request(self, word: str) -> bool:
        """Request a mode; return whether it is granted."""
        self._refusal = self.flight.request(word)
        return not self._refusal

    @property
    def _estimate_now(self) -> Estimate:
        assert self._estimate is not None
        return self._estimate

    def _hovers(self) -> bool:
        """Return whether it hovers where it shall."""
        now = self._estimate_now
        assert self._hover is not None
        away = np.linalg.norm(now.position - self._hover)
        return bool(away < 0.5 and np.linalg.norm(now.velocity) < CALM)

    def _targets(self) -> Floats:
        """Return targets as the environment draws them, (n, 3), m."""
        random = self._random
        if self._roof is not None:
            return self._roof[None]

        # around the vehicle
        x, y, z = self._estimate_now.position.tolist()
        if self._policy.task.course == Course.POINT:
            return np.array((x, y, z)) + random.uniform(-NEAR, NEAR, (1, 3))

        # a chain of targets, each a step from the one before
        count = self._policy.task.targets
        hops = self._policy.task.course == Course.HOP
        steps = random.uniform(*(HOP_DISTANCE if hops else CHAIN_STEP), count)
        directions = random.uniform(-math.pi, math.pi, count)
        level = np.cumsum(
            steps[:, None] * np.column_stack([np.cos(directions), np.sin(directions)]), axis=0
        )
        level += (x, y)

        # heights
        ground = np.asarray(self._terrain.altitude(level[:, 0], level[:, 1]))
        above = 0.0 if hops else random.uniform(LOWEST, HIGHEST, count)
        return np.column_stack([level, ground + above])

    def task(self) -> PolicyFlight:
        """Let the policy fly its task, as long as the environment would, and the rotors stop."""
        targets = self._targets()
        task = self._policy.task
        self._pilot.set_targets(targets)
        self._judge.set_targets(targets)
        self._hover = None
        if self._pilot.takes_off:
            self._run(lambda: self._request("takeoff"))
        self._go_on(task.duration, lambda: self._has_ended(self._pilot.ending))

        # the rotors stop
        if self._pilot.has_landed:
            self._request("land")
            self._go_on(LONGEST_LANDING, lambda: self.flight.mode is Mode.DRIVE)
            self._go_on(STANDING, lambda: False)

        time, position, estimated = (np.array(part) for part in zip(*self._rows, strict=True))
        late = {Ending.RUNNING: Ending.OUT_OF_TIME}
        ending, true = (
            Ending.CRASHED if self.simulation.crashed else late.get(each, each)
            for each in (self._pilot.ending, self._judge.ending)
        )
        return PolicyFlight(ending, true, time, position, estimated, targets, self.flight.mode)

    def _has_ended(self, ending: Ending) -> bool:
        """Return whether a task has ended."""
        goes_on = ending is Ending.SUCCESS and self._policy.task.goes_on
        return ending is not Ending.RUNNING and not goes_on

    def _go_on(self, seconds: float, until: Callable[[], bool]) -> None:
        """Fly on until something has happened, and note the flight once a period."""
        period = self._policy.facts.period
        ticks = max(1, round(period / self.simulation.period))
        for _ in range(round(seconds / period)):
            for _ in range(ticks):
                self.tick()
            state = self.simulation.state
            self._rows.append((state.time, state.position.copy(), self._estimate_now.position))

            # what has landed has to stay there
            if self._policy.task.on_wheels or not self._has_ended(self._judge.ending):
                self._judge.update(state.x, self.simulation.outputs.numbers)
            if state.crashed or until():
                return


def try_policy(policy: Policy, seeds: ArrayLike, **options: Any) -> NDArray[np.int8]:
    """Return how the first episode of each seed ends with a policy, an `Ending`, (n,).

    Options are those of the environment, such as `wind`, or other `sensors` than the policy's, not
    what the policy was trained for. Raise ConfigError for those, for other seeds, and for sensors
    that read other numbers.
    """
    wrong = ConfigError("seeds: expected a row of whole numbers of 0 or more")
    try:
        numbers = np.asarray(seeds)
    except ValueError as error:  # rows of unlike lengths
        raise wrong from error
    is_whole = numbers.ndim == 1 and numbers.dtype.kind in "iu"
    if not is_whole or (numbers < 0).any():
        raise wrong
    facts = policy.facts
    if options.get("sensors") is None:
        options.pop("sensors", None)
    for name, value in options.items():
        if name in policy.environment and name != "sensors":
            raise ConfigError(f"{name}: {value!r}, expected none: the policy has its own")
    batch = LandAirBatch(len(numbers), **{**policy.environment, **options})
    policy.check_view(batch.observation_names)
    every = np.arange(len(numbers))
    batch.seed(every, numbers.astype(np.uint64))
    batch.begin(every)

    endings = np.zeros(len(numbers), np.int8)
    for _ in range(math.ceil(policy.task.duration / facts.period) + 1):
        batch.step(policy.act(batch.observe()))
        endings = np.where(endings == Ending.RUNNING, batch.endings, endings)
        if (endings != Ending.RUNNING).all():
            break
    return endings
