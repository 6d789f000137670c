"""AmphibiousModel: the land-air vehicle's dynamics as functions of flat arrays, for one vehicle or
a batch.
"""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Callable
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from rfly_amphibious.dynamics.arguments import (
    RK4,
    SEMI_IMPLICIT_EULER,
    HeldControls,
    Inputs,
    Integrator,
    Samples,
    Vehicles,
    WindSeries,
)
from rfly_amphibious.dynamics.ground import ground_of
from rfly_amphibious.dynamics.obstacle_contacts import lower_to_roofs
from rfly_amphibious.dynamics.obstacles import Obstacles, no_obstacles, obstacles_of, with_moving
from rfly_amphibious.dynamics.wind import GUST_PERIOD, Wind, gust_times
from rfly_amphibious.vehicle import state_layout as at
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_amphibious.vehicle.vehicle_record import hull_ellipsoids, kernel_records, vehicle_record
from rfly_common.arrays import Floats, Ints
from rfly_common.config.checks import check_choice, finite_number
from rfly_common.errors import ConfigError, DynamicsError
from rfly_common.files import open_regular
from rfly_common.frames import euler_to_quat
from rfly_common.kernels.jit import use_numba
from rfly_common.kernels.lanes import LANES
from rfly_common.kernels.parallel import cores, in_chunks
from rfly_common.untrusted_files.numpy_files import NpzReader
from rfly_common.untrusted_files.reader_errors import reader_errors
from rfly_terrain.height_map.height_map import HeightMap
from rfly_terrain.world.moving import MAX_SPEED, MovingPart, MovingSolids
from rfly_terrain.world.solids import Solids

Method = Literal["rk4", "semi_implicit_euler"]
AirDensity = Literal["sea_level", "standard_atmosphere"]

WHEEL_COUNTS = (at.OUTER_WHEELS, at.MAX_WHEELS)
MAX_STEP = 0.01
"""s: beyond it no method is stable for the shipped vehicles"""
MAX_SAVED = 10_000_000
"""numbers of a saved state: some 100,000 vehicles"""
STILL = Wind()


@dataclasses.dataclass(frozen=True)
class Controls:
    """Commands to the actuators, held over a step. Scalars and (…,) are for all vehicles, (n, …)
    one for each.

    Either rotor_speed (rad/s) or rotor_torque (N m), one a rotor, or one number for all of them;
    neither: speed 0.
    """

    rotor_speed: ArrayLike | None = None
    rotor_torque: ArrayLike | None = None
    steering: ArrayLike = 0.0
    """rad, of the virtual wheel in the middle; positive = left"""
    drive_torque: ArrayLike = 0.0
    """(wheels,) N m, signed, or one number for all wheels"""
    brake_torque: ArrayLike = 0.0
    """(wheels,) N m, ≥ 0"""

    def __post_init__(self) -> None:
        if self.rotor_speed is not None and self.rotor_torque is not None:
            raise ConfigError(
                "controls: rotor_speed and rotor_torque are both given, expected one of them"
            )
        if (np.asarray(self.brake_torque) < 0.0).any():
            raise ConfigError(
                f"controls: brake_torque is {self.brake_torque}, expected ≥ 0: it acts against the spin"
            )

    @property
    def torques(self) -> bool:
        """Whether rotors are commanded by torque."""
        return self.rotor_torque is not None

    def rows(self, params: VehicleParameters, vehicles: int) -> Floats:
        """(vehicles, controls) in the order of `state_layout`."""
        rotors = params.rotors
        wheels = len(params.wheels)
        columns = at.control_columns(rotors, wheels)
        rows = np.empty((vehicles, at.controls_size(rotors, wheels)))
        rotor = self.rotor_torque if self.rotor_torque is not None else self.rotor_speed
        parts = (
            (
                "drive_torque",
                self.drive_torque,
                columns["drive_torque"],
            ),
            (
                "brake_torque",
                self.brake_torque,
                columns["brake_torque"],
            ),
            (
                "rotor_torque" if self.torques else "rotor_speed",
                0.0 if rotor is None else rotor,
                columns["rotor"],
            ),
            ("steering", self.steering, at.STEERING_COMMAND),
        )
        try:
            for _, value, own in parts:
                rows[:, own] = value
            if np.isfinite(rows).all():
                return rows
        except ValueError:
            pass  # told below, by name
        for name, value, own in parts:
            rows[:, own] = _broadcast(name, value, rows[:, own].shape)
        return rows


class _Columns:
    """(…, size) of an object's flat array, from a column on: a view."""

    def __init__(self, array: str, first: int, size: int) -> None:
        self._array = array
        self._columns = slice(first, first + size)

    def __get__(self, holder: Any, _owner: Any = None) -> Floats:
        if holder is None:
            return self  # type: ignore[return-value]  # asked of the class, as a property answers
        return getattr(holder, self._array)[..., self._columns]


class _OfWheels:
    """(…, wheels) of an object's `numbers`, whose size tells how many wheels there are."""

    def __init__(self, name: str) -> None:
        self._columns = {
            at.reported(wheels): at.output_columns(wheels)[name] for wheels in WHEEL_COUNTS
        }

    def __get__(self, holder: Any, _owner: Any = None) -> Floats:
        if holder is None:
            return self  # type: ignore[return-value]  # asked of the class, as a property answers
        return holder.numbers[..., self._columns[holder.numbers.shape[-1]]]


@dataclasses.dataclass(frozen=True)
class ModelState:
    """All that a simulation needs to go on: of one vehicle, or with a first axis of vehicles."""

    x: Floats
    """(states,) or (n, states): `state_layout`"""
    memory: Floats
    """(memory,) or (n, memory): brake torques that acted, gust, crash latch"""
    time: float = 0.0
    """s"""

    position = _Columns("x", at.POSITION, 3)
    """(…, 3) of the sprung centre of mass, m, world."""
    velocity = _Columns("x", at.VELOCITY, 3)
    """(…, 3) m/s, world."""

    @property
    def orientation(self) -> Floats:
        """(…, 4) quaternion x y z w, body -> world; a copy."""
        return self.x[..., at.QUATERNION_XYZW]

    rates = _Columns("x", at.RATES, 3)
    """(…, 3) angular velocity, rad/s, body."""

    @property
    def crashed(self) -> Any:
        """Whether the CRASHED latch is set: bool, or (n,)."""
        latch = self.memory[..., at.CRASHED] != 0.0
        return latch if latch.ndim else bool(latch)

    @property
    def crash_cause(self) -> str:
        """Of one vehicle: which part broke, and how; "" before it has crashed."""
        return at.crash_cause(int(self.memory[at.CRASHED]))

    @property
    def brake_torque_acting(self) -> Floats:
        """(…, wheels) signed brake torques of the last step, N m."""
        wheels = self.memory.shape[-1] - at.MEMORY + at.OUTER_WHEELS
        return self.memory[..., at.memory_columns(wheels)["brake_acting"]]

    def save(self, path: str | os.PathLike[str]) -> None:
        """To an .npz file, bit by bit."""
        with open(path, "wb") as file:
            np.savez(file, x=self.x, memory=self.memory, time=np.float64(self.time))

    @classmethod
    def restore(cls, path: str | os.PathLike[str]) -> ModelState:
        """From a file of `save`. Raises ConfigError where it is not one."""
        with (
            reader_errors(
                lambda text: ConfigError(f"{os.fspath(path)}: no saved state of a vehicle ({text})")
            ),
            open_regular(path) as file,
        ):
            archive = NpzReader(file)
            x, memory, time = (
                archive.read(key, np.float64, MAX_SAVED) for key in ("x", "memory", "time")
            )
        shapes = [(*x.shape[:-1], at.memory_size(wheels)) for wheels in WHEEL_COUNTS]
        if memory.shape not in shapes or x.ndim not in (1, 2) or time.ndim:
            raise ConfigError(
                f"{os.fspath(path)}: no saved state of a vehicle: arrays {x.shape} and {memory.shape}"
            )
        return cls(x, memory, float(time))


@dataclasses.dataclass(frozen=True)
class Outputs:
    """What was met in one evaluation of the model; leading axes as the state's, or of a run's
    samples.
    """

    numbers: Floats
    rotors: int

    specific_force = _Columns("numbers", at.SPECIFIC_FORCE, 3)
    """(…, 3) m/s², body, of the sprung centre of mass: what an accelerometer there reads."""
    wheel_load = _OfWheels("wheel_load")
    """(…, wheels) N."""
    tyre_force_x = _OfWheels("tyre_force_x")
    """(…, wheels) N, forward."""
    tyre_force_y = _OfWheels("tyre_force_y")
    """(…, wheels) N, to the left."""
    strut_force = _OfWheels("strut_force")
    """(…, wheels) N; positive pushes the body up."""
    tyre_compression = _OfWheels("tyre_compression")
    """(…, wheels) m; 0 without contact."""

    @property
    def thrust(self) -> Floats:
        """(…, rotors) N."""
        return self.numbers[..., at.THRUST : at.THRUST + self.rotors]

    @property
    def rotor_power(self) -> Any:
        """W at all shafts together."""
        return self.numbers[..., at.ROTOR_POWER]

    @property
    def body_points_down(self) -> Any:
        """Corners of the body box and rotor hubs on the ground, and parts of the hull on something
        solid.
        """
        return self.numbers[..., at.BODY_POINTS_DOWN]

    @property
    def clearance(self) -> Any:
        """m from the ground, or what stands on it, up to the lowest point of the lowest wheel."""
        return self.numbers[..., at.CLEARANCE]

    @property
    def wheels_off_map(self) -> Any:
        """Wheels that stand where there is no map, on its edge's height."""
        return self.numbers[..., at.OFF_MAP]


@dataclasses.dataclass(frozen=True)
class Run:
    """Samples of a simulation and its end."""

    time: Floats
    """(k,) s"""
    x: Floats
    """(k, states) or (n, k, states)"""
    outputs: Outputs
    """of the step that led to each sample"""
    final: ModelState
    memory: Floats
    """(k, memory) or (n, k, memory), as in `ModelState`"""


Pilot = Callable[[ModelState], Controls]


class AmphibiousModel:
    """The dynamics of one kind of vehicle over one ground; holds no state itself.

    terrain None: level ground at z = 0. `ground_effect` False leaves it out. `air_density`
    "standard_atmosphere" scales all air forces with the density at z + `map_altitude` (m above sea
    level). `solids`: what stands on the ground, as `World.solids` has it; `moving`: what moves on
    it, which `Stepper` and `Simulation` take along.
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
    ) -> None:
        check_choice("air_density", air_density, get_args(AirDensity))
        finite_number("map_altitude", map_altitude, "m")
        self.params = params
        self.terrain = terrain
        self._ground = ground_of(terrain)
        standard = air_density == "standard_atmosphere"
        record = vehicle_record(params, bool(ground_effect), standard, float(map_altitude))
        self._records = kernel_records(record)
        self._reach = params.reach
        self._hull = hull_ellipsoids(params)
        self._memory = at.memory_size(len(params.wheels))
        self._outputs = at.reported(len(params.wheels))
        self.clock_ahead = 0.0
        """s that the clock by which things move is ahead of the states' time"""
        self.others: Callable[[Floats, float, float, float], list[MovingPart]] | None = None
        """other vehicles: (place (3,), m; the vehicle's reach, m; how much further, m; time, s) ->
        what it may touch
        """
        self.set_solids(solids, moving)

    def set_solids(self, solids: Solids | None, moving: MovingSolids | None = None) -> None:
        """Other things stand on the ground, or move on it, from the next step on."""
        self._obstacles = obstacles_of(solids, self._reach, self._hull)
        self._moving = moving
        if moving is not None and self._obstacles is None:
            self._obstacles = no_obstacles(self._hull)

    def obstacles_at(self, time: float, x: Floats, span: float) -> Obstacles | None:
        """What a vehicle in the state x at a time (s) may touch within the next `span` s, by which
        it moves.
        """
        if self._moving is None and self.others is None:
            return self._obstacles
        place = x[at.POSITION : at.POSITION + 3]
        velocity = x[at.VELOCITY : at.VELOCITY + 3]
        reach = self._reach
        more = (math.sqrt(float(velocity @ velocity)) + MAX_SPEED) * span
        near = (
            []
            if self._moving is None
            else list(self._moving.near(place, reach + more, time + self.clock_ahead))
        )
        if self.others is not None:
            near += self.others(place, reach, more, time)
        if not near:
            return self._obstacles
        return with_moving(self._obstacles or no_obstacles(self._hull), near)

    def height_above_ground(self, points: Floats) -> Floats:
        """(n,) m from points (n, 3) straight down to the ground, or to what stands on it."""
        height = points[:, 2] - (
            0.0 if self.terrain is None else self.terrain.altitude(points[:, 0], points[:, 1])
        )
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
        wind: ArrayLike = (0.0, 0.0, 0.0),
    ) -> Floats:
        """dx/dt of states (states,) or (n, states).

        Commands as in `Controls`, `brake_torque_acting` the signed torques that brakes exert
        (wheels,), wind (3,) in world axes. A pure function: nothing is projected, latched or
        limited but the actuators.
        """
        controls = Controls(rotor_speed, rotor_torque, steering, drive_torque)
        return self._evaluate(x, controls, brake_torque_acting, wind)[0]

    def outputs(
        self, state: ModelState, controls: Controls | None = None, wind: ArrayLike = (0.0, 0.0, 0.0)
    ) -> Outputs:
        """Forces, loads and contacts in a state; gusts of the state included."""
        return self.evaluate(state, controls, wind)[1]

    def evaluate(
        self, state: ModelState, controls: Controls | None = None, wind: ArrayLike = (0.0, 0.0, 0.0)
    ) -> tuple[Floats, Outputs]:
        """`derivative` and `outputs` in a state; `wind` (3,) or (n, 3) is the mean, gusts of the
        state come on top.
        """
        gust = state.memory[..., at.GUST : at.GUST + 3]
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
        """`derivative` and the numbers of `Outputs` for n rows of contiguous arrays, unchecked: for
        inner loops.

        `x` (n, states); `inputs`: commands (n, controls) of `Controls.rows`, brakes (n, wheels),
        wind (n, 3) with gusts. `obstacles`: those of `obstacles_at`, each row `since` (n,) s later;
        None: only what stands.
        """
        from rfly_amphibious.dynamics import stepping

        dx = np.zeros_like(x)
        numbers = np.empty((x.shape[0], self._outputs))
        among = self._obstacles if obstacles is None else obstacles
        later = np.zeros(len(x)) if since is None else since
        stepping.derivatives(x, inputs, self._records, self._ground, among, later, dx, numbers)
        return dx, numbers

    # states to begin with

    def standing(
        self, x: float = 0.0, y: float = 0.0, yaw: float = 0.0, speed: float = 0.0
    ) -> ModelState:
        """On its wheels at x east, y north, heading `yaw` (rad from east), rolling at `speed`
        (m/s).

        At rest exactly on level ground; elsewhere on the plane through the ground beneath its
        wheels.
        """
        from scipy.spatial.transform import Rotation

        p = self.params
        normal, height = self._plane(x, y, yaw)
        forward = np.array((math.cos(yaw), math.sin(yaw), 0.0))
        forward -= normal * (forward @ normal)
        forward /= np.linalg.norm(forward)
        rotation = np.column_stack([forward, np.cross(normal, forward), normal])
        state = np.zeros(p.state_size)
        state[0:3] = np.array((x, y, height)) + p.origin_height * normal
        state[3:6] = speed * forward
        state[at.QUATERNION_XYZW] = Rotation.from_matrix(rotation).as_quat()
        state[at.state_columns(p.rotors, len(p.wheels))["wheel_speed"]] = speed / p.rolling_radius
        return ModelState(state, np.zeros(self._memory))

    def flying(
        self, position: ArrayLike, yaw: float = 0.0, velocity: ArrayLike = (0.0, 0.0, 0.0)
    ) -> ModelState:
        """Level in the air at `position` (m, world), wheels hanging, rotors at the speed that
        carries the weight.
        """
        p = self.params
        state = np.zeros(p.state_size)
        state[0:3] = position
        state[3:6] = velocity
        state[at.QUATERNION_XYZW] = euler_to_quat((0.0, 0.0, yaw))
        state[at.state_columns(p.rotors, len(p.wheels))["strut"]] = p.hanging_strut
        state[at.ROTOR_SPEED : at.ROTOR_SPEED + p.rotors] = p.hover_speed
        return ModelState(state, np.zeros(self._memory))

    def _plane(self, x: float, y: float, yaw: float) -> tuple[Floats, float]:
        """Normal and height, at x, y, of the plane that fits the ground beneath the wheels best."""
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
        """The state after `steps` steps of `dt` with the controls held. The given state stays as it
        is.

        Raises DynamicsError where a state is no longer finite or is 1000 km away.
        """
        return self._advance(state, controls, dt, steps, wind, method, 0)[0]

    def run(
        self,
        state: ModelState,
        controls: Controls | Pilot,
        duration: float,
        dt: float = 0.001,
        *,
        wind: Wind = STILL,
        method: Method = "rk4",
        sample_period: float = 0.01,
        control_period: float = 0.004,
    ) -> Run:
        """Simulates `duration` seconds and samples them every `sample_period`.

        `controls`: held throughout, or a function of the state that is asked every
        `control_period`. All three times are rounded to whole steps. Raises DynamicsError as `step`
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
            count = min(hold, steps - done, every - done % every)
            if done % hold == 0:
                command = controls(now)
            count = min(count, hold - done % hold)
            done += count
            now, *samples = self._advance(now, command, dt, count, wind, method, count)
            if done % every == 0:
                parts.append(samples)
        if not parts:
            sizes = (state.x.shape[-1], self._memory, self._outputs)
            return self._run(
                state, now, dt, every, *(np.empty((*state.x.shape[:-1], 0, size)) for size in sizes)
            )
        joined = [np.concatenate(arrays, axis=-2) for arrays in zip(*parts, strict=True)]
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
        """`steps` steps; and states, memories and outputs after every `every`-th of them (0: none)."""
        from rfly_amphibious.dynamics import stepping

        finite_number("dt", dt, "s", above=0.0, at_most=MAX_STEP)
        check_choice("method", method, get_args(Method))
        shape = state.x.shape
        x = self._batch(np.array(state.x, np.float64, order="C"))
        memory = np.array(state.memory, np.float64, order="C").reshape(-1, self._memory)
        vehicles = x.shape[0]
        rows = controls.rows(self.params, vehicles)[:, None]
        periods = gust_times(state.time, dt, steps)
        new = periods[1:] > periods[:-1]
        # a whole number of periods may begin within a step: only the last of them is felt
        noise = wind.gust_noise(vehicles, int(periods[0]) + 1, int(periods[-1] - periods[0]))
        noise = np.ascontiguousarray(noise[:, periods[1:][new] - periods[0] - 1])
        keep, add = wind.gust_coefficients()
        mean = _broadcast("wind", wind.mean, (vehicles, 3))
        count = steps // every if every else 0
        samples = np.empty((vehicles, count, x.shape[1]))
        memories = np.empty((vehicles, count, self._memory))
        numbers = np.empty((vehicles, count, self._outputs))
        status = np.zeros((vehicles, 2), np.int64)
        code = RK4 if method == "rk4" else SEMI_IMPLICIT_EULER
        abreast = vehicles >= LANES and self._obstacles is None and use_numba()
        if abreast:
            from rfly_amphibious.dynamics import lane_stepping

        def work(start: int, stop: int) -> None:
            whole = start + (stop - start) // LANES * LANES if abreast else start
            for first, last in ((start, whole), (whole, stop)):
                if first == last:
                    continue
                piece = slice(first, last)
                of_vehicles = (
                    Vehicles(x[piece], memory[piece], status[piece]),
                    HeldControls(rows[piece], controls.torques, steps),
                    WindSeries(
                        mean[piece],
                        noise[piece],
                        new,
                        keep,
                        add,
                        float(wind.turbulence),
                        GUST_PERIOD,
                    ),
                    Integrator(dt, code),
                    self._records,
                    self._ground,
                )
                kept = Samples(max(every, 1), samples[piece], memories[piece], numbers[piece])
                if last == whole:
                    lane_stepping.simulate_lanes(*of_vehicles, kept)
                else:
                    stepping.simulate(*of_vehicles, self._obstacles, kept)

        size = max(1, -(-vehicles // (4 * cores())))
        in_chunks(work, vehicles, -(-size // LANES) * LANES if abreast else size)
        if status[:, 0].any():
            raise self._diverged(x, status, state.time, dt, len(shape) == 2)
        after = ModelState(
            x.reshape(shape), memory.reshape(state.memory.shape), state.time + steps * dt
        )
        return (
            after,
            samples.reshape((*shape[:-1], *samples.shape[1:])),
            memories.reshape((*shape[:-1], *memories.shape[1:])),
            numbers.reshape((*shape[:-1], *numbers.shape[1:])),
        )

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
            name = at.state_names(self.params.rotors, len(self.params.wheels))[bad[0]]
            return DynamicsError(
                f"{whose}state {name} is {x[vehicle, bad[0]]} {when}; a smaller step or other inputs may help"
            )
        return DynamicsError(
            f"{whose}position_m is {x[vehicle, :3].tolist()} {when}: more than 1000 km away"
        )


def _broadcast(name: str, value: ArrayLike, shape: tuple[int, ...]) -> Floats:
    array = np.asarray(value, np.float64)
    whole = np.empty(shape)
    try:
        if array.ndim > len(shape):
            raise ValueError
        whole[...] = array  # a third of the time of `np.broadcast_to`
    except ValueError:
        raise ValueError(
            f"{name}: expected shape {shape[1:]} or {shape}, got {array.shape}"
        ) from None
    if not np.isfinite(whole).all():
        raise ValueError(f"{name} is {array.tolist()}: numbers must be finite")
    return whole
