"""Fleet: many vehicles on timed paths over a terrain, sampled in one vectorised call."""

from __future__ import annotations

import copy
import dataclasses
import math
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rfly_common.arrays import Floats, Ints
from rfly_common.config.checks import check_choice, finite_number
from rfly_common.errors import ConfigError
from rfly_common.frames import enu_to_ned, quat_enu_flu_to_ned_frd, quat_ned_frd_to_ned_flu
from rfly_common.vehicle_states import VehicleStates
from rfly_trajectory.kernels.tables import FIXED_WING, GROUND, MULTIROTOR, POLYNOMIAL, VehiclePoses
from rfly_trajectory.motion import speed_profile
from rfly_trajectory.motion.attitude import Contact, Terrain, poses, wheel_contact
from rfly_trajectory.motion.formation import extrapolate_straight, offset_laterally
from rfly_trajectory.motion.speed_profile import (
    AtEnd,
    Schedule,
    SpeedProfile,
    join_schedules,
    schedule,
)
from rfly_trajectory.paths.path import (
    Path,
    altitudes,
    curvature_bends,
    join_paths,
    join_profiles,
    path_points,
)

if TYPE_CHECKING:
    from rfly_terrain.height_map.height_map import HeightMap

Kind = Literal["ground", "multirotor", "fixed_wing"]
KINDS = {"ground": GROUND, "multirotor": MULTIROTOR, "fixed_wing": FIXED_WING}

MAX_ID = 2**31 - 1
"""ids and types are int32 in VehicleStateArray"""
TRACK_STEP = 2.0
"""m between the points of `Fleet.track`, where that makes no more than TRACK_POINTS of them"""
TRACK_POINTS = 1000


class Limits(NamedTuple):
    """What a vehicle can do, as far as known. A fleet that asks for more moves all the same;
    `limit_check` tells.
    """

    turn_radius: float | None = None
    """m, smallest"""
    max_slope_deg: float | None = None
    """along the way, up and down"""
    max_speed: float | None = None
    """m/s over ground"""
    lateral_acceleration: float | None = None
    """m/s²"""


NO_LIMITS = Limits()


@dataclass(frozen=True)
class Vehicle:
    """One vehicle: who it is, and where it is when. Raises ConfigError where that contradicts
    itself.
    """

    name: str
    id: int
    vehicle_type: int
    path: Path
    profile: SpeedProfile
    at_end: AtEnd
    kind: Kind = "ground"
    delay: float = 0.0
    """departure, s of fleet time; until then the vehicle stands at its start"""
    phase: float = 0.0
    """arc length of the start, m along the path"""
    shift: tuple[float, float] = (0.0, 0.0)
    """the whole path is moved by this, ENU m"""
    height: float = 0.0
    """m above the ground, or z up where `absolute` is set; 0 where the path has an altitude of its
    own
    """
    absolute: bool = False
    fit_ground: bool = False
    """RflySim3D puts the model on its own ground"""
    scale: tuple[float, float, float] = (1.0, 1.0, 1.0)
    offset: tuple[float, float] = (0.0, 0.0)
    """place in a formation that turns with the path, m ahead along it and left of it; see
    `formation`
    """
    wheelbase: float | None = None
    """m between the axles of a ground vehicle; with `track` it stands on four wheels, see `wheels`
    """
    track: float | None = None
    """m between the wheels of an axle"""
    limits: Limits = NO_LIMITS
    timing: Schedule | None = field(default=None, repr=False, compare=False)
    """the motion along the path, where it is another one than profile, at_end and phase say"""
    locations: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)
    """by key, `file:line: key` in the fleet file that it comes from"""
    schedule: Schedule = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_choice("kind", self.kind, KINDS)
        for name in ("id", "vehicle_type"):
            if not 0 <= getattr(self, name) <= MAX_ID:
                raise ConfigError(f"{name}: {getattr(self, name)!r} is not within 0 … {MAX_ID}")
        finite_number("delay", self.delay, "s", at_least=0.0)
        finite_number("phase", self.phase, "m")
        finite_number("altitude", self.height, "m", at_least=None if self.absolute else 0.0)
        if self.kind == "ground" and self.absolute:
            raise ConfigError("altitude: absolute is for aircraft, a ground vehicle takes agl")
        if self.path.altitude is not None and self.kind == "ground":
            raise ConfigError(
                "shape: its waypoints have heights, which are for aircraft; a ground vehicle takes none"
            )
        if self.path.altitude is not None and (self.absolute or self.height):
            raise ConfigError("altitude: the waypoints of its shape have heights already")
        for name, other in (("wheelbase", "track"), ("track", "wheelbase")):
            value = getattr(self, name)
            if value is None:
                continue
            finite_number(name, value, "m", above=0.0)
            if self.kind != "ground":
                raise ConfigError(f"{name}: is for ground vehicles, not for a {self.kind}")
            if getattr(self, other) is None:
                raise ConfigError(f"{name}: needs the key {other} beside it")
        if self.kind == "fixed_wing" and self.at_end == "ping_pong":
            raise ConfigError("at_end: ping_pong drives backwards, which a fixed_wing can't")
        self._check_offset()
        speed_profile = self.timing
        if speed_profile is None:
            speed_profile = schedule(
                self.path.length, self.path.closed, self.profile, self.at_end, self.phase
            )
        object.__setattr__(self, "schedule", speed_profile)

    def _check_offset(self) -> None:
        """A place beyond the centre of a turn would have to be driven backwards."""
        left = self.offset[1]
        if left == 0.0:
            return
        bend = max(self.path.curvature_range, key=lambda bend: left * bend.curvature)
        if left * bend.curvature >= 1.0 - 1e-9:
            x, y = self.path.at(bend.s).position.tolist()
            raise ConfigError(
                f"formation: {self.name!r} is {abs(left):.4g} m {'left' if left > 0 else 'right'} of the path, which "
                f"turns to that side with a radius of {1 / abs(bend.curvature):.4g} m at x {x:.1f}, y {y:.1f}"
            )


class Motion(NamedTuple):
    """k vehicles at an instant each, seen from above and from the side; ENU, SI."""

    progress: Floats
    """(k, 4) arc length; speed over ground, its rate and the rate of that along the vehicle's own
    way
    """
    points: Floats
    """(k, 6) x, y, tangent x, tangent y, curvature, curvature rate"""
    position: Floats
    """(k, 3)"""
    slope: Floats
    """(k,) climb over distance in the direction of the path"""


class FleetMotion(NamedTuple):
    """n vehicles at m times; ENU, SI."""

    position: Floats
    """(m, n, 3)"""
    orientation: Floats
    """(m, n, 4) xyzw, base_link (FLU) -> map"""
    velocity: Floats
    """(m, n, 3) m/s, axes of map"""
    angular_velocity: Floats
    """(m, n, 3) rad/s, axes of base_link (FLU)"""
    arc_length: Floats
    """(m, n) m along the vehicle's path; beyond a closed path's length after the first lap"""
    speed: Floats
    """(m, n) m/s along the path, over ground, < 0 backwards"""


class Track(NamedTuple):
    """Where a vehicle's path leads, in order; ENU."""

    position: Floats
    """(k, 3)"""
    orientation: Floats
    """(k, 4) xyzw: attitude at the cruising speed"""


class Fleet:
    """n vehicles over a terrain (None: level ground at z = 0). Immutable; `on_terrain` gives one
    over another terrain.

    Raises ConfigError where two vehicles share an id or a name.
    """

    def __init__(
        self,
        vehicles: Sequence[Vehicle],
        terrain: HeightMap | None = None,
        name: str = "",
        min_separation: float | None = None,
        locations: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name
        self.min_separation = min_separation
        """m that vehicles should keep between their origins; `limit_check.check_separation` looks
        """
        self.locations = locations or {}
        """as `Vehicle.locations`, of the keys of the whole fleet"""
        self.vehicles = tuple(vehicles)
        self.terrain = terrain
        check_unique("id", [vehicle.id for vehicle in self.vehicles])
        check_unique("name", [vehicle.name for vehicle in self.vehicles])
        self._departures = join_schedules(
            [vehicle.schedule for vehicle in self.vehicles],
            [vehicle.delay for vehicle in self.vehicles],
        )
        unique = {id(vehicle.path): vehicle.path for vehicle in self.vehicles}
        index = {key: i for i, key in enumerate(unique)}
        self._paths = join_paths(list(unique.values())) if unique else None
        self._climbing = np.array(
            [vehicle.path.altitude is not None for vehicle in self.vehicles], bool
        )
        self._profiles = join_profiles(list(unique.values())) if self._climbing.any() else None
        self._path = np.array([index[id(vehicle.path)] for vehicle in self.vehicles], np.int64)
        self._shift = np.array([vehicle.shift for vehicle in self.vehicles], float).reshape(-1, 2)
        offset = np.array([vehicle.offset for vehicle in self.vehicles], float).reshape(-1, 2)
        self._ahead, self._left = np.ascontiguousarray(offset.T)
        self._in_formation = bool(offset.any())
        # Only multirotors lean with their jerk, and only beside a polynomial has a path's bend a
        # part in it.
        self._curved_formation = any(
            vehicle.kind == "multirotor" and vehicle.offset[1] and POLYNOMIAL in vehicle.path.kind
            for vehicle in self.vehicles
        )
        self._kind = np.array([KINDS[vehicle.kind] for vehicle in self.vehicles], np.uint8)
        self._height = np.array([vehicle.height for vehicle in self.vehicles], float)
        self._absolute = np.array([vehicle.absolute for vehicle in self.vehicles], bool)
        self._id = np.array([vehicle.id for vehicle in self.vehicles], np.int32)
        self._type = np.array([vehicle.vehicle_type for vehicle in self.vehicles], np.int32)
        self._fit_ground = np.array([vehicle.fit_ground for vehicle in self.vehicles], bool)
        self._scale = np.array([vehicle.scale for vehicle in self.vehicles], np.float32).reshape(
            -1, 3
        )
        self._wheelbase = np.array([vehicle.wheelbase or 0.0 for vehicle in self.vehicles], float)
        self._track = np.array([vehicle.track or 0.0 for vehicle in self.vehicles], float)
        self._on_wheels = bool(self._wheelbase.any())
        self._all = np.arange(len(self.vehicles))

    def __len__(self) -> int:
        return len(self.vehicles)

    def on_terrain(self, terrain: HeightMap | None) -> Fleet:
        """The same fleet over another terrain; cheap, all else is shared."""
        other = copy.copy(self)
        other.terrain = terrain
        return other

    def of(self, vehicles: Sequence[Vehicle]) -> Fleet:
        """The fleet with these vehicles in place of its own; itself where they are its own."""
        if len(vehicles) == len(self) and all(map(operator.is_, vehicles, self.vehicles)):
            return self
        return Fleet(vehicles, self.terrain, self.name, self.min_separation, self.locations)

    def sample(self, t: float, *, source: str = "", stamp_ns: int = 0) -> VehicleStates:
        """All vehicles at fleet time t [s], in the order of `vehicles`, in frame map, labelled with
        source and stamp.

        Before its delay a vehicle stands at its start. Raises ValueError for a time that is not
        finite.
        """
        finite_number("t", t, "s", error=ValueError)
        progress = speed_profile.progress(self._departures, self._all, np.full(len(self), float(t)))
        pose = self._poses(slice(None), progress, np.float32)
        return VehicleStates(
            id=self._id,
            vehicle_type=self._type,
            position=pose.position,
            orientation=pose.orientation,
            velocity=np.asarray(pose.velocity, np.float32),
            angular_velocity=np.asarray(pose.angular_velocity, np.float32),
            scale=self._scale,
            fit_ground=self._fit_ground,
            source=source,
            stamp_ns=stamp_ns,
        )

    def sample_times(self, times: ArrayLike) -> FleetMotion:
        """All vehicles at the fleet times (m,) [s], in float64 throughout."""
        times = np.asarray(times, dtype=float)
        if times.ndim != 1 or not np.isfinite(times).all():
            raise ValueError("times: expected a one-dimensional array of finite seconds")
        m = len(times)
        n = len(self)
        vehicle = np.tile(self._all, m)
        progress = speed_profile.progress(self._departures, vehicle, np.repeat(times, n))
        pose = self._poses(vehicle, progress)
        return FleetMotion(
            position=pose.position.reshape(m, n, 3),
            orientation=pose.orientation.reshape(m, n, 4),
            velocity=pose.velocity.reshape(m, n, 3),
            angular_velocity=pose.angular_velocity.reshape(m, n, 3),
            arc_length=progress[:, 0].reshape(m, n),
            speed=progress[:, 1].reshape(m, n),
        )

    def sample_vehicles(self, vehicle: Ints, times: Floats) -> Motion:
        """The vehicles with these indices (k,) at the fleet times (k,) [s]."""
        progress = speed_profile.progress(self._departures, vehicle, times)
        points = self._points(vehicle, progress)
        ground, _ = self._ground(vehicle, points, progress)
        pose = poses(
            self._kind[vehicle],
            self._height[vehicle],
            self._absolute[vehicle],
            progress,
            points,
            ground,
        )
        follows = ~self._absolute[vehicle] | (self._height[vehicle] <= ground.altitude)
        slope = np.where(follows, (ground.gradient * points[:, 2:4]).sum(axis=1), 0.0)
        return Motion(progress, points, pose.position, slope)

    def track(self, vehicle: int) -> Track:
        """The whole path of the vehicle with this index over the terrain, from its first to its
        last point.
        """
        path = self.vehicles[vehicle].path
        points = min(max(math.ceil(path.length / TRACK_STEP), 8), TRACK_POINTS) + 1
        progress = np.zeros((points, 4))
        progress[:, 0] = np.linspace(0.0, path.length, points)
        progress[:, 1] = self.vehicles[vehicle].profile.cruise
        pose = self._poses(np.full(points, vehicle), progress)
        return Track(pose.position, pose.orientation)

    def _poses(
        self,
        vehicle: Ints | slice,
        progress: Floats,
        rate_type: type[np.floating[Any]] = np.float64,
    ) -> VehiclePoses:
        """Poses of the vehicles with these indices (k,), whose progress (k, 4) is given. A slice
        costs no copies.
        """
        if self._paths is None:
            return VehiclePoses(*(np.zeros((0, size)) for size in (3, 4, 3, 3)))
        points = self._points(vehicle, progress)
        ground, _ = self._ground(vehicle, points, progress)
        kind = self._kind[vehicle]
        height = self._height[vehicle]
        absolute = self._absolute[vehicle]
        return poses(kind, height, absolute, progress, points, ground, rate_type)

    def _points(self, vehicle: Ints | slice, progress: Floats) -> Floats:
        """(k, 6) as `path_points`; `progress` (k, 3) becomes the vehicle's own where it has a place
        in a formation.
        """
        assert self._paths is not None
        path = self._path[vehicle]
        if self._in_formation:
            progress[:, 0] += self._ahead[vehicle]
        points = path_points(self._paths, path, progress[:, 0])
        if self._in_formation:
            beyond = progress[:, 0] - np.clip(progress[:, 0], 0.0, self._paths.length[path])
            beyond[self._paths.closed[path]] = 0.0
            extrapolate_straight(points, beyond)
            bend: Floats | float = 0.0
            if self._curved_formation:
                s = np.ascontiguousarray(progress[:, 0])
                bend = np.where(beyond == 0.0, curvature_bends(self._paths, path, s), 0.0)
            offset_laterally(points, progress, self._left[vehicle], bend)
        points[:, 0] += self._shift[vehicle, 0]
        points[:, 1] += self._shift[vehicle, 1]
        return points

    def points_at(self, vehicle: int, s: Floats) -> Floats:
        """(k, 6) x, y, tangent x, tangent y, curvature, curvature rate of the vehicle with this
        index where the path's point that it drives by is at arc length s (k,) [m]: its place in a
        formation and its shift included.
        """
        progress = np.zeros((len(s), 4))
        progress[:, 0] = s
        return self._points(np.full(len(s), vehicle), progress)

    def max_wheel_gap(self, vehicle: int, s: Floats) -> Floats:
        """(k,) m of the wheel that is farthest above the ground at the `points_at` (k,); 0 without
        wheels.
        """
        progress = np.zeros((len(s), 4))
        progress[:, 0] = s
        index = np.full(len(s), vehicle)
        return self._ground(index, self._points(index, progress), progress)[1]

    def climb(self, vehicle: int, s: Floats) -> Floats | None:
        """(k,) z [m] that the waypoints of the vehicle with this index ask for where `points_at`
        (k,) are; None where they have no heights.
        """
        if self._profiles is None or not self._climbing[vehicle]:
            return None
        path = np.full(len(s), self._path[vehicle])
        return np.ascontiguousarray(altitudes(self._profiles, path, s + self._ahead[vehicle])[:, 0])

    def _ground(
        self, vehicle: Ints | slice, points: Floats, progress: Floats
    ) -> tuple[Terrain, Floats]:
        """The ground that the vehicles feel, and their wheel gaps."""
        speed = progress[:, 1]
        ground, gap = self._terrain_surface(vehicle, points, speed)
        if self._profiles is not None:
            rows = np.flatnonzero(self._climbing[vehicle])
            on_points = points[rows]
            climb = altitudes(self._profiles, self._path[vehicle][rows], progress[rows, 0])
            _put_altitude_profile(
                ground, rows, climb, on_points, speed[rows], self._left[vehicle][rows]
            )
        return ground, gap

    def _terrain_surface(
        self, vehicle: Ints | slice, points: Floats, speed: Floats
    ) -> tuple[Terrain, Floats]:
        gap = np.zeros(len(points))
        if self.terrain is None:
            return Terrain(np.zeros(len(points)), *np.zeros((3, len(points), 2))), gap
        x, y, tx, ty = points.T[:4]
        ground = Terrain(*self.terrain.surface(x, y, speed * tx, speed * ty))
        if self._on_wheels:
            rows = np.flatnonzero(self._wheelbase[vehicle])
            tangent = points[rows, 2:4]
            on = ground.smooth_gradient[rows]
            slope = np.stack(
                [(on * tangent).sum(1), on[:, 1] * tangent[:, 0] - on[:, 0] * tangent[:, 1]], -1
            )
            wheelbase, track, height = (
                each[vehicle][rows] for each in (self._wheelbase, self._track, self._height)
            )
            middle = ground.altitude[rows] - height
            on_points = points[rows]
            own_speed = speed[rows]
            contact = wheel_contact(
                self.terrain,
                wheelbase,
                track,
                on_points,
                own_speed,
                slope,
                middle,
                ground.gradient[rows],
            )
            gap[rows] = contact.gap
            _put_wheel_plane(ground, rows, contact, on_points, own_speed)
        return ground, gap


def _put_altitude_profile(
    ground: Terrain, rows: Ints, climb: Floats, points: Floats, speed: Floats, left: Floats
) -> None:
    """Put an altitude profile in the place of the ground, where it lies above. climb (k, 3) is by
    arc length of the path, points (k, 6) and speed are those of the vehicle's own way, which may
    lie `left` (k,) of it.
    """
    own = 1.0 / (
        1.0 + left * points[:, 4]
    )  # metres of the own way to a metre of the path, see `formation.offset_laterally`
    slope = climb[:, 1] / own
    slope_by_path = climb[:, 2] / own + slope * left * points[:, 5] * own**2
    above = climb[:, 0] > ground.altitude[rows]
    rows = rows[above]
    slope = slope[above, None]
    tangent = points[above, 2:4]
    slope_rate = (slope_by_path * speed / own)[above, None]
    yaw_rate = (points[:, 4] * speed)[above, None]
    normal = np.stack([-tangent[:, 1], tangent[:, 0]], -1)
    ground.altitude[rows] = climb[above, 0]
    ground.gradient[rows] = ground.smooth_gradient[rows] = slope * tangent
    ground.smooth_gradient_rate[rows] = slope_rate * tangent + slope * yaw_rate * normal


def _put_wheel_plane(
    ground: Terrain, rows: Ints, contact: Contact, points: Floats, speed: Floats
) -> None:
    """Put the wheels' plane in the place of the ground: what `poses` makes of it are the contact's
    slopes and rates.
    """
    tangent = points[:, 2:4]
    left = np.stack([-tangent[:, 1], tangent[:, 0]], -1)
    yaw_rate = points[:, 4] * speed
    (q, p), (q_rate, p_rate) = contact.slope.T, contact.slope_rate.T
    climb = np.divide(contact.climb_rate, speed, out=q.copy(), where=speed != 0.0)
    ground.altitude[rows] = contact.altitude
    ground.gradient[rows] = climb[:, None] * tangent
    ground.smooth_gradient[rows] = q[:, None] * tangent + p[:, None] * left
    rate = (q_rate - p * yaw_rate)[:, None] * tangent + (p_rate + q * yaw_rate)[:, None] * left
    ground.smooth_gradient_rate[rows] = rate


def states_in_ned(states: VehicleStates, frame_id: str = "map_ned") -> VehicleStates:
    """States given in map (ENU) as states in its NED twin; the orientation still rotates base_link
    (FLU).
    """
    return dataclasses.replace(
        states,
        position=np.asarray(enu_to_ned(states.position), np.float64),
        orientation=orientation_in_ned(states.orientation),
        velocity=np.asarray(enu_to_ned(states.velocity), np.float32),
        frame_id=frame_id,
    )


def orientation_in_ned(orientation: Floats) -> Floats:
    """(…, 4) xyzw base_link (FLU) -> map (ENU), to base_link (FLU) -> map_ned."""
    return np.asarray(quat_ned_frd_to_ned_flu(quat_enu_flu_to_ned_frd(orientation)), np.float64)


def check_unique(what: str, values: Sequence[object]) -> None:
    """Raises ConfigError where two vehicles share one of the values."""
    seen: set[object] = set()
    for value in values:
        if value in seen:
            raise ConfigError(f"{what}: {value!r} belongs to two vehicles, each needs its own")
        seen.add(value)
