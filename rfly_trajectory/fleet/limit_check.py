# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Checks of a fleet: limits (slope, speed, acceleration), separation, and tracks off the map."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rfly_common.arrays import Floats, Ints
from rfly_trajectory.fleet.fleet import Fleet, Vehicle
from rfly_trajectory.paths.path import altitudes, join_profiles

if TYPE_CHECKING:
    from rfly_terrain.height_map.height_map import HeightMap

DRIVE_STEP = 2.0
"""Distance between the samples of a drive, m, unless that needs more than MAX_SAMPLES."""
MAX_SAMPLES = 20_000
"""Largest number of samples of a drive."""
NEIGHBOURS = 6
"""Nearest vehicles of each vehicle that are checked for separation."""
MAX_INSTANTS = 5000
"""Largest number of instants in a check of separation."""
MEETING = 0.005
"""Distance, m, below which two vehicles are at the same place."""
CLIMB_SAMPLES = 1025
"""Places of a path at which its slope is looked for."""
MAX_PAIRS = 1000
"""Largest number of pairs whose least distance is refined."""
_SLACK = 1e-6
"""Relative tolerance: a limit that is just kept is kept."""


class LimitViolation(NamedTuple):
    """Something that a person should know before the fleet moves. It moves all the same."""

    vehicle: str
    text: str
    location: str = ""
    """Source in the fleet file, as `file:line: key`, if the fleet comes from a file."""
    position: tuple[float, float] | None = None
    """Position that the text names, x, y, ENU, m."""


class Drive(NamedTuple):
    """Drive of one vehicle from departure until its motion ends or begins to repeat, (k,) each."""

    time: Floats
    """Time since the departure, s."""
    position: Floats
    """Positions, (k, 3), ENU, m."""
    ground: Floats
    """Altitude of the terrain, m; 0 without a terrain."""
    speed: Floats
    """Speed over ground, m/s; negative backwards."""
    curvature: Floats
    """Curvature, 1/m, left positive."""
    lateral_acceleration: Floats
    """Lateral acceleration, m/s², left positive."""
    gain: Floats
    """Size of the acceleration along the way, m/s², where it begins; 0 elsewhere."""
    slope: Floats
    """Climb over distance of the vehicle's way; over the exact ground for what follows it."""

    @property
    def distance(self) -> Floats:
        """Horizontal distance covered, m."""
        steps = np.hypot(*np.diff(self.position[:, :2], axis=0).T)
        return np.concatenate([np.zeros(1), np.cumsum(steps)])


def duration(vehicle: Vehicle) -> float:
    """Return the seconds from a vehicle's departure until its motion ends or begins to repeat."""
    motion = vehicle.schedule
    if math.isfinite(motion.loop_period):
        return motion.loop_start + motion.loop_period
    start, _, speed, *_ = motion.pieces[-1]
    return start + vehicle.path.length / abs(speed) if speed else start


def drive(fleet: Fleet, index: int) -> Drive:
    """Return the drive of the vehicle with this index."""
    vehicle = fleet.vehicles[index]

    # instants
    end = duration(vehicle)
    samples = min(max(math.ceil(end * vehicle.profile.cruise / DRIVE_STEP), 500), MAX_SAMPLES) + 1
    time = np.linspace(0.0, end, samples)
    progress, points, position, slope = fleet.sample_vehicles(
        np.full(samples, index), time + vehicle.delay
    )
    speed = progress[:, 1]
    curvature = points[:, 4]

    ground = np.zeros(samples)
    if fleet.terrain is not None:
        ground = np.asarray(fleet.terrain.altitude(points[:, 0], points[:, 1]), float)
    return Drive(
        time,
        position,
        ground,
        speed,
        curvature,
        curvature * speed**2,
        _gains(vehicle, time),
        slope,
    )


def _gains(vehicle: Vehicle, time: Floats) -> Floats:
    """Return gain or loss of speed by the instants of a drive, m/s²; each at its begin."""
    begin, _, _, acceleration, _ = np.array(vehicle.schedule.pieces, float).T
    gains = np.zeros(len(time))
    at = np.minimum(np.searchsorted(time, begin), len(time) - 1)
    np.maximum.at(gains, at, np.abs(acceleration))
    return gains


def check_limits(fleet: Fleet) -> list[LimitViolation]:
    """Return the worst violation of each limit that vehicles exceed.

    TYPICAL_LIMITS count where a vehicle has no limit of its own. Copies on one track count once.
    """
    findings = []
    seen = set()
    for index, vehicle in enumerate(fleet.vehicles):
        # copies that drive alike
        start = None if vehicle.path.closed else vehicle.phase
        place = (id(vehicle.path), start, vehicle.shift, vehicle.offset, vehicle.height)
        kind = (vehicle.kind, vehicle.limits)
        motion = (vehicle.profile, vehicle.at_end, vehicle.wheelbase, vehicle.track)
        key = place + kind + motion
        if key in seen:
            continue
        seen.add(key)

        findings += _exceeded(vehicle, drive(fleet, index))
    return findings


def _exceeded(vehicle: Vehicle, drive: Drive) -> list[LimitViolation]:
    """Return a violation for each limit that a drive exceeds, at its worst place."""
    limits = vehicle.limits.or_typical(vehicle.kind)
    largest_curvature = None if limits.turn_radius is None else 1.0 / limits.turn_radius
    rows: list[tuple[str, Floats, float | None, str]] = [
        (
            "turn_radius",
            np.abs(drive.curvature),
            largest_curvature,
            f"it can't turn tighter than {limits.turn_radius} m, but its radius is {{}} m",
        ),
        (
            "max_slope_deg",
            np.degrees(np.arctan(np.abs(drive.slope))),
            limits.max_slope_deg,
            f"it takes slopes up to {limits.max_slope_deg}°, but has {{}}°",
        ),
        (
            "max_speed",
            np.abs(drive.speed),
            limits.max_speed,
            f"it goes up to {limits.max_speed} m/s, but has {{}} m/s",
        ),
        (
            "lateral_acceleration",
            np.abs(drive.lateral_acceleration),
            limits.lateral_acceleration,
            f"it takes up to {limits.lateral_acceleration} m/s² sideways, but gets {{}} m/s²",
        ),
        (
            "acceleration",
            drive.gain,
            limits.acceleration,
            f"it gains or loses up to {limits.acceleration} m/s in a second, but has {{}} m/s²",
        ),
        (
            "climb_speed",
            np.abs(drive.slope * drive.speed),
            limits.climb_speed,
            f"it climbs or sinks at up to {limits.climb_speed} m/s, but has {{}} m/s",
        ),
    ]

    violations = []
    for name, values, limit, text in rows:
        worst = int(np.argmax(values))
        value = float(values[worst])
        if limit is None or value <= limit * (1.0 + _SLACK):
            continue

        # a curvature is shown as a radius
        if name == "turn_radius":
            shown = _distinct_digits(1.0 / value, 1.0 / limit)
        else:
            shown = _distinct_digits(value, limit)
        x, y = drive.position[worst, :2].tolist()
        message = f"{text.format(shown)} at x {x:.1f}, y {y:.1f}"
        if getattr(vehicle.limits, name) is None:
            kind = vehicle.kind.replace("_", " ")
            message += f" (the typical limit of kind {kind}; limits.{name} sets another)"
        location = vehicle.locations.get(f"limits.{name}", "")
        violations.append(LimitViolation(vehicle.name, message, location, (x, y)))
    return violations


def _distinct_digits(value: float, limit: float) -> str:
    """Return the value with four digits, or with more if the limit reads alike."""
    for digits in range(4, 17):
        text = f"{value:.{digits}g}"
        if float(text) != limit:
            return text
    return repr(value)


def check_separation(
    fleet: Fleet, seconds: float | None = None, radii: ArrayLike = 0.0
) -> list[LimitViolation]:
    """Return the pairs that come too near to each other, nearest first.

    Too near is less than the fleet's `min_separation`, if it has one, and less than the sum of both
    vehicles' `radii`, (n,) or one for all, m: then their bodies meet.

    The check runs from fleet time 0 to `seconds`, by default until every vehicle has made its drive
    once. A vehicle that waits for its delay stands in the way of the others. Those that share one
    start, as copies with a delay do, are no violation there until both have departed, or until one
    has been away and comes back. Only the NEIGHBOURS nearest vehicles of each vehicle are checked.
    """
    separation = fleet.min_separation or 0.0
    radius = np.broadcast_to(np.asarray(radii, float), (len(fleet),))
    farthest = max(separation, 2.0 * float(radius.max(initial=0.0)))
    if farthest <= 0.0 or len(fleet) < 2:
        return []
    if seconds is None:
        seconds = max(vehicle.delay + duration(vehicle) for vehicle in fleet.vehicles)
    fastest = max(map(_fastest, fleet.vehicles))
    instants = min(max(math.ceil(seconds * fastest / (0.25 * farthest)), 1), MAX_INSTANTS) + 1
    times = np.linspace(0.0, seconds, instants)
    step = seconds / (instants - 1)

    # two vehicles can come nearer by about this much until the next sample
    reach = farthest + 1.5 * fastest * step
    starts = _Starts.of(fleet, times, farthest)
    nearest = _nearest_samples(fleet, times, reach, starts)

    # the pairs' least distances between the samples
    violations = []
    for (i, j), (_, sampled) in sorted(nearest.items(), key=lambda pair: pair[1])[:MAX_PAIRS]:
        first, second = fleet.vehicles[i], fleet.vehicles[j]
        begin = max(sampled - step, 0.0, float(starts.together_until(i, j)))
        end = min(sampled + step, seconds)
        distance, t, (x, y, _) = _closest(fleet, i, j, begin, end)

        touching = float(radius[i] + radius[j])
        if distance >= max(separation, touching) * (1.0 - _SLACK):
            continue
        meeting = "meets" if distance < MEETING else f"comes within {distance:.3g} m of"
        text = f"{meeting} {second.name!r} after {t:.1f} s at x {x:.1f}, y {y:.1f}; "
        location = ""
        if distance < touching:
            text += f"their bodies meet below {touching:.3g} m"
        else:
            text += f"min_separation is {separation:g} m"
            location = fleet.locations.get("min_separation", "")
        violations.append((distance, LimitViolation(first.name, text, location, (x, y))))
    violations.sort(key=lambda row: row[0])
    return [violation for _, violation in violations]


def _fastest(vehicle: Vehicle) -> float:
    """Return a bound of a vehicle's speed in space, m/s: outside of bends, and where it climbs."""
    path = vehicle.path
    stretch = max(1.0 - vehicle.offset[1] * bend.curvature for bend in path.curvature_range)
    climb = 0.0
    if path.altitude is not None:
        s = np.linspace(0.0, path.length, CLIMB_SAMPLES)
        slope = altitudes(join_profiles([path]), np.zeros(s.size, np.int64), s)[:, 1]
        climb = float(np.abs(slope).max())
    return vehicle.profile.cruise * max(stretch, 1.0) * math.hypot(1.0, climb)


class _Starts(NamedTuple):
    """Vehicles at their starts, (n,) each."""

    place: Ints
    """Number of the start; vehicles that stand at the same place have the same."""
    delay: Floats
    """Time of the departure, s."""
    away: Floats
    """Time at which a vehicle has come away from its start, s; inf: never."""

    @classmethod
    def of(cls, fleet: Fleet, times: Floats, distance: float) -> _Starts:
        """Return the starts of a fleet; `distance` from them, m, a vehicle is away.

        Only vehicles that share their start with others are followed until they are away.
        """
        delay = np.array([vehicle.delay for vehicle in fleet.vehicles])
        start = fleet.sample_vehicles(np.arange(len(fleet)), np.zeros(len(fleet))).position
        _, place, count = np.unique(
            np.round(start / MEETING), axis=0, return_inverse=True, return_counts=True
        )
        place = place.ravel()

        away = np.full(len(fleet), math.inf)
        near = np.flatnonzero(count[place] > 1)
        for t in times.tolist():
            if not len(near):
                break
            position = fleet.sample_vehicles(near, np.full(len(near), t)).position
            leaves = np.linalg.norm(position - start[near], axis=1) >= distance
            away[near[leaves]] = t
            near = near[~leaves]
        return cls(place, delay, away)

    def together_until(self, i: Ints | int, j: Ints | int) -> Floats:
        """Return the time, s, from which pairs of vehicles count: 0 if they start apart."""
        both_departed = np.maximum(self.delay[i], self.delay[j])
        one_away = np.minimum(self.away[i], self.away[j])
        return np.where(self.place[i] == self.place[j], np.minimum(both_departed, one_away), 0.0)


def _nearest_samples(
    fleet: Fleet, times: Floats, reach: float, starts: _Starts
) -> dict[tuple[int, int], tuple[float, float]]:
    """Return the least sampled distance, m, and its time, s, of each pair within reach, m."""
    from scipy.spatial import cKDTree

    nearest: dict[tuple[int, int], tuple[float, float]] = {}
    every = np.arange(len(fleet))
    count = min(NEIGHBOURS + 1, len(fleet))
    for t in times.tolist():
        position = fleet.sample_vehicles(every, np.full(len(fleet), t)).position

        # neighbours within reach, as pairs of vehicles
        tree = cKDTree(position)
        distance, neighbour = tree.query(position, k=count, distance_upper_bound=reach)
        row, column = np.nonzero(np.isfinite(distance))
        first, second = np.sort(np.stack([row, neighbour[row, column]]), axis=0)
        counts = (first != second) & (starts.together_until(first, second) <= t)
        pairs = zip(first[counts].tolist(), second[counts].tolist(), strict=True)

        for pair, apart in zip(pairs, distance[row, column][counts].tolist(), strict=True):
            if apart < nearest.get(pair, (math.inf, 0.0))[0]:
                nearest[pair] = (apart, t)
    return nearest


def _closest(
    fleet: Fleet, i: int, j: int, begin: float, end: float
) -> tuple[float, float, list[float]]:
    """Return the least distance of two vehicles, its time, and the first vehicle's position then.

    The interval is narrowed down three times.
    """
    for _ in range(3):
        times = np.linspace(begin, end, 65)
        sampled = fleet.sample_vehicles(np.repeat([i, j], 65), np.tile(times, 2))
        first, second = sampled.position.reshape(2, 65, 3)
        distance = np.linalg.norm(first - second, axis=-1)
        nearest = int(np.argmin(distance))
        begin = float(times[max(nearest - 1, 0)])
        end = float(times[min(nearest + 1, 64)])
    return float(distance[nearest]), float(times[nearest]), first[nearest].tolist()


MAX_POINTS = 20_000
"""Largest number of points on a track; they lie half a cell apart unless that needs more."""
TOUCHING = 0.02
"""Gap above which a wheel counts as off the ground, m."""
SAMPLES_IN_A_CELL = 10
"""Points of a track in each cell at which wheels are checked, until MAX_WHEEL_SAMPLES."""
MAX_WHEEL_SAMPLES = 50_000
"""Largest number of points of a track at which wheels are checked."""


def check_tracks(fleet: Fleet) -> list[LimitViolation]:
    """Return what is wrong with the tracks over the terrain, in the vehicles' order, then limits.

    Vehicles that stand still are checked too; without a terrain only `check_limits` counts. Off the
    map the ground has the altitude of the map's edge, and a z below the ground is raised to it:
    both are safe, and both are seldom what was meant. Copies on one track are checked and reported
    once, for the first.
    """
    if fleet.terrain is None:
        return check_limits(fleet)
    violations = []
    seen = set()
    for index, vehicle in enumerate(fleet.vehicles):
        altitude = vehicle.height if vehicle.absolute else None
        key = (id(vehicle.path), vehicle.shift, vehicle.offset, altitude)
        if key not in seen:
            seen.add(key)
            violations += _check_track(fleet, index, fleet.terrain)
    return violations + check_limits(fleet)


def _check_track(fleet: Fleet, index: int, terrain: HeightMap) -> list[LimitViolation]:
    """Return where one vehicle's track leaves the map or lies below the ground."""
    vehicle = fleet.vehicles[index]
    length = vehicle.path.length
    half_cell = 0.5 * min(abs(terrain.step_x), abs(terrain.step_y))
    points = min(max(math.ceil(length / half_cell), 16), MAX_POINTS) + 1
    s = np.linspace(0.0, length, points)
    position = fleet.points_at(index, s)[:, :2]

    # off the map
    off_map = ~terrain.inside(position[:, 0], position[:, 1])
    share = length * float(np.mean(off_map))
    text = f"about {share:.1f} m of its {length:.0f} m long track are off the map"
    rows = [(off_map, text, "the ground there has the altitude of the map's edge", "shape")]

    # below the ground
    climb = fleet.climb(index, s)
    if vehicle.absolute or climb is not None:
        altitude = vehicle.height if climb is None else climb
        depth = terrain.altitude(position[:, 0], position[:, 1]) - altitude
        if climb is None:
            what = f"its altitude of {vehicle.height:g} m"
        else:
            what = "the altitude of its waypoints"
        text = f"{what} is up to {depth.max():.1f} m below the ground"
        source = "altitude" if vehicle.absolute else "shape"
        rows.append((depth > 0.0, text, "it is raised to the ground there", source))

    violations = []
    for holds, text, consequence, source in rows:
        if holds.any():
            x, y = position[int(np.argmax(holds))].tolist()
            message = f"{text}, first at x {x:.1f}, y {y:.1f}; {consequence}"
            location = vehicle.locations.get(source, "")
            violations.append(LimitViolation(vehicle.name, message, location, (x, y)))
    return violations


class WheelGap(NamedTuple):
    """Residual of one vehicle's wheel contact along its track."""

    gap: float
    """Largest gap of the wheel that is highest above the ground, m."""
    x: float
    """East coordinate of the largest gap, m."""
    y: float
    """North coordinate of the largest gap, m."""
    share: float
    """Share of the track on which a wheel is more than TOUCHING above the ground."""


def wheel_gaps(fleet: Fleet) -> list[WheelGap | None]:
    """Return the wheel gaps of the vehicles in order; None for those without wheels.

    The points are a tenth of the terrain's cell apart, or MAX_WHEEL_SAMPLES on longer tracks.
    Wheels are never below the ground. If four wheels can't all touch, the two on the lower diagonal
    are off it. Copies on one track share one result.
    """
    by_track: dict[tuple[object, ...], WheelGap] = {}
    gaps: list[WheelGap | None] = []
    for index, vehicle in enumerate(fleet.vehicles):
        if vehicle.wheelbase is None:
            gaps.append(None)
            continue
        place = (id(vehicle.path), vehicle.shift, vehicle.offset, vehicle.height)
        key = (*place, vehicle.wheelbase, vehicle.track)
        if key not in by_track:
            by_track[key] = _wheel_gap(fleet, index)
        gaps.append(by_track[key])
    return gaps


def _wheel_gap(fleet: Fleet, index: int) -> WheelGap:
    """Return the residual of one vehicle's wheel contact along its track."""
    length = fleet.vehicles[index].path.length
    terrain = fleet.terrain
    step = math.inf
    if terrain is not None:
        step = min(abs(terrain.step_x), abs(terrain.step_y)) / SAMPLES_IN_A_CELL
    samples = min(max(math.ceil(length / step), 16), MAX_WHEEL_SAMPLES) + 1
    s = np.linspace(0.0, length, samples)

    gap = fleet.max_wheel_gap(index, s)
    worst = int(np.argmax(gap))
    x, y = fleet.points_at(index, s[worst : worst + 1])[0, :2].tolist()
    return WheelGap(float(gap[worst]), x, y, float(np.mean(gap > TOUCHING)))
