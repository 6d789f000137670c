# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

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
from rfly_common.frames import (
    enu_to_ned,
    quat_enu_flu_to_ned_frd,
    quat_ned_frd_to_ned_flu,
)
from rfly_common.vehicle_states import VehicleStates
from rfly_trajectory.kernels.tables import (
    FIXED_WING,
    GROUND,
    MULTIROTOR,
    POLYNOMIAL,
    VehiclePoses,
)
from rfly_trajectory.motion import speed_profile
from rfly_trajectory.motion.attitude import GroundPatch, WheelPlane, poses, wheel_contact
from rfly_trajectory.motion.formation import extrapolate_straight, offset_laterally
from rfly_trajectory.motion.limited_speed import BendLimits, limited_schedule
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
"""Largest id and vehicle type: both are int32 in VehicleStateArray."""
TRACK_STEP = 2.0
"""Distance between the points of `Fleet.track`, m, unless that needs more than TRACK_POINTS."""
TRACK_POINTS = 1000
"""Largest number of intervals of `Fleet.track`."""


class Limits(NamedTuple):
    """Known limits of a vehicle; None where a limit is unknown.

    A fleet may ask for more and moves all the same: `limit_check` reports it.
    """

    turn_radius: float | None = None
    """Smallest turning radius, m."""
    max_slope_deg: float | None = None
    """Steepest slope along the way, up or down, degrees."""
    max_speed: float | None = None
    """Largest speed over ground, m/s."""
    lateral_acceleration: float | None = None
    """Largest sideways acceleration, m/s²."""
    acceleration: float | None = None
    """Largest gain and loss of speed along the way, m/s²."""
    climb_speed: float | None = None
    """Largest vertical speed, up or down, m/s."""

    def or_typical(self, kind: Kind) -> Limits:
        """Return these limits, with TYPICAL_LIMITS where there is none."""
        typical = TYPICAL_LIMITS[kind]
        return Limits(
            *(other if own is None else own for own, other in zip(self, typical, strict=True))
        )


NO_LIMITS = Limits()
TYPICAL_LIMITS: dict[Kind, Limits] = {
    "ground": Limits(max_slope_deg=45.0, lateral_acceleration=8.0, acceleration=8.0),
    "multirotor": Limits(lateral_acceleration=17.0, acceleration=17.0, climb_speed=15.0),
    "fixed_wing": Limits(max_slope_deg=30.0, lateral_acceleration=17.0, acceleration=10.0),
}
"""Limits by kind that count where a fleet file sets none.

Tyres on a dry road hold about 0.8 g to each side (Gillespie, Fundamentals of Vehicle Dynamics,
chapters 3 and 6), and no slope beyond a friction coefficient of 1. In the air 17 m/s² is a bank or
a tilt of 60 degrees. A propeller that pulls with half the weight climbs at 30 degrees.
"""


@dataclass(frozen=True)
class Vehicle:
    """A vehicle of a fleet: its identity, its path, and its timing.

    Raises ConfigError if the values contradict each other.
    """

    name: str
    id: int
    vehicle_type: int
    path: Path
    profile: SpeedProfile
    at_end: AtEnd
    kind: Kind = "ground"
    delay: float = 0.0
    """Departure, s of fleet time; until then the vehicle stands at its start."""
    phase: float = 0.0
    """Arc length of the start, m along the path."""
    shift: tuple[float, float] = (0.0, 0.0)
    """Translation of the whole path, ENU, m."""
    height: float = 0.0
    """Height above ground, m, or z (up) if `absolute` is set; 0 if the path has its own altitude.
    """
    absolute: bool = False
    fit_ground: bool = False
    """True if RflySim3D puts the model on its own ground."""
    scale: tuple[float, float, float] = (1.0, 1.0, 1.0)
    offset: tuple[float, float] = (0.0, 0.0)
    """Place in a formation that turns with the path: m ahead along the path, m to its left.

    See `formation`.
    """
    wheelbase: float | None = None
    """Distance between the axles of a ground vehicle, m.

    With `track` the vehicle stands on four wheels, see `wheels`.
    """
    track: float | None = None
    """Distance between the wheels of an axle, m."""
    limits: Limits = NO_LIMITS
    timing: Schedule | None = field(default=None, repr=False, compare=False)
    """Motion along the path, if it differs from what profile, at_end and phase describe."""
    locations: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)
    """Source of each key in the fleet file, as `file:line: key`."""
    schedule: Schedule = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_choice("kind", self.kind, KINDS)
        for name in ("id", "vehicle_type"):
            if not 0 <= getattr(self, name) <= MAX_ID:
                raise ConfigError(f"{getattr(self, name)!r} is not within 0 … {MAX_ID}", key=name)

        # times and heights
        finite_number("delay", self.delay, "s", at_least=0.0)
        finite_number("phase", self.phase, "m")
        finite_number("altitude", self.height, "m", at_least=None if self.absolute else 0.0)

        # what the kind of vehicle allows
        if self.kind == "ground" and self.absolute:
            raise ConfigError(
                "absolute is for aircraft, a ground vehicle takes agl", key="altitude"
            )
        if self.path.altitude is not None and self.kind == "ground":
            raise ConfigError(
                "its waypoints have heights, which are for aircraft; a ground vehicle takes none",
                key="shape",
            )
        if self.path.altitude is not None and (self.absolute or self.height):
            raise ConfigError("the waypoints of its shape have heights already", key="altitude")

        # wheels come in pairs of keys
        for name, other in (("wheelbase", "track"), ("track", "wheelbase")):
            value = getattr(self, name)
            if value is None:
                continue
            finite_number(name, value, "m", above=0.0)
            if self.kind != "ground":
                raise ConfigError(f"is for ground vehicles, not for a {self.kind}", key=name)
            if getattr(self, other) is None:
                raise ConfigError(f"needs the key {other} too", key=name)

        if self.kind == "fixed_wing" and self.at_end == "ping_pong":
            raise ConfigError("ping_pong drives backwards, which a fixed_wing can't", key="at_end")
        self._check_offset()

        timing = self.timing
        if timing is None:
            timing = schedule(
                self.path.length, self.path.closed, self.profile, self.at_end, self.phase
            )
        object.__setattr__(self, "schedule", timing)

    def within_limits(self, offsets: Sequence[tuple[float, float]] = ()) -> Vehicle:
        """Return the same vehicle, as fast as its limits allow, or those typical of its kind.

        It slows down for bends. The members of a formation, at `offsets`, slow down together.
        """
        limits = self.limits.or_typical(self.kind)
        lateral, along = limits.lateral_acceleration, limits.acceleration
        assert lateral is not None
        assert along is not None

        speed, climb = (
            math.inf if most is None else most for most in (limits.max_speed, limits.climb_speed)
        )

        timing = limited_schedule(
            self.path,
            self.profile,
            self.at_end,
            self.phase,
            BendLimits(lateral, along, speed, climb),
            tuple(offsets) or (self.offset,),
        )
        return dataclasses.replace(self, timing=timing)

    def _check_offset(self) -> None:
        """Raise ConfigError if the place in the formation lies beyond the centre of a turn."""
        left = self.offset[1]
        if left == 0.0:
            return
        bend = max(self.path.curvature_range, key=lambda bend: left * bend.curvature)
        if left * bend.curvature >= 1.0 - 1e-9:  # the vehicle would have to drive backwards
            side = "left" if left > 0 else "right"
            x, y = self.path.at(bend.s).position.tolist()
            raise ConfigError(
                f"{self.name!r} is {abs(left):.4g} m {side} of the path, which "
                f"turns to that side with a radius of {1 / abs(bend.curvature):.4g} m at x "
                f"{x:.1f}, y {y:.1f}",
                key="formation",
            )


class VehicleMotion(NamedTuple):
    """Motion of k vehicles, each at its own instant; ENU, SI."""

    progress: Floats
    """Progress, (k, 4): arc length; speed over ground and its first two rates along the own way."""
    points: Floats
    """Path points, (k, 6): x, y, tangent x, tangent y, curvature, curvature rate."""
    position: Floats
    """Positions, (k, 3)."""
    slope: Floats
    """Climb over distance in the direction of the path, (k,)."""


class MovedVehicles(NamedTuple):
    """Vehicles that are elsewhere than on their paths, (k,) rows; ENU, SI."""

    rows: Ints
    """Places of the vehicles among those that are sampled, (k,)."""
    points: Floats
    """Points, (k, 6), as `VehicleMotion.points`."""
    progress: Floats
    """Progress, (k, 4), as `VehicleMotion.progress`."""
    z: Floats
    """Heights of aircraft, (k,), m."""
    climb: Floats
    """Vertical speeds of aircraft, (k,), m/s."""


class FleetMotion(NamedTuple):
    """Motion of n vehicles at m times; ENU, SI."""

    position: Floats
    """Positions, (m, n, 3)."""
    orientation: Floats
    """Orientations, (m, n, 4) xyzw, base_link (FLU) -> map."""
    velocity: Floats
    """Velocities, (m, n, 3), axes of map, m/s."""
    angular_velocity: Floats
    """Angular velocities, (m, n, 3), axes of base_link (FLU), rad/s."""
    arc_length: Floats
    """Arc length along the vehicle's path, (m, n), m.

    It exceeds a closed path's length after the first lap.
    """
    speed: Floats
    """Speed along the path over ground, (m, n), m/s; negative backwards."""


class FleetTrack(NamedTuple):
    """The path of a vehicle over the terrain, in order; ENU."""

    position: Floats
    """Positions, (k, 3)."""
    orientation: Floats
    """Orientations, (k, 4) xyzw: attitude at the cruising speed."""


class Fleet:
    """A fleet of n vehicles over a terrain, or over level ground at z = 0 if the terrain is None.

    Immutable; `on_terrain` returns the same fleet over another terrain. Raises ConfigError if two
    vehicles share an id or a name.
    """

    def __init__(
        self,
        vehicles: Sequence[Vehicle],
        terrain: HeightMap | None = None,
        name: str = "",
        min_separation: float | None = None,
        locations: Mapping[str, str] | None = None,
        notes: Sequence[str] = (),
    ) -> None:
        self.name = name
        self.notes = tuple(notes)
        """Sentences about what is not used of the files that it was read from."""
        self.min_separation = min_separation
        """Distance that vehicles should keep between their origins, m; see `limit_check`."""
        self.locations = locations or {}
        """Source of each key of the whole fleet, as `Vehicle.locations`."""
        self.vehicles = tuple(vehicles)
        self.terrain = terrain

        check_unique("id", [vehicle.id for vehicle in self.vehicles])
        check_unique("name", [vehicle.name for vehicle in self.vehicles])
        self._departures = join_schedules(
            [vehicle.schedule for vehicle in self.vehicles],
            [vehicle.delay for vehicle in self.vehicles],
        )

        # vehicles that share a path share its tables
        unique = {id(vehicle.path): vehicle.path for vehicle in self.vehicles}
        index = {key: i for i, key in enumerate(unique)}
        self._paths = join_paths(list(unique.values())) if unique else None
        self._climbing = np.array(
            [vehicle.path.altitude is not None for vehicle in self.vehicles], bool
        )
        self._profiles = join_profiles(list(unique.values())) if self._climbing.any() else None
        self._path = np.array([index[id(vehicle.path)] for vehicle in self.vehicles], np.int64)

        # places in formations
        self._shift = np.array([vehicle.shift for vehicle in self.vehicles], float).reshape(-1, 2)
        offset = np.array([vehicle.offset for vehicle in self.vehicles], float).reshape(-1, 2)
        self._ahead, self._left = np.ascontiguousarray(offset.T)
        self._in_formation = bool(offset.any())
        # Only multirotors lean with their jerk, and a path's bend contributes to it only along a
        # polynomial.
        self._curved_formation = any(
            vehicle.kind == "multirotor" and vehicle.offset[1] and POLYNOMIAL in vehicle.path.kind
            for vehicle in self.vehicles
        )

        # one row for each vehicle
        self._kind = np.array([KINDS[vehicle.kind] for vehicle in self.vehicles], np.uint8)
        self._height = np.array([vehicle.height for vehicle in self.vehicles], float)
        self._absolute = np.array([vehicle.absolute for vehicle in self.vehicles], bool)
        self._id = np.array([vehicle.id for vehicle in self.vehicles], np.int32)
        self._type = np.array([vehicle.vehicle_type for vehicle in self.vehicles], np.int32)
        self._fit_ground = np.array([vehicle.fit_ground for vehicle in self.vehicles], bool)
        self._scale = np.array([vehicle.scale for vehicle in self.vehicles], np.float32).reshape(
            -1, 3
        )

        # wheels
        self._wheelbase = np.array([vehicle.wheelbase or 0.0 for vehicle in self.vehicles], float)
        self._track = np.array([vehicle.track or 0.0 for vehicle in self.vehicles], float)
        self._on_wheels = bool(self._wheelbase.any())
        self._all = np.arange(len(self.vehicles))

    def __len__(self) -> int:
        return len(self.vehicles)

    def on_terrain(self, terrain: HeightMap | None) -> Fleet:
        """Return the same fleet over another terrain; cheap, everything else is shared."""
        other = copy.copy(self)
        other.terrain = terrain
        return other

    def of(self, vehicles: Sequence[Vehicle]) -> Fleet:
        """Return the fleet with other vehicles; itself if they are the same."""
        if len(vehicles) == len(self) and all(map(operator.is_, vehicles, self.vehicles)):
            return self
        return Fleet(vehicles, self.terrain, self.name, self.min_separation, self.locations)

    def places(self, t: float) -> Floats:
        """Return where the paths have all vehicles at fleet time t, s: x and y, (n, 2), ENU, m."""
        if self._paths is None:
            return np.zeros((0, 2))
        times = np.full(len(self), float(t))
        return self._points(slice(None), self._progress(self._all, times))[:, :2]

    def sample(
        self, t: float, *, source: str = "", stamp_ns: int = 0, rows: Ints | None = None
    ) -> VehicleStates:
        """Return the states of all vehicles at fleet time t, s, in the order of `vehicles`.

        The states are in frame map and carry `source` and `stamp_ns`. A vehicle stands at its start
        before its delay. `rows` (k,) are the numbers of the vehicles that are wanted, by default
        all. Raises ValueError for a time that is not finite.
        """
        finite_number("t", t, "s", error=ValueError)
        times = np.full(len(self) if rows is None else len(rows), float(t))
        return self.sample_apart(times, None, source=source, stamp_ns=stamp_ns, rows=rows)

    def sample_apart(
        self,
        times: Floats,
        moved: MovedVehicles | None,
        *,
        source: str = "",
        stamp_ns: int = 0,
        rows: Ints | None = None,
    ) -> VehicleStates:
        """Return the states of vehicles with a fleet time (k,), s, each, as `sample`.

        Some of them may be moved off their paths.
        """
        numbers = self._all if rows is None else rows
        vehicle = slice(None) if rows is None else rows
        pose = self._poses(vehicle, self._progress(numbers, times), np.float32)
        if moved is not None and len(moved.rows):
            self._put_moved(pose, moved, numbers[moved.rows])
        return self._states_of(vehicle, pose, source, stamp_ns)

    def _states_of(
        self, vehicle: Ints | slice, pose: VehiclePoses, source: str, stamp_ns: int
    ) -> VehicleStates:
        return VehicleStates(
            id=self._id[vehicle],
            vehicle_type=self._type[vehicle],
            position=pose.position,
            orientation=pose.orientation,
            velocity=np.asarray(pose.velocity, np.float32),
            angular_velocity=np.asarray(pose.angular_velocity, np.float32),
            scale=self._scale[vehicle],
            fit_ground=self._fit_ground[vehicle],
            source=source,
            stamp_ns=stamp_ns,
        )

    def _progress(self, vehicle: Ints, times: Floats) -> Floats:
        """Return the progress (k, 4) of the vehicles (k,) at their fleet times (k,), s."""
        return speed_profile.progress(self._departures, vehicle, times)

    def sample_times(self, times: ArrayLike) -> FleetMotion:
        """Return the motion of all vehicles at the fleet times (m,), s, in float64 throughout."""
        times = np.asarray(times, dtype=float)
        if times.ndim != 1 or not np.isfinite(times).all():
            raise ValueError("times: expected a one-dimensional array of finite seconds")

        m = len(times)
        n = len(self)
        vehicle = np.tile(self._all, m)
        progress = self._progress(vehicle, np.repeat(times, n))
        pose = self._poses(vehicle, progress)
        return FleetMotion(
            position=pose.position.reshape(m, n, 3),
            orientation=pose.orientation.reshape(m, n, 4),
            velocity=pose.velocity.reshape(m, n, 3),
            angular_velocity=pose.angular_velocity.reshape(m, n, 3),
            arc_length=progress[:, 0].reshape(m, n),
            speed=progress[:, 1].reshape(m, n),
        )

    def sample_vehicles(self, vehicle: Ints, times: Floats) -> VehicleMotion:
        """Return the motion of the vehicles with these indices (k,) at the fleet times (k,), s."""
        progress = self._progress(vehicle, times)
        if self._paths is None:
            return VehicleMotion(progress, np.zeros((0, 6)), np.zeros((0, 3)), np.zeros(0))
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

        # aircraft at a fixed altitude climb only where the ground pushes them up
        follows = ~self._absolute[vehicle] | (self._height[vehicle] <= ground.altitude)
        slope = np.where(follows, (ground.gradient * points[:, 2:4]).sum(axis=1), 0.0)
        return VehicleMotion(progress, points, pose.position, slope)

    def track(self, vehicle: int) -> FleetTrack:
        """Return the whole path over the terrain of the vehicle with this index.

        It goes from the first to the last point.
        """
        path = self.vehicles[vehicle].path
        points = min(max(math.ceil(path.length / TRACK_STEP), 8), TRACK_POINTS) + 1

        progress = np.zeros((points, 4))
        progress[:, 0] = np.linspace(0.0, path.length, points)
        progress[:, 1] = self.vehicles[vehicle].profile.cruise
        pose = self._poses(np.full(points, vehicle), progress)
        return FleetTrack(pose.position, pose.orientation)

    def _poses(
        self,
        vehicle: Ints | slice,
        progress: Floats,
        rate_type: type[np.floating[Any]] = np.float64,
    ) -> VehiclePoses:
        """Return the poses of the vehicles with these indices (k,), given their progress (k, 4).

        A slice as index costs no copies.
        """
        if self._paths is None:
            return VehiclePoses(*(np.zeros((0, size)) for size in (3, 4, 3, 3)))

        points = self._points(vehicle, progress)
        ground, _ = self._ground(vehicle, points, progress)
        kind = self._kind[vehicle]
        height = self._height[vehicle]
        absolute = self._absolute[vehicle]
        return poses(kind, height, absolute, progress, points, ground, rate_type)

    def _put_moved(self, pose: VehiclePoses, moved: MovedVehicles, numbers: Ints) -> None:
        """Replace the poses of moved vehicles with these numbers, (k,)."""
        rows, points, progress, z, climb = moved
        ground, _ = self._terrain_surface(numbers, points, progress[:, 1])
        kind = self._kind[numbers]
        flies = kind != GROUND
        height = np.where(flies, z, self._height[numbers])
        there = poses(kind, height, flies, progress, points, ground, np.float32)
        there.velocity[flies, 2] = climb[flies]
        for column, new in zip(pose, there, strict=True):
            column[rows] = new

    def _points(self, vehicle: Ints | slice, progress: Floats) -> Floats:
        """Return the path points (k, 6) of the vehicles, as `path_points` does.

        `progress` (k, 3) becomes the vehicle's own where it has a place in a formation.
        """
        assert self._paths is not None
        path = self._path[vehicle]
        if not self._in_formation:
            points = path_points(self._paths, path, progress[:, 0])
        else:
            progress[:, 0] += self._ahead[vehicle]
            points = path_points(self._paths, path, progress[:, 0])

            # open paths continue straight beyond their ends
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
        """Return the path points (k, 6) of a vehicle at the arc lengths s (k,), m.

        `vehicle` is its index. Columns are x, y, tangent x, tangent y, curvature, curvature rate.
        The vehicle's place in a formation and its shift are included; s belongs to the path's point
        that it drives by.
        """
        progress = np.zeros((len(s), 4))
        progress[:, 0] = s
        return self._points(np.full(len(s), vehicle), progress)

    def max_wheel_gap(self, vehicle: int, s: Floats) -> Floats:
        """Return the largest wheel gap above the ground (k,), m, at the arc lengths s (k,), m.

        It is 0 for a vehicle without wheels.
        """
        progress = np.zeros((len(s), 4))
        progress[:, 0] = s
        index = np.full(len(s), vehicle)
        return self._ground(index, self._points(index, progress), progress)[1]

    def climb(self, vehicle: int, s: Floats) -> Floats | None:
        """Return the z (k,), m, that the vehicle's waypoints ask for at the arc lengths s (k,), m.

        None if they have no heights.
        """
        if self._profiles is None or not self._climbing[vehicle]:
            return None
        path = np.full(len(s), self._path[vehicle])
        return np.ascontiguousarray(altitudes(self._profiles, path, s + self._ahead[vehicle])[:, 0])

    def _ground(
        self, vehicle: Ints | slice, points: Floats, progress: Floats
    ) -> tuple[GroundPatch, Floats]:
        """Return the ground that the vehicles feel, and their wheel gaps."""
        speed = progress[:, 1]
        ground, gap = self._terrain_surface(vehicle, points, speed)
        if self._profiles is None:
            return ground, gap

        # waypoints with heights replace the ground below them
        rows = np.flatnonzero(self._climbing[vehicle])
        climb = altitudes(self._profiles, self._path[vehicle][rows], progress[rows, 0])
        left = self._left[vehicle][rows]
        _put_altitude_profile(ground, rows, climb, points[rows], speed[rows], left)
        return ground, gap

    def _terrain_surface(
        self, vehicle: Ints | slice, points: Floats, speed: Floats
    ) -> tuple[GroundPatch, Floats]:
        """Return the terrain below the vehicles, or the plane of their wheels, and wheel gaps."""
        gap = np.zeros(len(points))
        if self.terrain is None:
            level = GroundPatch(np.zeros(len(points)), *np.zeros((3, len(points), 2)))
            return level, gap

        x, y, tangent_x, tangent_y = points.T[:4]
        ground = GroundPatch(*self.terrain.surface(x, y, speed * tangent_x, speed * tangent_y))
        if self._on_wheels:
            self._stand_on_wheels(vehicle, points, speed, ground, gap)
        return ground, gap

    def _stand_on_wheels(
        self,
        vehicle: Ints | slice,
        points: Floats,
        speed: Floats,
        ground: GroundPatch,
        gap: Floats,
    ) -> None:
        """Replace the ground below vehicles with wheels by the plane of their wheels."""
        assert self.terrain is not None
        rows = np.flatnonzero(self._wheelbase[vehicle])
        height = self._height[vehicle][rows]

        # slopes of the smooth ground along and across the way
        tangent = points[rows, 2:4]
        gradient = ground.smooth_gradient[rows]
        slope_along = (gradient * tangent).sum(1)
        slope_across = gradient[:, 1] * tangent[:, 0] - gradient[:, 0] * tangent[:, 1]

        contact = wheel_contact(
            self.terrain,
            self._wheelbase[vehicle][rows],
            self._track[vehicle][rows],
            points[rows],
            speed[rows],
            np.stack([slope_along, slope_across], -1),
            ground.altitude[rows] - height,
            ground.gradient[rows],
        )
        gap[rows] = contact.gap
        _put_wheel_plane(ground, rows, contact, points[rows], speed[rows])


def _put_altitude_profile(
    ground: GroundPatch,
    rows: Ints,
    climb: Floats,
    points: Floats,
    speed: Floats,
    left: Floats,
) -> None:
    """Replace the ground by an altitude profile where the profile lies above it.

    `climb` (k, 3) is by arc length of the path; points (k, 6) and speed (k,) are those of the
    vehicle's own way, which may lie `left` (k,) of the path, m.
    """
    # metres of the own way for each metre of the path, see `formation.offset_laterally`
    own = 1.0 / (1.0 + left * points[:, 4])
    slope = climb[:, 1] / own
    slope_by_path = climb[:, 2] / own + slope * left * points[:, 5] * own**2

    # rows whose profile lies above the ground
    above = climb[:, 0] > ground.altitude[rows]
    rows = rows[above]
    slope = slope[above, None]
    tangent = points[above, 2:4]

    # rates along the own way
    slope_rate = (slope_by_path * speed / own)[above, None]
    yaw_rate = (points[:, 4] * speed)[above, None]
    normal = np.stack([-tangent[:, 1], tangent[:, 0]], -1)

    ground.altitude[rows] = climb[above, 0]
    ground.gradient[rows] = ground.smooth_gradient[rows] = slope * tangent
    ground.smooth_gradient_rate[rows] = slope_rate * tangent + slope * yaw_rate * normal


def _put_wheel_plane(
    ground: GroundPatch, rows: Ints, contact: WheelPlane, points: Floats, speed: Floats
) -> None:
    """Replace the ground by the plane of the wheels.

    `poses` makes the contact's slopes and rates of it.
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
    """Return states in map (ENU) as states in map_ned.

    The orientation still rotates base_link (FLU).
    """
    return dataclasses.replace(
        states,
        position=np.asarray(enu_to_ned(states.position), np.float64),
        orientation=orientation_in_ned(states.orientation),
        velocity=np.asarray(enu_to_ned(states.velocity), np.float32),
        frame_id=frame_id,
    )


def orientation_in_ned(orientation: Floats) -> Floats:
    """Return orientations (…, 4) xyzw, base_link (FLU) -> map (ENU), as base_link -> map_ned."""
    return np.asarray(quat_ned_frd_to_ned_flu(quat_enu_flu_to_ned_frd(orientation)), np.float64)


def check_unique(what: str, values: Sequence[object]) -> None:
    """Raise ConfigError if two vehicles share one of the values."""
    seen: set[object] = set()
    for value in values:
        if value in seen:
            raise ConfigError(f"{value!r} belongs to two vehicles, each needs its own", key=what)
        seen.add(value)
