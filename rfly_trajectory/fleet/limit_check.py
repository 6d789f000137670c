"""Checks of a fleet: limits (slope, speed, acceleration), separation, and where tracks leave the
map.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from rfly_common.arrays import Floats
from rfly_trajectory.fleet.fleet import Fleet, Vehicle

DRIVE_STEP = 2.0
"""m between the samples of a drive, where that makes no more than MAX_SAMPLES of them"""
MAX_SAMPLES = 20_000
NEIGHBOURS = 6
"""of each vehicle that are looked at"""
MAX_INSTANTS = 5000
MAX_PAIRS = 1000
_SLACK = 1e-6
"""relative: a limit that is just kept is kept"""


class Finding(NamedTuple):
    """Something that a person should know before the fleet moves. It moves all the same."""

    vehicle: str
    text: str
    location: str = ""
    """`file:line: key` of what asks for it, where the fleet comes from a file"""
    position: tuple[float, float] | None = None
    """x, y ENU m of the place that the text names"""


class Drive(NamedTuple):
    """One vehicle from its departure to where its motion ends or begins to repeat, (k,) each."""

    time: Floats
    """s since the departure"""
    position: Floats
    """(k, 3) ENU m"""
    ground: Floats
    """altitude of the terrain, m; 0 without one"""
    speed: Floats
    """m/s over ground, < 0 backwards"""
    curvature: Floats
    """1/m, left positive"""
    lateral_acceleration: Floats
    """m/s², to the left"""
    slope: Floats
    """of the vehicle's way, climb over distance; exact ground under what follows it"""

    @property
    def distance(self) -> Floats:
        """Horizontal distance covered, m."""
        steps = np.hypot(*np.diff(self.position[:, :2], axis=0).T)
        return np.concatenate([np.zeros(1), np.cumsum(steps)])


def duration(vehicle: Vehicle) -> float:
    """Seconds from a vehicle's departure until its motion ends, or until it begins to repeat."""
    motion = vehicle.schedule
    if math.isfinite(motion.loop_period):
        return motion.loop_start + motion.loop_period
    start, _, speed, *_ = motion.pieces[-1]
    return start + vehicle.path.length / abs(speed) if speed else start


def drive(fleet: Fleet, index: int) -> Drive:
    """The drive of the vehicle with this index."""
    vehicle = fleet.vehicles[index]
    end = duration(vehicle)
    samples = min(max(math.ceil(end * vehicle.profile.cruise / DRIVE_STEP), 500), MAX_SAMPLES) + 1
    time = np.linspace(0.0, end, samples)
    progress, points, position, climb = fleet.sample_vehicles(
        np.full(samples, index), time + vehicle.delay
    )
    speed = progress[:, 1]
    ground = (
        np.zeros(samples)
        if fleet.terrain is None
        else fleet.terrain.altitude(points[:, 0], points[:, 1])
    )
    return Drive(
        time,
        position,
        np.asarray(ground, float),
        speed,
        points[:, 4],
        points[:, 4] * speed**2,
        climb,
    )


def check_limits(fleet: Fleet) -> list[Finding]:
    """Where vehicles exceed their own limits; the worst place of each limit. Copies on one track
    are told once.
    """
    findings = []
    seen = set()
    for index, vehicle in enumerate(fleet.vehicles):
        limits = vehicle.limits
        if not any(limits):
            continue
        start = None if vehicle.path.closed else vehicle.phase
        place = (id(vehicle.path), start, vehicle.shift, vehicle.offset, vehicle.height)
        key = (
            *place,
            vehicle.profile,
            limits,
            vehicle.at_end,
            vehicle.wheelbase,
            vehicle.track,
        )
        if key in seen:
            continue
        seen.add(key)
        findings += _exceeded(vehicle, drive(fleet, index))
    return findings


def _exceeded(vehicle: Vehicle, run: Drive) -> list[Finding]:
    limits = vehicle.limits
    bend = np.abs(run.curvature)
    slope = np.degrees(np.arctan(np.abs(run.slope)))
    tightest = math.inf if limits.turn_radius is None else 1.0 / limits.turn_radius
    rows: list[tuple[str, Floats, float | None, str]] = [
        (
            "turn_radius",
            bend,
            tightest,
            f"it can't turn tighter than {limits.turn_radius} m, but its radius is {{}} m",
        ),
        (
            "max_slope_deg",
            slope,
            limits.max_slope_deg,
            f"it takes slopes up to {limits.max_slope_deg}°, but has {{}}°",
        ),
        (
            "max_speed",
            np.abs(run.speed),
            limits.max_speed,
            f"it goes up to {limits.max_speed} m/s, but has {{}} m/s",
        ),
        (
            "lateral_acceleration",
            np.abs(run.lateral_acceleration),
            limits.lateral_acceleration,
            f"it takes up to {limits.lateral_acceleration} m/s² sideways, but gets {{}} m/s²",
        ),
    ]
    findings = []
    for name, values, limit, text in rows:
        worst = int(np.argmax(values))
        value = float(values[worst])
        if limit is not None and value > limit * (1.0 + _SLACK):
            x, y = run.position[worst, :2].tolist()
            shown, allowed = (1.0 / value, 1.0 / limit) if name == "turn_radius" else (value, limit)
            message = f"{text.format(_told_apart(shown, allowed))} at x {x:.1f}, y {y:.1f}"
            findings.append(
                Finding(
                    vehicle.name,
                    message,
                    vehicle.locations.get(f"limits.{name}", ""),
                    (x, y),
                )
            )
    return findings


def _told_apart(value: float, limit: float) -> str:
    """The value with four digits, or as many more as it takes to read otherwise than the limit."""
    return next(
        (t for digits in range(4, 17) if float(t := f"{value:.{digits}g}") != limit),
        repr(value),
    )


def check_separation(fleet: Fleet, seconds: float | None = None) -> list[Finding]:
    """Pairs that come nearer than `min_separation` [m] to each other, nearest first; none where the
    fleet has none.

    From fleet time 0 to `seconds`, by default until every vehicle has made its drive once. A pair
    counts from when both have departed: copies that wait at one start are no finding. Each
    vehicle's NEIGHBOURS nearest ones are looked at.
    """
    from scipy.spatial import cKDTree

    min_separation = fleet.min_separation
    if min_separation is None or len(fleet) < 2:
        return []
    if seconds is None:
        seconds = max(vehicle.delay + duration(vehicle) for vehicle in fleet.vehicles)
    delay = np.array([vehicle.delay for vehicle in fleet.vehicles])
    fastest = max(vehicle.profile.cruise for vehicle in fleet.vehicles)
    instants = min(max(math.ceil(seconds * fastest / (0.25 * min_separation)), 1), MAX_INSTANTS) + 1
    times, step = np.linspace(0.0, seconds, instants, retstep=True)
    reach = min_separation + 1.5 * fastest * float(
        step
    )  # what two vehicles can lose until the next sample, or nearly
    nearest: dict[tuple[int, int], tuple[float, float]] = {}
    for t in times.tolist():
        departed = np.flatnonzero(delay <= t)
        if len(departed) < 2:
            continue
        position = fleet.sample_vehicles(departed, np.full(len(departed), t)).position
        k = min(NEIGHBOURS + 1, len(departed))
        distance, other = cKDTree(position).query(position, k=k, distance_upper_bound=reach)
        row, column = np.nonzero(np.isfinite(distance))
        pair = np.sort(np.stack([departed[row], departed[other[row, column]]]), axis=0)
        for i, j, apart in zip(*pair.tolist(), distance[row, column].tolist(), strict=True):
            if i != j and apart < nearest.get((i, j), (math.inf, 0.0))[0]:
                nearest[i, j] = (apart, t)
    found = []
    for (i, j), (_, sampled) in sorted(nearest.items(), key=lambda pair: pair[1])[:MAX_PAIRS]:
        first = float(max(delay[i], delay[j]))
        begin = max(sampled - float(step), first)
        end = min(sampled + float(step), seconds)
        apart, t, (x, y, _) = _closest(fleet, i, j, begin, end)
        if apart < min_separation * (1.0 - _SLACK):
            one = fleet.vehicles[i].name
            other_one = fleet.vehicles[j].name
            text = (
                f"comes within {apart:.3g} m of {other_one!r} after {t:.1f} s at x {x:.1f}, y "
                f"{y:.1f}; "
                f"min_separation is {min_separation:g} m"
            )
            found.append(
                (
                    apart,
                    Finding(one, text, fleet.locations.get("min_separation", ""), (x, y)),
                )
            )
    return [finding for _, finding in sorted(found, key=lambda each: each[0])]


def _closest(
    fleet: Fleet, i: int, j: int, begin: float, end: float
) -> tuple[float, float, list[float]]:
    """Least distance, when, and where the first one is then: the interval is narrowed down three
    times.
    """
    for _ in range(3):
        times = np.linspace(begin, end, 65)
        both = fleet.sample_vehicles(np.repeat([i, j], 65), np.tile(times, 2)).position.reshape(
            2, 65, 3
        )
        apart = np.linalg.norm(both[0] - both[1], axis=-1)
        nearest_sample = int(np.argmin(apart))
        begin = float(times[max(nearest_sample - 1, 0)])
        end = float(times[min(nearest_sample + 1, 64)])
    return (
        float(apart[nearest_sample]),
        float(times[nearest_sample]),
        both[0, nearest_sample].tolist(),
    )


MAX_POINTS = 20_000
"""on one track; its points lie at most half a cell apart where that takes no more"""
TOUCHING = 0.02
"""m: a wheel nearer to the ground than this counts as on it"""
SAMPLES_IN_A_CELL = 10
MAX_WHEEL_SAMPLES = 50_000
"""on one track"""


def check_tracks(fleet: Fleet) -> list[Finding]:
    """Findings of all vehicles, in their order, and then those of `check_limits`. Vehicles that
    stand still are looked at too; without a terrain there are no places off the map.

    Off the map the ground has the altitude of the map's edge, and a z below the ground is raised to
    it: both are safe, and both are seldom what was meant. Copies on one track are looked at once
    and reported once, for the first.
    """
    terrain = fleet.terrain
    if terrain is None:
        return check_limits(fleet)
    half_cell = 0.5 * min(abs(terrain.step_x), abs(terrain.step_y))
    findings = []
    seen = set()
    for index, vehicle in enumerate(fleet.vehicles):
        key = (
            id(vehicle.path),
            vehicle.shift,
            vehicle.offset,
            vehicle.height if vehicle.absolute else None,
        )
        if key in seen:
            continue
        seen.add(key)
        path = vehicle.path
        points = min(max(math.ceil(path.length / half_cell), 16), MAX_POINTS) + 1
        s = np.linspace(0.0, path.length, points)
        position = fleet.points_at(index, s)[:, :2]
        off_map = ~terrain.inside(position[:, 0], position[:, 1])
        share = path.length * float(np.mean(off_map))
        text = f"about {share:.1f} m of its {path.length:.0f} m long track are off the map"
        looked_at = [
            (
                off_map,
                text,
                "the ground there has the altitude of the map's edge",
                "shape",
            )
        ]
        climb = fleet.climb(index, s)
        if vehicle.absolute or climb is not None:
            under = terrain.altitude(position[:, 0], position[:, 1]) - (
                vehicle.height if climb is None else climb
            )
            what = (
                "the altitude of its waypoints"
                if climb is not None
                else f"its altitude of {vehicle.height:g} m"
            )
            text = f"{what} is up to {under.max():.1f} m below the ground"
            asked_by = "altitude" if vehicle.absolute else "shape"
            looked_at.append((under > 0.0, text, "it is raised to the ground there", asked_by))
        for where, text, consequence, asked_by in looked_at:
            if where.any():
                x, y = position[int(np.argmax(where))].tolist()
                whole = f"{text}, first at x {x:.1f}, y {y:.1f}; {consequence}"
                findings.append(
                    Finding(vehicle.name, whole, vehicle.locations.get(asked_by, ""), (x, y))
                )
    return findings + check_limits(fleet)


class WheelGap(NamedTuple):
    """The residual of one vehicle's wheel contact along its track."""

    gap: float
    """m, of the wheel that is farthest above the ground, where that is most"""
    x: float
    """m, there"""
    y: float
    share: float
    """of the track on which a wheel is more than TOUCHING above the ground"""


def wheel_gaps(fleet: Fleet) -> list[WheelGap | None]:
    """Of each vehicle in order; None for those without wheels. Copies on one track share one
    result.

    Places lie a tenth of the terrain's cell apart, or, on longer tracks, MAX_WHEEL_SAMPLES evenly
    all along. Wheels are never below the ground; of four that can't all touch, the two on the lower
    diagonal are off it.
    """
    terrain = fleet.terrain
    made = {}
    found: list[WheelGap | None] = []
    for index, vehicle in enumerate(fleet.vehicles):
        if vehicle.wheelbase is None:
            found.append(None)
            continue
        key = (
            id(vehicle.path),
            vehicle.shift,
            vehicle.offset,
            vehicle.height,
            vehicle.wheelbase,
            vehicle.track,
        )
        if key not in made:
            length = vehicle.path.length
            step = (
                math.inf
                if terrain is None
                else min(abs(terrain.step_x), abs(terrain.step_y)) / SAMPLES_IN_A_CELL
            )
            s = np.linspace(
                0.0,
                length,
                min(max(math.ceil(length / step), 16), MAX_WHEEL_SAMPLES) + 1,
            )
            gap = fleet.max_wheel_gap(index, s)
            worst = int(np.argmax(gap))
            x, y = fleet.points_at(index, s[worst : worst + 1])[0, :2].tolist()
            made[key] = WheelGap(float(gap[worst]), x, y, float(np.mean(gap > TOUCHING)))
        found.append(made[key])
    return found
