# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""AmphibiousModel: the dynamics of the land-air vehicle, for one vehicle or a batch.

Its methods are functions of flat arrays.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from rfly_amphibious.dynamics.arguments import (
    METHODS,
    HeldControls,
    Inputs,
    Integrator,
    Samples,
    Vehicles,
    WindSeries,
)
from rfly_amphibious.dynamics.obstacle_contacts import lower_to_roofs
from rfly_amphibious.dynamics.obstacles import Obstacles, no_obstacles, obstacles_of, with_moving
from rfly_amphibious.dynamics.tyre_ground import TyreGround, tyre_ground
from rfly_amphibious.dynamics.wind import Wind, gust_series
from rfly_amphibious.vehicle import state_layout
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_amphibious.vehicle.vehicle_record import hull_ellipsoids, kernel_records, vehicle_record
from rfly_common.arrays import Floats, Ints
from rfly_common.config.checks import all_finite, check_choice, finite_number
from rfly_common.errors import ConfigError, DynamicsError
from rfly_common.frames import euler_to_quat
from rfly_common.kernels.lanes import LANES
from rfly_common.kernels.parallel import cores, in_chunks
from rfly_terrain.height_map.height_map import HeightMap
from rfly_terrain.world.ground_friction import TYRES_OWN, GroundFriction
from rfly_terrain.world.moving import MAX_SPEED, MovingPart, MovingSolids
from rfly_terrain.world.solids import Solids

Method = Literal["rk4", "semi_implicit_euler"]
AirDensity = Literal["sea_level", "standard_atmosphere"]

WHEEL_COUNTS = (state_layout.OUTER_WHEELS, state_layout.MAX_WHEELS)
"""Numbers of wheels that a vehicle may have."""
MAX_STEP = 0.01
"""Largest step, s: beyond it no method is stable for the shipped vehicles."""
STILL = Wind()
"""No wind."""


@dataclasses.dataclass(frozen=True)
class Controls:
    """Commands to the actuators, held over a step.

    Scalars and (…,) are for all vehicles, (n, …) has one row for each. Either rotor_speed or
    rotor_torque may be set; without both the speed is 0.
    """

    rotor_speed: ArrayLike | None = None
    """Speeds of the rotors, (rotors,) or one number for all, rad/s."""
    rotor_torque: ArrayLike | None = None
    """Torques of the rotors, (rotors,) or one number for all, N m."""
    steering: ArrayLike = 0.0
    """Angle of the virtual wheel in the middle, rad; positive = left."""
    drive_torque: ArrayLike = 0.0
    """Drive torques, (wheels,) or one number for all, N m, signed."""
    brake_torque: ArrayLike = 0.0
    """Brake torques, (wheels,) or one number for all, N m, ≥ 0."""
    steering_trim: ArrayLike = 0.0
    """Angles by which wheels are steered beyond those of the linkage, (wheels,), rad.

    Wheels that are not steered have none.
    """

    def __post_init__(self) -> None:
        if self.rotor_speed is not None and self.rotor_torque is not None:
            raise ConfigError(
                "controls: rotor_speed and rotor_torque are both given, expected one of them"
            )
        if (np.asarray(self.brake_torque) < 0.0).any():
            raise ConfigError(
                f"controls: brake_torque is {self.brake_torque}, expected ≥ 0: "
                "it acts against the spin"
            )

    @property
    def torques(self) -> bool:
        """True if rotors are commanded by torque."""
        return self.rotor_torque is not None

    def rows(self, params: VehicleParameters, vehicles: int) -> Floats:
        """Return the commands as rows (vehicles, controls) in the order of `state_layout`."""
        rotors = params.rotors
        wheels = len(params.wheels)
        columns = state_layout.control_columns(rotors, wheels)
        rows = np.empty((vehicles, state_layout.controls_size(rotors, wheels)))
        rotor_name = "rotor_torque" if self.torques else "rotor_speed"
        rotor = self.rotor_torque if self.torques else self.rotor_speed
        parts = (
            ("drive_torque", self.drive_torque, columns["drive_torque"]),
            ("brake_torque", self.brake_torque, columns["brake_torque"]),
            (rotor_name, 0.0 if rotor is None else rotor, columns["rotor"]),
            ("steering", self.steering, state_layout.STEERING_COMMAND),
            ("steering_trim", self.steering_trim, columns["steering_trim"]),
        )

        try:
            for _, value, own in parts:
                rows[:, own] = value
            if all_finite(rows):
                return rows
        except ValueError:
            pass

        # something is wrong: this time raise an error that names it
        for name, value, own in parts:
            rows[:, own] = _broadcast(name, value, rows[:, own].shape)
        return rows


class _Columns:
    """Descriptor of `size` columns of an object's flat array, from the column `first`: a view."""

    def __init__(self, array: str, first: int, size: int) -> None:
        self._array = array
        self._columns = slice(first, first + size)

    def __get__(self, holder: Any, _owner: Any = None) -> Floats:
        if holder is None:
            return self  # type: ignore[return-value]  # from the class, as a property
        return getattr(holder, self._array)[..., self._columns]


class _OfWheels:
    """Descriptor of the numbers of the wheels, (…, wheels), in an object's `numbers`."""

    def __init__(self, name: str) -> None:
        self._columns = {
            state_layout.reported(wheels): state_layout.output_columns(wheels)[name]
            for wheels in WHEEL_COUNTS
        }

    def __get__(self, holder: Any, _owner: Any = None) -> Floats:
        if holder is None:
            return self  # type: ignore[return-value]  # from the class, as a property
        return holder.numbers[..., self._columns[holder.numbers.shape[-1]]]


@dataclasses.dataclass(frozen=True)
class ModelState:
    """State of one vehicle, or with a first axis of several, from which a simulation continues."""

    x: Floats
    """State, (states,) or (n, states), in the order of `state_layout`."""
    memory: Floats
    """Memory, (memory,) or (n, memory): brake torques that acted, gust, crash latch."""
    time: float = 0.0
    """Time, s."""

    position = _Columns("x", state_layout.POSITION, 3)
    """Position of the sprung centre of mass, (…, 3), m, world."""
    velocity = _Columns("x", state_layout.VELOCITY, 3)
    """Velocity of the sprung centre of mass, (…, 3), m/s, world."""

    @property
    def orientation(self) -> Floats:
        """Attitude, (…, 4), quaternion x y z w, body -> world; a copy."""
        return self.x[..., state_layout.QUATERNION_XYZW]

    rates = _Columns("x", state_layout.RATES, 3)
    """Angular velocity, (…, 3), rad/s, body."""

    @property
    def crashed(self) -> Any:
        """True if the CRASHED latch is set: bool, or (n,)."""
        latch = self.memory[..., state_layout.CRASHED] != 0.0
        return latch if latch.ndim else bool(latch)

    @property
    def crash_cause(self) -> str:
        """Part of a single vehicle that broke, and how; "" before it has crashed."""
        return state_layout.crash_cause(int(self.memory[state_layout.CRASHED]))

    @property
    def brake_torque_acting(self) -> Floats:
        """Signed brake torques of the last step, (…, wheels), N m."""
        wheels = self.memory.shape[-1] - state_layout.MEMORY + state_layout.OUTER_WHEELS
        return self.memory[..., state_layout.memory_columns(wheels)["brake_acting"]]


@dataclasses.dataclass(frozen=True)
class Outputs:
    """Results of an evaluation of the model; leading axes as the state's, or of a run's samples."""

    numbers: Floats
    """Outputs, (…, outputs), in the order of `state_layout`."""
    rotors: int
    """Number of rotors."""

    specific_force = _Columns("numbers", state_layout.SPECIFIC_FORCE, 3)
    """Specific force of the sprung centre of mass, as an accelerometer reads it, (…, 3), m/s²,
    body.
    """
    wheel_load = _OfWheels("wheel_load")
    """Loads of the wheels, (…, wheels), N."""
    tyre_force_x = _OfWheels("tyre_force_x")
    """Forward forces of the tyres, (…, wheels), N."""
    tyre_force_y = _OfWheels("tyre_force_y")
    """Forces of the tyres to the left, (…, wheels), N."""
    strut_force = _OfWheels("strut_force")
    """Forces of the struts, (…, wheels), N; positive pushes the body up."""
    spring_force = _OfWheels("spring_force")
    """Forces of the struts' springs, (…, wheels), N; positive pushes the body up."""
    damper_force = _OfWheels("damper_force")
    """Forces of the struts' dampers, (…, wheels), N; positive pushes the body up."""
    tyre_compression = _OfWheels("tyre_compression")
    """Compressions of the tyres, (…, wheels), m; 0 without contact."""
    slip_ratio = _OfWheels("slip_ratio")
    """Longitudinal slips κ' of the tyres, (…, wheels); positive drives forward."""
    slip_angle = _OfWheels("slip_angle")
    """Slip angles α' of the tyres, (…, wheels), rad; positive pushes to the left."""

    @property
    def thrust(self) -> Floats:
        """Thrusts of the rotors, (…, rotors), N."""
        return self.numbers[..., state_layout.THRUST : state_layout.THRUST + self.rotors]

    @property
    def rotor_torque(self) -> Floats:
        """Torques at the rotors' shafts, (…, rotors), N m.

        Positive turns a rotor in its sense; the body feels the opposite.
        """
        first = state_layout.ROTOR_TORQUE
        return self.numbers[..., first : first + self.rotors]

    @property
    def rotor_power(self) -> Any:
        """Power at all shafts together, W."""
        return self.numbers[..., state_layout.ROTOR_POWER]

    @property
    def body_points_down(self) -> Any:
        """Number of corners and rotor hubs on the ground, and of parts of the hull on solids."""
        return self.numbers[..., state_layout.BODY_POINTS_DOWN]

    @property
    def clearance(self) -> Any:
        """Height of the lowest wheel's lowest point above the ground, or what stands on it, m."""
        return self.numbers[..., state_layout.CLEARANCE]

    @property
    def wheels_off_map(self) -> Any:
        """Number of wheels off the map, on the height of its edge."""
        return self.numbers[..., state_layout.OFF_MAP]


@dataclasses.dataclass(frozen=True)
class Run:
    """Samples of a simulation and its end."""

    time: Floats
    """Times of the samples, (k,), s."""
    x: Floats
    """States, (k, states) or (n, k, states)."""
    outputs: Outputs
    """Outputs of the step that led to each sample."""
    final: ModelState
    """State at the end."""
    memory: Floats
    """Memories, (k, memory) or (n, k, memory), as in `ModelState`."""


STEEP = 0.05
"""Slope, m per m, from which a vehicle that stands is settled on its struts and tyres."""
SETTLINGS = 3
"""Number of times that it settles; each begins at the place where it is to stand."""
SETTLING_STEPS = 3000
"""Steps of 1 ms of each."""
SLIDING_SPEED = 0.02
"""Speed above which it has not settled then but slides, m/s."""

ControlLaw = Callable[[ModelState], Controls]
"""Function of the state that returns the controls."""


class AmphibiousModel:
    """Dynamics of one kind of vehicle over one ground; it holds no state itself.

    `terrain` None is level ground at z = 0. `ground_effect` False leaves it out. `air_density`
    "standard_atmosphere" scales all air forces with the density at z + `map_altitude` (m above sea
    level). `solids` stand on the ground, as in `World.solids`; `moving` move on it, which only
    `Stepper` and `Simulation` take into account.
    """

    def __init__(
        self,
        params: VehicleParameters,
        terrain: HeightMap | None = None,
        *,
        ground_effect: bool = True,
        air_density: AirDensity = "sea_level",
        map_altitude: float = 0.0,
        solids: Solids | None = None,
        moving: MovingSolids | None = None,
        friction: GroundFriction = TYRES_OWN,
    ) -> None:
        check_choice("air_density", air_density, get_args(AirDensity))
        finite_number("map_altitude", map_altitude, "m")
        self.params = params
        self.terrain = terrain
        self._ground = tyre_ground(terrain, friction)
        standard = air_density == "standard_atmosphere"
        record = vehicle_record(params, bool(ground_effect), standard, float(map_altitude))
        self._records = kernel_records(record)
        self._reach = params.reach
        self._hull = hull_ellipsoids(params)
        self._memory_size = state_layout.memory_size(len(params.wheels))
        self._output_size = state_layout.reported(len(params.wheels))
        self.clock_ahead = 0.0
        """Time by which the clock of moving things is ahead of the states' time, s."""
        self.others: Callable[[Floats, float, float, float], list[MovingPart]] | None = None
        """Function that returns the parts of other vehicles that this one may touch.

        Its arguments are the place (3,), m, the vehicle's reach, m, the distance that it may move,
        m, and the time, s.
        """
        self.set_solids(solids, moving)

    def set_solids(self, solids: Solids | None, moving: MovingSolids | None = None) -> None:
        """Replace the solids on the ground, and those that move on it, from the next step."""
        self.solids = solids
        self._obstacles = obstacles_of(solids, self._reach, self._hull)
        self._moving = moving
        if moving is not None and self._obstacles is None:
            self._obstacles = no_obstacles(self._hull)

    def obstacles_at(self, time: float, x: Floats, span: float) -> Obstacles | None:
        """Return what a vehicle in the state x at a time (s) may touch within the next `span` s."""
        if self._moving is None and self.others is None:
            return self._obstacles
        place = x[state_layout.POSITION : state_layout.POSITION + 3]
        velocity = x[state_layout.VELOCITY : state_layout.VELOCITY + 3]
        reach = self._reach
        margin = (math.sqrt(float(velocity @ velocity)) + MAX_SPEED) * span

        near: list[MovingPart] = []
        if self._moving is not None:
            near += self._moving.near(place, reach + margin, time + self.clock_ahead)
        if self.others is not None:
            near += self.others(place, reach, margin, time)
        if not near:
            return self._obstacles
        return with_moving(self._obstacles or no_obstacles(self._hull), near)

    def height_above_ground(self, points: Floats) -> Floats:
        """Return the heights of points (n, 3) above the ground, or what stands on it, (n,), m."""
        ground: float | Floats = 0.0
        if self.terrain is not None:
            ground = self.terrain.altitude(points[:, 0], points[:, 1])
        height = points[:, 2] - ground
        if self._obstacles is not None:
            lower_to_roofs(np.ascontiguousarray(points), self._obstacles, height)
        return height

    # evaluation

    def derivative(
        self,
        x: ArrayLike,
        *,
        rotor_speed: ArrayLike | None = None,
        rotor_torque: ArrayLike | None = None,
        steering: ArrayLike = 0.0,
        drive_torque: ArrayLike = 0.0,
        brake_torque_acting: ArrayLike = 0.0,
        steering_trim: ArrayLike = 0.0,
        wind: ArrayLike = (0.0, 0.0, 0.0),
    ) -> Floats:
        """Return dx/dt of states (states,) or (n, states).

        The commands are those of `Controls`, `brake_torque_acting` the signed torques that the
        brakes exert, (wheels,), N m, and `wind` (3,) is in world axes, m/s. This is a pure
        function: it projects and latches nothing, and limits only the actuators.
        """
        controls = Controls(
            rotor_speed, rotor_torque, steering, drive_torque, steering_trim=steering_trim
        )
        return self._evaluate(x, controls, brake_torque_acting, wind)[0]

    def outputs(
        self, state: ModelState, controls: Controls | None = None, wind: ArrayLike = (0.0, 0.0, 0.0)
    ) -> Outputs:
        """Return forces, loads and contacts in a state, with its gusts."""
        return self.evaluate(state, controls, wind)[1]

    def evaluate(
        self, state: ModelState, controls: Controls | None = None, wind: ArrayLike = (0.0, 0.0, 0.0)
    ) -> tuple[Floats, Outputs]:
        """Return `derivative` and `outputs` in a state.

        `wind` (3,) or (n, 3) is the mean; gusts of the state are added.
        """
        gust = state.memory[..., state_layout.GUST : state_layout.GUST + 3]
        dx, numbers = self._evaluate(
            state.x, controls or Controls(), state.brake_torque_acting, np.asarray(wind) + gust
        )
        return dx, Outputs(numbers, self.params.rotors)

    def _evaluate(
        self, x: ArrayLike, controls: Controls, brake_acting: ArrayLike, wind: ArrayLike
    ) -> tuple[Floats, Floats]:
        states = np.array(x, np.float64, order="C")
        shape = states.shape
        states = self._batch(states)
        vehicles = states.shape[0]
        rows = controls.rows(self.params, vehicles)
        acting = _broadcast(
            "brake_torque_acting", brake_acting, (vehicles, len(self.params.wheels))
        )
        winds = _broadcast("wind", wind, (vehicles, 3))
        dx, numbers = self.evaluate_rows(states, Inputs(rows, controls.torques, acting, winds))
        return dx.reshape(shape), numbers.reshape((*shape[:-1], numbers.shape[-1]))

    def evaluate_rows(
        self,
        x: Floats,
        inputs: Inputs,
        obstacles: Obstacles | None = None,
        since: Floats | None = None,
    ) -> tuple[Floats, Floats]:
        """Return `derivative` and the numbers of `Outputs` for n rows, unchecked: for inner loops.

        All arrays are contiguous: `x` (n, states); `inputs`: commands (n, controls) of
        `Controls.rows`, brakes (n, wheels), wind (n, 3) with gusts. `obstacles` are those of
        `obstacles_at`, None only those that stand; each row is `since` (n,) seconds later.
        """
        from rfly_amphibious.dynamics import stepping

        dx = np.zeros(x.shape)
        numbers = np.empty((x.shape[0], self._output_size))
        if obstacles is None:
            obstacles = self._obstacles
        if since is None:
            since = np.zeros(len(x))
        stepping.derivatives(x, inputs, self._records, self._ground, obstacles, since, dx, numbers)
        return dx, numbers

    # states to begin with

    def standing(
        self, x: float = 0.0, y: float = 0.0, yaw: float = 0.0, speed: float = 0.0
    ) -> ModelState:
        """Return a state on the wheels at x east, y north, heading `yaw` (rad from east).

        The vehicle rolls at `speed` (m/s). On level ground it rests exactly; elsewhere it stands on
        the plane through the ground beneath its wheels. Where that is steeper than STEEP, its
        struts and tyres carry it as they do with braked wheels, if the tyres hold it at all.
        """
        p = self.params
        normal, height = self._plane(x, y, yaw)
        forward = np.array((math.cos(yaw), math.sin(yaw), 0.0))
        forward -= normal * (forward @ normal)
        forward /= np.linalg.norm(forward)
        left = np.cross(normal, forward)

        state = np.zeros(p.state_size)
        state[0:3] = np.array((x, y, height)) + p.origin_height * normal
        state[3:6] = speed * forward
        state[state_layout.QUATERNION_XYZW] = euler_to_quat(
            (
                math.atan2(left[2], normal[2]),
                -math.asin(forward[2]),
                math.atan2(forward[1], forward[0]),
            )
        )
        state[state_layout.state_columns(p.rotors, len(p.wheels))["wheel_speed"]] = (
            speed / p.rolling_radius
        )
        begin = ModelState(state, np.zeros(self._memory_size))
        if speed != 0.0 or math.hypot(normal[0], normal[1]) <= STEEP * normal[2]:
            return begin
        return self._settled(begin, normal)

    def _settled(self, begin: ModelState, normal: Floats) -> ModelState:
        """Return the equilibrium of the braked vehicle at the same place, or `begin` if it slides.

        `normal`: of the ground. While the vehicle settles, it moves by some cm, and is put back.
        """
        brakes = Controls(brake_torque=self.params.max_brake_torque)
        state = begin
        for _ in range(SETTLINGS):
            state = self.step(state, brakes, steps=SETTLING_STEPS, method="semi_implicit_euler")
            if state.crashed or np.linalg.norm(state.velocity) > SLIDING_SPEED:
                return begin
            moved = state.position[:2] - begin.position[:2]
            state = ModelState(state.x.copy(), state.memory.copy())
            state.x[:2] -= moved
            state.x[2] += float(moved @ normal[:2]) / normal[2]
        return state

    def flying(
        self, position: ArrayLike, yaw: float = 0.0, velocity: ArrayLike = (0.0, 0.0, 0.0)
    ) -> ModelState:
        """Return a state in level flight at `position` (m, world).

        Wheels hang, and rotors turn at the speed that carries the weight.
        """
        p = self.params
        state = np.zeros(p.state_size)
        state[0:3] = position
        state[3:6] = velocity
        state[state_layout.QUATERNION_XYZW] = euler_to_quat((0.0, 0.0, yaw))
        state[state_layout.state_columns(p.rotors, len(p.wheels))["strut"]] = p.hanging_strut
        state[state_layout.ROTOR_SPEED : state_layout.ROTOR_SPEED + p.rotors] = p.hover_speed
        return ModelState(state, np.zeros(self._memory_size))

    def _plane(self, x: float, y: float, yaw: float) -> tuple[Floats, float]:
        """Return the plane that best fits the ground under the wheels: normal, height at x, y."""
        if self.terrain is None:
            return np.array((0.0, 0.0, 1.0)), 0.0
        hubs = self.params.hub_position[:, :2]
        c = math.cos(yaw)
        s = math.sin(yaw)
        offsets = hubs @ np.array(((c, s), (-s, c)))
        heights = self.terrain.altitude(x + offsets[:, 0], y + offsets[:, 1])
        plane = np.column_stack([offsets, np.ones(len(hubs))])
        (slope_x, slope_y, height), *_ = np.linalg.lstsq(plane, heights, rcond=None)
        normal = np.array((-slope_x, -slope_y, 1.0))
        return normal / np.linalg.norm(normal), float(height)

    # integration

    def step(
        self,
        state: ModelState,
        controls: Controls,
        dt: float = 0.001,
        *,
        steps: int = 1,
        wind: Wind = STILL,
        method: Method = "rk4",
    ) -> ModelState:
        """Return the state after `steps` steps of `dt` with the controls held.

        The given state does not change. Raise DynamicsError if a state is no longer finite or is
        1000 km away.
        """
        return self._advance(state, controls, dt, steps, wind, method, 0)[0]

    def run(
        self,
        state: ModelState,
        controls: Controls | ControlLaw,
        duration: float,
        dt: float = 0.001,
        *,
        wind: Wind = STILL,
        method: Method = "rk4",
        sample_period: float = 0.01,
        control_period: float = 0.004,
    ) -> Run:
        """Simulate `duration` seconds and sample them every `sample_period`.

        `controls` are held throughout, or are a function of the state that is called every
        `control_period`. All three times are rounded to whole steps. Raise DynamicsError as `step`
        does.
        """
        steps = self._steps("duration", duration, dt)
        every = max(1, self._steps("sample_period", sample_period, dt))
        if isinstance(controls, Controls):
            final, *samples = self._advance(state, controls, dt, steps, wind, method, every)
            return self._run(state, final, dt, every, *samples)

        hold = max(1, self._steps("control_period", control_period, dt))
        now = state
        done = 0
        parts = []
        while done < steps:
            if done % hold == 0:
                command = controls(now)
            # up to the next command, sample or the end
            count = min(hold - done % hold, every - done % every, steps - done)
            done += count
            now, *samples = self._advance(now, command, dt, count, wind, method, count)
            if done % every == 0:
                parts.append(samples)

        if parts:
            joined = [np.concatenate(arrays, axis=-2) for arrays in zip(*parts, strict=True)]
        else:
            sizes = (state.x.shape[-1], self._memory_size, self._output_size)
            joined = [np.empty((*state.x.shape[:-1], 0, size)) for size in sizes]
        return self._run(state, now, dt, every, *joined)

    def _run(
        self,
        begin: ModelState,
        final: ModelState,
        dt: float,
        every: int,
        samples: Floats,
        memories: Floats,
        numbers: Floats,
    ) -> Run:
        time = begin.time + dt * every * np.arange(1, samples.shape[-2] + 1)
        return Run(time, samples, Outputs(numbers, self.params.rotors), final, memories)

    def _steps(self, name: str, seconds: float, dt: float) -> int:
        return round(finite_number(name, seconds, "s", above=0.0) / dt)

    def _advance(
        self,
        state: ModelState,
        controls: Controls,
        dt: float,
        steps: int,
        wind: Wind,
        method: str,
        every: int,
    ) -> tuple[ModelState, Floats, Floats, Floats]:
        """Return the state after `steps` steps; and states, memories and outputs as samples.

        There is a sample after every `every`-th step, none for 0.
        """
        finite_number("dt", dt, "s", above=0.0, at_most=MAX_STEP)
        check_choice("method", method, get_args(Method))
        shape = state.x.shape
        x = self._batch(np.array(state.x, np.float64, order="C"))
        memory = np.array(state.memory, np.float64, order="C").reshape(-1, self._memory_size)
        count = len(x)
        vehicles = Vehicles(x, memory, np.zeros((count, 2), np.int64))
        held = HeldControls(controls.rows(self.params, count)[:, None], controls.torques, steps)
        mean = _broadcast("wind", wind.mean, (count, 3))
        series = gust_series(wind, mean, state.time, dt, steps)
        sampled = steps // every if every else 0
        samples = Samples(
            max(every, 1),
            np.empty((count, sampled, x.shape[1])),
            np.empty((count, sampled, self._memory_size)),
            np.empty((count, sampled, self._output_size)),
        )

        integrator = Integrator(dt, METHODS[method])
        self.simulate(vehicles, held, series, integrator, samples, self._obstacles)
        if vehicles.status[:, 0].any():
            raise self._diverged(x, vehicles.status, state.time, dt, len(shape) == 2)

        end = state.time + steps * dt
        final = ModelState(x.reshape(shape), memory.reshape(state.memory.shape), end)
        states, memories, numbers = (
            array.reshape((*shape[:-1], *array.shape[1:])) for array in samples[1:]
        )
        return final, states, memories, numbers

    def simulate(
        self,
        vehicles: Vehicles,
        controls: HeldControls,
        wind: WindSeries,
        integrator: Integrator,
        samples: Samples,
        obstacles: Obstacles | None,
    ) -> None:
        """Take all vehicles through their steps in place; without obstacles in lanes."""
        from rfly_amphibious.dynamics import lane_stepping, stepping

        def arguments(
            start: int, stop: int
        ) -> tuple[Vehicles, HeldControls, WindSeries, Integrator, Any, TyreGround]:
            """Return the arguments of a kernel for some of the vehicles."""
            piece = slice(start, stop)
            return (
                Vehicles(vehicles.x[piece], vehicles.memory[piece], vehicles.status[piece]),
                controls._replace(rows=controls.rows[piece]),
                wind._replace(mean=wind.mean[piece], noise=wind.noise[piece]),
                integrator,
                self._records,
                self._ground,
            )

        def samples_of(start: int, stop: int) -> Samples:
            return Samples(samples.every, *(array[start:stop] for array in samples[1:]))

        def work(start: int, stop: int) -> None:
            in_lanes = start
            if side_by_side:
                in_lanes += (stop - start) // LANES * LANES
            if in_lanes > start:
                lane_stepping.simulate_lanes(
                    *arguments(start, in_lanes), samples_of(start, in_lanes)
                )
            if stop > in_lanes:
                stepping.simulate(*arguments(in_lanes, stop), obstacles, samples_of(in_lanes, stop))

        count = len(vehicles.x)
        side_by_side = count >= LANES and obstacles is None
        chunks = 2 * cores() if side_by_side else 4 * cores()
        size = max(1, -(-count // chunks))
        if side_by_side:
            size = -(-size // LANES) * LANES
        in_chunks(work, count, size)

    def _batch(self, x: Floats) -> Floats:
        size = self.params.state_size
        if x.ndim not in (1, 2) or x.shape[-1] != size:
            raise ValueError(f"x: expected shape ({size},) or (n, {size}), got {x.shape}")
        return x.reshape(-1, size)

    def _diverged(
        self, x: Floats, status: Ints, start: float, dt: float, batch: bool
    ) -> DynamicsError:
        vehicle = int(np.flatnonzero(status[:, 0])[0])
        whose = f"vehicle {vehicle}: " if batch else ""
        when = f"at {start + (status[vehicle, 1] + 1) * dt:.6g} s"

        bad = np.flatnonzero(~np.isfinite(x[vehicle]))
        if bad.size:
            name = state_layout.state_names(self.params.rotors, len(self.params.wheels))[bad[0]]
            return DynamicsError(
                f"{whose}state {name} is {x[vehicle, bad[0]]} {when}; "
                "a smaller step or other inputs may help"
            )
        return DynamicsError(
            f"{whose}position_m is {x[vehicle, :3].tolist()} {when}: more than 1000 km away"
        )


def _broadcast(name: str, value: ArrayLike, shape: tuple[int, ...]) -> Floats:
    """Return a value as a new array of a shape. Raise ValueError if it does not fit."""
    array = np.asarray(value, np.float64)
    result = np.empty(shape)
    try:
        if array.ndim > len(shape):
            raise ValueError
        result[...] = array  # a third of the time of `np.broadcast_to`
    except ValueError:
        expected = f"expected shape {shape[1:]} or {shape}"
        raise ValueError(f"{name}: {expected}, got {array.shape}") from None
    if not np.isfinite(result).all():
        raise ValueError(f"{name} is {array.tolist()}: numbers must be finite")
    return result
