# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""A batch of land-air vehicles that learn a task over one terrain, without Gymnasium."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rfly_amphibious.dynamics.model import AmphibiousModel, Controls, ModelState
from rfly_amphibious.dynamics.vehicle_batch import VehicleBatch
from rfly_amphibious.dynamics.wind import Wind
from rfly_amphibious.sensors.sensor_parameters import SensorParameters
from rfly_amphibious.sensors.sensor_suite import joint_geometry
from rfly_amphibious.vehicle import state_layout
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_common.arrays import Bools, Floats, Ints
from rfly_common.config.checks import finite_array, finite_number, whole_number
from rfly_common.errors import CommandError, ConfigError
from rfly_common.files import StrPath
from rfly_common.frames import rotation_matrix
from rfly_lab.learning.actions import RotorAction, WheelAction, action_names, commands_of
from rfly_lab.learning.episodes import (
    SCAN_AHEAD,
    SCAN_ASIDE,
    TRACK_STEP,
    Disturbances,
    EpisodeLayout,
    Starts,
    episodes_of,
)
from rfly_lab.learning.grounds import BatchGround, ground_of, house_world, places_on
from rfly_lab.learning.tasks import ON_GROUND, USUAL_ACTIONS, Course, Ending, Task, task_of
from rfly_lab.learning.views import TRUTH, View, check_kind, sensor_names, vehicle_of, view_of
from rfly_terrain.height_map.height_map import HeightMap
from rfly_terrain.world.ground_friction import TYRES_OWN, GroundFriction
from rfly_terrain.world.solids import ObjectBoxes, Solids
from rfly_terrain.world.world import World

if TYPE_CHECKING:
    from rfly_lab.learning.range_batch import RangeBatch
    from rfly_lab.learning.sensor_batch import SensorBatch
    from rfly_lab.learning.velocity_drive import ChassisMemory
    from rfly_lab.learning.velocity_flight import FlightMemory

STEP = 0.001
"""Step of the integration, s, by the semi-implicit Euler method."""
PERIOD = 0.02
"""Usual time for which an action is held, s."""
LONGEST_PERIOD = 1.0
"""Longest time for which an action may be held, s."""
MOST_ENVIRONMENTS = 100_000
"""Most environments of a batch, some 200 MB."""
STARTS = 64
"""Places at which vehicles that stand may begin."""
TRIES = 8 * STARTS
"""Places that are tried for that."""
CLEAR_TRIES = 16 * TRIES
"""Places of which those that are clear of objects are tried."""
TRIALS = 1000
"""Courses that are drawn to see whether enough of them are clear of objects."""
LEAST_CLEAR = 20
"""Fewest of them that have to be clear: then an episode finds one for certain."""
UPRIGHT = 0.97
"""Cosine of the largest tilt of a vehicle that begins on the ground."""
MOST_MOVED = 0.05
"""Distance by which a vehicle that begins on the ground may move within 0.2 s, m."""
VARIANTS = 8
"""Vehicles from which episodes draw where their parameters differ."""
MOST_SPREAD = 0.3
"""Largest share by which parameters differ."""
MOST_WIND = 50.0
"""Largest mean wind, m/s, that of a strong hurricane."""
MOST_GUSTS = 20.0
"""Largest standard deviation of the gusts along the ground, m/s."""
HOUSE_STEP = 40.0
"""Usual distance of neighbouring houses, m."""
MOST_IN_ROW = 16
"""Most houses side by side."""


def houses(p: VehicleParameters, terrain: HeightMap) -> ObjectBoxes:
    """Return houses with flat roofs on a map, HOUSE_STEP apart, as wide as a vehicle needs.

    They are 3 to 6 m higher than the highest ground under them, and stand at the same places in all
    episodes.
    """
    along = [
        np.linspace(low, high, max(1, min(MOST_IN_ROW, round((high - low) / HOUSE_STEP))))
        for low, high in zip(*places_on(terrain), strict=True)
    ]
    x, y = np.meshgrid(*along)
    half = max(4.0, 3.0 * p.reach)
    height = np.random.default_rng(2).uniform(3.0, 6.0, x.size)

    # from below the lowest ground under each to its height above the highest
    beside = np.linspace(-half, half, 9)
    under_x = x.reshape(-1, 1, 1) + beside[:, None]
    under_y = y.reshape(-1, 1, 1) + beside
    ground = np.asarray(terrain.altitude(*np.broadcast_arrays(under_x, under_y)), np.float64)
    top = ground.max(axis=(1, 2)) + height
    bottom = ground.min(axis=(1, 2)) - 1.0
    centre = np.column_stack([x.ravel(), y.ravel(), 0.5 * (top + bottom)])
    level = np.full(x.size, half)
    return ObjectBoxes(centre, np.column_stack([level, level, 0.5 * (top - bottom)]))


def roofs_of(p: VehicleParameters, boxes: ObjectBoxes | None) -> Floats:
    """Return the places of a vehicle that stands on the roofs of houses, m, (roofs, 3)."""
    if boxes is None:
        return np.empty((0, 3))
    top = boxes.centre[:, 2] + boxes.half_extent[:, 2] + p.origin_height
    return np.column_stack([boxes.centre[:, :2], top])


def variants(p: VehicleParameters, spread: float) -> list[VehicleParameters]:
    """Return VARIANTS vehicles that differ from one by a spread, none for 0; each time the same.

    Mass, inertia, thrust, friction of the tyres, and lags of rotors and motors are multiplied by
    numbers from 1 - spread to 1 + spread.
    """
    if spread == 0.0:
        return []

    factors = np.random.default_rng(3).uniform(1.0 - spread, 1.0 + spread, (VARIANTS, 6))
    return [
        p.replace(
            mass_body=p.mass_body * mass,
            inertia=tuple(inertia * number for number in p.inertia),
            thrust_coefficient=p.thrust_coefficient * thrust,
            friction_x=p.friction_x * grip,
            friction_y=p.friction_y * grip,
            rotor_lag=p.rotor_lag * rotor_lag,
            drive_lag=p.drive_lag * drive_lag,
        )
        for mass, inertia, thrust, grip, rotor_lag, drive_lag in factors.tolist()
    ]


class LandAirBatch:
    """n vehicles of one kind, each with its own task, wind and failures.

    An environment's numbers depend on its seed, on the number of its episode and on its actions
    alone, not on the others. `vehicle`: parameters, or the name or path of a set. `terrain`: a map,
    the name or path of one, "random" for `random_terrain`, or None for that of the world, or
    `hills`. `world`: a world, the name or path of one, or "random" for `random_world`, whose
    `density` is in objects a hectare; what moves in a world is left out. `world_seed`: the seed of
    what is "random"; None: 0. `actions`: a name of `ACTIONS`. An action is held for `period`, s.
    The mean wind of an episode is uniform up to `wind`, m/s, in any direction; `gusts` is the
    standard deviation of its gusts, m/s. In a share `rotor_failures` of the episodes a rotor stops.
    With a `spread` each episode has one of VARIANTS vehicles that differ from the usual one;
    commands and observations are relative to that one all the same. `observations`:
    "truth" or "sensors"; `sensors`: the sensors by which vehicles see, or the name or path of a
    set, by default the vehicle's own. `lidar` rays around, and the rows and columns of a `depth`
    image, are seen too. Raise ConfigError for arguments that can't be used.
    """

    def __init__(
        self,
        environments: int,
        task: str,
        *,
        vehicle: StrPath | VehicleParameters = "scale",
        terrain: StrPath | HeightMap | None = None,
        world: StrPath | World | None = None,
        density: float | None = None,
        world_seed: int | None = None,
        actions: str | None = None,
        period: float = PERIOD,
        wind: float = 0.0,
        gusts: float = 0.0,
        rotor_failures: float = 0.0,
        spread: float = 0.0,
        observations: str = TRUTH,
        sensors: StrPath | SensorParameters | None = None,
        lidar: int = 0,
        depth: Sequence[int] | None = None,
    ) -> None:
        from rfly_lab.learning import (
            clear_places,
            episode_kernels,
            velocity_drive,
            velocity_flight,
        )

        environments = whole_number("num_envs", environments, at_least=1, at_most=MOST_ENVIRONMENTS)
        for name, value in (("terrain", terrain), ("world", world), ("sensors", sensors)):
            if value is not None:
                check_kind(name, value)
        period = finite_number("period", period, "s", at_least=STEP, at_most=LONGEST_PERIOD)
        wind = finite_number("wind", wind, "m/s", at_least=0.0, at_most=MOST_WIND)
        gusts = finite_number("gusts", gusts, "m/s", at_least=0.0, at_most=MOST_GUSTS)
        rotor_failures = finite_number("rotor_failures", rotor_failures, at_least=0.0, at_most=1.0)
        spread = finite_number("spread", spread, at_least=0.0, at_most=MOST_SPREAD)
        self.task = task_of(task)
        self.task_name = task
        self.actions = USUAL_ACTIONS[task] if actions is None else actions
        self.params = vehicle_of(vehicle)
        self.commands = commands_of(self.actions, self.params)
        self.view = view_of(self.params, observations, sensors, lidar, depth)
        """What vehicles see."""
        if world is not None and self.task.course == Course.ROOF:
            raise ConfigError(f"world: {task} has houses of its own, expected none")
        gap = 2.0 * self.params.reach
        self._ground = ground_of(terrain, world, density, world_seed, gap)
        self.terrain = self._ground.terrain
        self.world = self._ground.world
        """Objects on the terrain; None: there are none, but the houses of `roof`."""
        self.period = period
        self._kernels = episode_kernels
        self._flight = velocity_flight
        self._drive = velocity_drive

        # vehicles
        steps = round(period / STEP)
        if abs(steps * STEP - period) > 1e-9:
            raise ConfigError(f"period: {period:g} s, expected a multiple of {STEP:g} s")
        self.houses = houses(self.params, self.terrain) if self.task.course == Course.ROOF else None
        """Houses on whose roofs vehicles land; None for other tasks."""
        model, *others = (
            AmphibiousModel(own, self.terrain, solids=self.solids, friction=_friction(self.world))
            for own in (self.params, *variants(self.params, spread))
        )
        air = Wind(gust_sigma=(gusts, gusts, 0.5 * gusts))
        air.check_period(period)
        tick = steps
        if (
            self.commands.air == RotorAction.VELOCITY
            or self.commands.wheels == WheelAction.VELOCITY
        ):
            tick = velocity_flight.steps_of_tick(steps, STEP)
        self._ticks = steps // tick
        self._flight_law = velocity_flight.flight_law(self.params, tick * STEP)
        self._flight_memory = velocity_flight.flight_memory(environments)
        first = len(self.action_names) - 2
        self._chassis = velocity_drive.chassis_of(self.params, tick * STEP, first)
        wheels = len(self.params.wheels)
        self._chassis_memory = velocity_drive.chassis_memory(environments, wheels)
        self.vehicles = VehicleBatch(model, environments, tick, STEP, wind=air, others=others)
        self._layout = layout_of(self.params)
        self._add_sensors()

        # episodes
        count = environments
        self.episodes = episodes_of(count, self.task.targets)
        self._disturbances = Disturbances(
            wind,
            rotor_failures,
            self.params.rotors,
            len(others),
            math.ceil(self.task.duration / period),
        )
        self._starts = _starts(model, self.task, self._ground, self.houses)
        objects = None if self.world is None else self.world.solids
        self._kept_clear = clear_places.kept_clear(objects, self.params)
        self._check_room()

        self.rewards: Floats = np.zeros(count)
        """Rewards of the last step, (n,)."""
        self.endings: NDArray[np.int8] = np.zeros(count, np.int8)
        """How each episode stands, an `Ending`, (n,)."""

    @property
    def solids(self) -> Solids | None:
        """Everything solid on the terrain; None: nothing is."""
        if self.houses is not None or self.world is None:
            return self.houses
        return self.world.solids

    @functools.cached_property
    def action_names(self) -> list[str]:
        """Names of the numbers of an action, each from -1 to 1."""
        return action_names(self.actions, self.params)

    @functools.cached_property
    def observation_names(self) -> list[str]:
        """Names of the numbers of an observation, each with its unit."""
        return observation_names(self.task, self.params, self.view)

    # sensors

    def _add_sensors(self) -> None:
        """Add the sensors of what vehicles see."""
        view = self.view
        sensors = view.sensors
        self._sensed: SensorBatch | None = None
        self._ranges: list[RangeBatch] = []
        if sensors is None:
            return

        from rfly_lab.learning import range_batch, sensor_batch

        if view.is_sensed:
            self._sensed = sensor_batch.SensorBatch(self.vehicles, sensors, self.period)
        optics = []
        if view.lidar:
            optics.append((range_batch.LIDAR, range_batch.lidar_optics(sensors, view.lidar)))
        if view.depth:
            optics.append((range_batch.DEPTH, range_batch.depth_optics(sensors, *view.depth)))
        for stream, own in optics:
            rays = own if view.is_sensed else range_batch.true_optics(own, self.period)
            scene = range_batch.scene_of(self.terrain, self.objects)
            ranges = range_batch.RangeBatch(self.vehicles, scene, rays, self.period, stream)
            self._ranges.append(ranges)

    @functools.cached_property
    def objects(self) -> World:
        """Objects on the terrain, the houses of `roof` too; a world that may be empty."""
        if self.houses is not None:
            return house_world(self.houses)
        return self.world or World()

    def _measure(self, which: Ints, rows: Floats) -> None:
        """Let the sensors of vehicles (k,) measure under commands (k, controls)."""
        if self._sensed is not None:
            self._sensed.measure(which, self.episodes, rows)
        for ranges in self._ranges:
            ranges.measure(which, self.episodes.steps)

    # episodes

    @property
    def places(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """South-west and north-east corner of the places where episodes may begin, m."""
        return self._ground.low, self._ground.high

    def place(self, low: Floats, high: Floats) -> None:
        """Let vehicles that fly begin between corners (n, 2), m, a pair for each; not over roofs.

        Raise ConfigError for corners that are not within `places`, or in the wrong order.
        """
        shape = (len(self.rewards), 2)
        low = finite_array("low", low, shape)
        high = finite_array("high", high, shape)
        first, last = self.places
        if not (first <= low).all() or not (low <= high).all() or not (high <= last).all():
            raise ConfigError(f"low, high: expected corners in order between {first} and {last} m")
        self._starts = self._starts._replace(low=low, high=high)

    def seed(self, which: Ints, seeds: NDArray[np.uint64]) -> None:
        """Give environments (k,) new seeds (k,): what they draw begins anew."""
        self.episodes.seed[which] = seeds
        self.episodes.number[which] = -1

    def begin(self, which: Ints) -> bool:
        """Begin the next episode in environments (k,); return whether all are clear of objects.

        Only between corners of `place` may one find no course that is.
        """
        self.episodes.number[which] += 1

        # states to begin with
        states = np.empty((len(which), self.params.state_size))
        memories = np.empty((len(which), self.vehicles.memory.shape[1]))
        tries = np.zeros(len(which), np.int64)
        self._kernels.begin_episodes(
            which,
            self.task,
            self.episodes,
            self._starts,
            self.terrain.ground,
            *self._kept_clear,
            self._disturbances,
            states,
            memories,
            self.vehicles.mean_wind,
            self.vehicles.gust_keys,
            self.vehicles.kind,
            tries,
        )

        # the laws begin anew
        self.vehicles.put(which, states, memories)
        self._flight.begin_flight(which, self.vehicles.x, self._flight_memory)
        self._drive.begin_drive(which, self._chassis_memory)

        # what is seen at the beginning
        self.endings[which] = Ending.RUNNING
        columns = state_layout.controls_size(self.params.rotors, len(self.params.wheels))
        self._measure(which, np.zeros((len(which), columns)))
        return bool((tries <= self._kernels.MOST_TRIES).all())

    def _check_room(self) -> None:
        """Raise ConfigError if hardly any course is clear of objects."""
        if self._kept_clear[0] is None:
            return
        clear = self._kernels.clear_courses(
            TRIALS, self.task, self._starts, self.terrain.ground, *self._kept_clear
        )
        if clear < LEAST_CLEAR:
            raise ConfigError(
                f"world: {clear} of {TRIALS} courses are clear of its objects, expected "
                f"{LEAST_CLEAR} or more: fewer or smaller objects"
            )

    def step(self, actions: ArrayLike) -> None:
        """Hold actions (n, numbers) for a period; then `rewards` and `endings` are new.

        Raise CommandError for actions of another shape or that are not finite numbers.
        """
        # one type, as each has kernels of its own: seconds to compile
        actions = real_numbers("actions", actions).astype(np.float64, copy=False)
        expected = (len(self.rewards), len(self.action_names))
        if actions.shape != expected:
            raise CommandError(f"actions: shape {actions.shape}, expected {expected}")
        if not np.isfinite(actions).all():
            raise CommandError("actions: expected finite numbers")

        for _ in range(self._ticks):
            rows = self._rows(actions, self._flight_memory, self._chassis_memory)
            self.vehicles.advance(rows)
        self._kernels.judge(
            self.task,
            self.period,
            self.vehicles.x,
            self.vehicles.memory,
            self.vehicles.outputs,
            self.vehicles.has_failed,
            self._layout,
            self.episodes,
            self.rewards,
            self.endings,
        )
        self._measure(np.arange(len(rows)), rows)

    def commanded(self, actions: NDArray[np.floating]) -> Floats:
        """Return the commands that actions would be now, (n, controls), as `Controls.rows`.

        Those of velocities change within a period.
        """
        actions = actions.astype(np.float64, copy=False)
        return self._rows(actions, self._flight_memory.copy(), self._chassis_memory.copy())

    def _rows(
        self, actions: NDArray[np.floating], flight: FlightMemory, chassis: ChassisMemory
    ) -> Floats:
        """Return the commands of actions, and go on with the memories of laws that they need."""
        columns = state_layout.controls_size(self.params.rotors, len(self.params.wheels))
        rows = np.zeros((len(actions), columns))
        x = self.vehicles.x
        outputs = self.vehicles.outputs
        if self.commands.air == RotorAction.VELOCITY:
            self._flight.fly_by_velocity(actions, self._flight_law, flight, x, outputs, rows)
        if self.commands.wheels == WheelAction.VELOCITY:
            self._drive.drive_by_velocity(actions, self._chassis, chassis, x, outputs, rows)
        self._kernels.write_commands(actions, self.commands, self.episodes, rows)
        return rows

    def observe(self) -> NDArray[np.float32]:
        """Return what each vehicle sees, (n, numbers)."""
        layout = self._layout
        seen = np.empty((len(self.rewards), len(self.observation_names)), np.float32)
        if self._sensed is not None:
            self._sensed.observe(self.task, layout, self.episodes, seen)
        else:
            rates = np.empty((len(seen), len(self.params.wheels)))
            x = self.vehicles.x
            self._kernels.spin_wheels(x, layout.steering_column, layout.joints, rates)
            self._kernels.observe(
                self.task,
                x,
                self.vehicles.outputs,
                rates,
                layout,
                self.terrain.ground,
                self.episodes,
                seen,
            )

        # ranges and their ages at the end
        first = seen.shape[1] - len(self.view.range_names())
        for ranges in self._ranges:
            end = first + ranges.readings.shape[1]
            seen[:, first:end] = ranges.readings
            first = end
            if self.view.is_sensed:
                seen[:, end] = ranges.ages(self.episodes.steps)
                first += 1
        return seen

    def known_motion(self) -> tuple[Floats, Floats]:
        """Return what vehicles know of their motion: attitudes, and positions with velocities.

        They are rotations (n, 3, 3), body -> world, and (n, 2, 3), m and m/s, world: the truth, or
        by IMU and GPS.
        """
        if self._sensed is not None:
            return self._sensed.motion()
        x = self.vehicles.x
        place = x[:, state_layout.POSITION : state_layout.POSITION + 3]
        velocity = x[:, state_layout.VELOCITY : state_layout.VELOCITY + 3]
        rotation = np.asarray(rotation_matrix(x[:, state_layout.QUATERNION_XYZW]))
        return rotation, np.stack([place, velocity], axis=1)

    @property
    def terminated(self) -> Bools:
        """True where an episode has ended by what happened in it, (n,)."""
        return self._is_over & ~self.truncated

    @property
    def truncated(self) -> Bools:
        """True where an episode has ended by its time limit, (n,)."""
        is_late = self.endings == Ending.OUT_OF_TIME
        return is_late | (self.endings == Ending.SUCCESS) if self.task.goes_on else is_late

    @property
    def _is_over(self) -> Bools:
        return self.endings != Ending.RUNNING


def real_numbers(name: str, values: ArrayLike) -> NDArray[Any]:
    """Return values as an array. Raise CommandError for texts, complex numbers and ragged rows."""
    try:
        array = np.asarray(values)
    except ValueError:
        raise CommandError(f"{name}: expected rows of the same length") from None
    if not np.can_cast(array.dtype, np.float64, "same_kind"):
        raise CommandError(f"{name}: {array.dtype}, expected numbers")
    return array


def observation_names(task: Task, p: VehicleParameters, view: View | None = None) -> list[str]:
    """Return the name of each number of an observation, with its unit; vectors in body axes.

    `view`: what is seen, by default the truth alone.
    """
    view = view or View()
    if view.is_sensed:
        assert view.sensors is not None
        return [*sensor_names(p, view.sensors), *view.range_names()]
    vectors = {
        "to_target": "_m",
        "to_target_after": "_m",
        "velocity": "_mps",
        "up": "",
        "rate": "_radps",
    }

    names = [f"{name}_{axis}{unit}" for name, unit in vectors.items() for axis in "xyz"]
    names += ["clearance_m", "steering_rad"]
    names += [f"rotor_{j + 1}_share" for j in range(p.rotors)]
    names += [f"wheel_turn_{wheel}_mps" for wheel in p.wheels]
    names += [f"wheel_load_{wheel}_share" for wheel in p.wheels]
    if task.sees_ground:
        names += [f"ground_{ahead:g}_{aside:g}_m" for ahead in SCAN_AHEAD for aside in SCAN_ASIDE]
    return names + view.range_names()


def layout_of(p: VehicleParameters) -> EpisodeLayout:
    """Return the numbers of a vehicle that observations and rewards need."""
    wheels = len(p.wheels)
    state = state_layout.state_columns(p.rotors, wheels)
    outputs = state_layout.output_columns(wheels)
    of_state = np.arange(p.state_size)
    of_outputs = np.arange(state_layout.reported(wheels))

    return EpisodeLayout(
        rotors=p.rotors,
        max_rotor_speed=p.max_rotor_speed,
        hover_power=p.rotors * p.torque_coefficient * p.hover_speed**3,
        steering_column=int(of_state[state["steering"]][0]),
        joints=joint_geometry(p),
        wheel_load_columns=of_outputs[outputs["wheel_load"]],
        rolling_radius=np.array(p.rolling_radius),
        static_load=np.array(p.static_load),
    )


def _starts(
    model: AmphibiousModel, task: Task, ground: BatchGround, roofed: ObjectBoxes | None
) -> Starts:
    """Return where episodes of a task may begin. Raise ConfigError where no place is left."""
    p = model.params
    standing: tuple[ModelState, ...] = ()
    if task.course in ON_GROUND:
        standing = _standing(p, ground)
    memory_size = state_layout.memory_size(len(p.wheels))
    radius = p.steering_lever / math.tan(p.max_steering) if p.steered != "none" else 0.0

    return Starts(
        flying=model.flying((0.0, 0.0, 0.0)).x,
        standing=np.array([state.x for state in standing]).reshape(-1, p.state_size),
        standing_memory=np.array([state.memory for state in standing]).reshape(-1, memory_size),
        roofs=roofs_of(p, roofed),
        low=np.array([ground.low]),
        high=np.array([ground.high]),
        turn_radius=max(3.0 * radius, TRACK_STEP * 2.0),
    )


def _friction(world: World | None) -> GroundFriction:
    """Return the friction of the ground of a world."""
    return TYRES_OWN if world is None else world.friction


@functools.lru_cache(maxsize=8)
def _standing(p: VehicleParameters, ground: BatchGround) -> tuple[ModelState, ...]:
    """Return STARTS vehicles that stand on a ground, the same for all batches.

    They have settled, clear of objects, and the ground holds them. Raise ConfigError where it holds
    none.
    """
    from rfly_lab.learning import clear_places

    model = AmphibiousModel(p, ground.terrain, friction=_friction(ground.world))
    low = (*ground.low, -math.pi)
    high = (*ground.high, math.pi)
    places = np.random.default_rng(0).uniform(low, high, (CLEAR_TRIES, 3))
    if ground.world is not None:
        clear = np.zeros(len(places), np.bool_)
        kept = clear_places.kept_clear(ground.world.solids, p)
        clear_places.find_clear(*kept, places, clear)
        places = places[clear]

    standing: list[ModelState] = []
    for x, y, yaw in places[:TRIES].tolist():
        state = model.standing(x, y, yaw)
        if _stands(model, state):
            standing.append(state)
        if len(standing) == STARTS:
            break
    if not standing:
        clear_of = "" if ground.world is None else " clear of objects"
        tried = len(places[:TRIES])
        raise ConfigError(f"terrain: the vehicle stands at none of {tried} places{clear_of}")
    return tuple(standing)


def _stands(model: AmphibiousModel, state: ModelState) -> bool:
    """Return whether a vehicle stays where it stands, with its brakes on, and is upright."""
    rotation = rotation_matrix(state.orientation)
    if rotation[2, 2] < UPRIGHT:
        return False
    brakes = Controls(brake_torque=model.params.max_brake_torque)
    after = model.step(state, brakes, steps=200, method="semi_implicit_euler")
    moved = np.linalg.norm(after.position - state.position)
    return not after.crashed and bool(moved < MOST_MOVED)
