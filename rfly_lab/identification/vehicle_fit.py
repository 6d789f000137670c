# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Fit of a vehicle's parameters to a log. The patent's paragraphs [0061] and [0093].

Mass, struts and the rotors' lag come from a vehicle that stands, bounces on its struts and speeds
its rotors up; `excitation` writes a manoeuvre of a minute that excites all of it. The picture shows
identified against given parameters, tyre curves and residuals.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_common.arrays import Floats
from rfly_common.config.marked_yaml import dump_yaml
from rfly_common.config.parameter_files import Change, checked_document, read_parameters
from rfly_common.errors import ConfigError
from rfly_common.physics import GRAVITY
from rfly_lab.identification.flight_fit import fit_flight
from rfly_lab.identification.regression import Estimated, comparable, inside, linear_fit
from rfly_lab.identification.tyre_fit import TyreFit, fit_tyres, tyre_forces, unchecked
from rfly_lab.identification.vehicle_log import LoggedMotion, VehicleLog, motion
from rfly_terrain.plots.relief import picture

STANDING_SPEED = 0.05
"""Speed of wheels and struts below which a vehicle stands, m/s."""
STANDING_RATE = 0.02
"""Rate below which a vehicle stands, rad/s."""
MARGIN = 0.2
"""Time about what does not count that does not count either, s."""


MOVING_SECTIONS = ("mass", "inertia", "tyre", "suspension", "rotors", "air")
"""Sections of vehicle files with the constants of the equations of motion."""

MODEL_ERROR = {
    "τ_m": 0.001,
    "k_f": 0.002,
    "k_r": 0.002,
    "c_b": 0.015,
    "c_r": 0.015,
    "K_x / F_z": 0.01,
    "C_x": 0.005,
    "λ_K": 0.005,
    "σ_κ": 0.06,
    "σ_α": 0.1,
    "I_zz": 0.007,
    "c_H": 0.15,
}
"""Standard deviations, as shares of the value, that more data would not make smaller.

The equations of the fit leave things out: the tyres' stress while the struts bounce, the carcass's
relaxation below SLOWEST, commands between samples, the torque of rotors in oblique flow. The
numbers are what is missing in the scatter of twenty simulated vehicles with hidden parameters;
`python -m benchmarks.identification` looks at others.
"""

BAR_ERROR = 0.005
"""The same for anti-roll bars, as a share of the springs: most vehicles have none, stiffness 0."""


def with_model_error(e: Estimated) -> Estimated:
    """Return an estimate whose standard deviation has the error of the fit's equations as well."""
    share = MODEL_ERROR.get(e.name.split(",")[0], 0.0)
    return e._replace(sigma=float(np.hypot(e.sigma, share * e.value)))


def fit_mass(p: VehicleParameters, m: LoggedMotion) -> Estimated:
    """Return the mass of the vehicle from the wheels' loads while wheels and rotors stand.

    Raises ConfigError without such a time or without loads: then nothing in a log separates mass
    from thrust.
    """
    # wheels, rotors and body at rest
    rates = np.linalg.norm(m.rates, axis=1)
    still = (np.abs(m.strut_rate) < STANDING_SPEED).all(axis=1)
    still &= rates < STANDING_RATE + 3.0 * rates[:50].std()
    still &= (np.abs(m.wheel_speed) < STANDING_SPEED / p.wheel_radius * 10.0).all(axis=1)
    still &= (m.rotor_speed < 0.02 * p.hover_speed).all(axis=1) & np.isfinite(m.load[:, 0])
    if still.sum() < 50:
        raise ConfigError(
            "no wheel_loads of half a second in which it stands, rotors off: mass and thrust "
            "can't be separated without them; weigh the vehicle and give --mass"
        )

    weight = m.load[still].sum(axis=1) / m.up[still, 2] / GRAVITY
    sigma = float(max(weight.std() / np.sqrt(still.sum() / 50.0), 1e-4 * weight.mean()))
    return Estimated("mass, whole", "kg", float(np.median(weight)), sigma, p.mass)


def fit_struts(p: VehicleParameters, m: LoggedMotion) -> list[Estimated]:
    """Return stiffness and damping of the struts while the vehicle bounces on the spot, or [].

    F_s = F₀ + k s + c ṡ ± k_arb (s_left − s_right), Eq. 6.2; the hub's equation gives F_s.
    """
    load = m.load[..., None] * m.up[:, None, :]
    strut_force = (load - p.mass_unsprung * m.hub_force)[..., 2]

    # rows that count
    rolling = np.abs(m.velocity[:, :2]).max(axis=1) > 0.3
    within = (m.strut > 0.9 * p.rebound_stop) & (m.strut < 0.9 * p.bump_stop) & (m.load > 0.0)
    keep = inside(within.all(axis=1) & ~rolling, MARGIN)
    every = max(1, len(m.strut) // keep.size)
    travel = np.ptp(m.strut[::every][: keep.size][keep], axis=0)
    if travel.min(initial=np.inf) < 0.1 * p.bump_stop:
        return []

    # force of a unit of each parameter
    front = np.array((1.0, 1.0, 0.0, 0.0))
    across = m.strut[:, (0, 1, 2, 3)] - m.strut[:, (1, 0, 3, 2)]
    columns = {
        "k_f, front springs": (
            front * m.strut,
            "N/m",
            p.front_spring,
            "suspension.front_stiffness_npm",
        ),
        "k_r, rear springs": (
            (1 - front) * m.strut,
            "N/m",
            p.rear_spring,
            "suspension.rear_stiffness_npm",
        ),
        "front anti-roll": (
            front * across,
            "N/m",
            p.front_anti_roll,
            "suspension.front_anti_roll_npm",
        ),
        "rear anti-roll": (
            (1 - front) * across,
            "N/m",
            p.rear_anti_roll,
            "suspension.rear_anti_roll_npm",
        ),
        "c_b, bump": (
            np.maximum(m.strut_rate, 0.0),
            "N s/m",
            p.bump_damping,
            "suspension.bump_damping_nspm",
        ),
        "c_r, rebound": (
            np.minimum(m.strut_rate, 0.0),
            "N s/m",
            p.rebound_damping,
            "suspension.rebound_damping_nspm",
        ),
    }

    # and of the loads of the springs in front and behind
    ones = np.ones((m.time.size, 1))
    forces = [force for force, *_ in columns.values()] + [ones * front, ones * (1 - front)]
    matrix = np.stack([comparable(force)[keep] for force in forces], axis=-1)
    before = [value for _, _, value, _ in columns.values()]
    given = np.array([*before, p.spring_load[0], p.spring_load[2]])

    # least squares; a bar of stiffness 0 might exist
    bars = np.array([0, 0, p.front_spring, p.rear_spring, 0, 0, 0, 0])
    scale = np.where(given == 0.0, 0.2 * bars, given)
    values, covariance = linear_fit(matrix * scale, comparable(strut_force)[keep], given / scale)
    sigma = np.sqrt(np.diag(covariance)) * scale
    sigma[2:4] = np.hypot(sigma[2:4], BAR_ERROR * values[:2] * scale[:2])
    return [
        Estimated(name, unit, float(values[k] * scale[k]), float(sigma[k]), value, key)
        for k, (name, (_, unit, value, key)) in enumerate(columns.items())
    ]


def fit_rotor_lag(p: VehicleParameters, log: VehicleLog, m: LoggedMotion) -> list[Estimated]:
    """Return the first-order lag between `cmd/rotors` and the rotors' speeds; [] without commands.

    A command holds till the next: over a span of time, the change of the speed is the difference of
    command and speed, integrated, divided by the lag.
    """
    command = log.series.get("cmd/rotors")
    if command is None:
        return []
    span = 5

    # commanded angle
    speeds = np.minimum(command.value, p.max_rotor_speed)
    steps = np.cumsum(speeds[:-1] * np.diff(command.time)[:, None], axis=0)
    begun = np.vstack([np.zeros(p.rotors), steps])
    index = np.clip(np.searchsorted(command.time, m.time, side="right") - 1, 0, None)
    commanded = begun[index] + speeds[index] * (m.time - command.time[index])[:, None]

    # angle turned
    step = m.time[1] - m.time[0]
    bend = step / 12.0 * np.diff(m.rotor_speed_change, axis=0)
    mean = 0.5 * (m.rotor_speed[1:] + m.rotor_speed[:-1]) - bend
    turned = np.vstack([np.zeros(p.rotors), np.cumsum(mean * step, axis=0)])

    # change of speed over spans
    differ = (commanded - turned)[span:] - (commanded - turned)[:-span]
    change = m.rotor_speed[span:] - m.rotor_speed[:-span]
    if change.std() < 0.01 * p.hover_speed:
        return []

    x = differ[::span].ravel()
    y = change[::span].ravel()
    rate = float(x @ y / (x @ x))
    sigma = float(np.std(y - rate * x) / np.sqrt(x @ x))
    return [
        Estimated("τ_m, rotors' lag", "s", 1.0 / rate, sigma / rate**2, p.rotor_lag, "rotors.lag_s")
    ]


@dataclass(frozen=True)
class VehicleFit:
    """Result of a fit to a log, with standard deviations."""

    given: VehicleParameters
    """Parameters known before: geometry, wheels' masses and what is not identified."""
    estimated: tuple[Estimated, ...]
    tyres: TyreFit | None
    motion: LoggedMotion
    notes: tuple[str, ...]
    """Parameters that could not be identified, and why."""

    @property
    def changes(self) -> list[Change]:
        """Changes of the vehicle's file (`VehicleParameters.load`) that the log justifies."""
        better = [e for e in self.estimated if e.key and e.excited]
        return [(tuple(e.key.split(".")), e.value) for e in better]

    @property
    def kept(self) -> list[str]:
        """Keys of the equations of motion that keep their given values, in the file's order."""
        changed = {".".join(map(str, path)) for path, _ in self.changes}
        return [key for key in physical_keys() if key not in changed]


def physical_keys() -> list[str]:
    """Return the keys of the equations of motion of a vehicle on two axles."""
    sections = VehicleParameters.schema()["properties"]
    return [
        f"{section}.{key}"
        for section in MOVING_SECTIONS
        for key in sections[section]["properties"]
        if "middle" not in key
    ]


def fit_vehicle(log: VehicleLog, given: VehicleParameters, mass: float | None = None) -> VehicleFit:
    """Identify mass, thrust and torque constants, inertia, lags, struts and tyres.

    `given`: a vehicle about like it, with its geometry, wheels' masses and inertia. `mass` (kg): of
    the whole vehicle, weighed; None: from the log's wheel loads. Raises ConfigError without either,
    and for a vehicle with a middle axle, as loads alone don't show how much each axle carries.
    """
    if given.middle_axle is not None:
        axle = f"chassis.middle_axle_m is {given.middle_axle} m"
        raise ConfigError(
            f"vehicle {given.name!r}: {axle}, and parameters are found for two axles; "
            "expected a vehicle without it"
        )

    # mass
    notes = list(log.notes)
    if mass is not None:
        mass_estimate = Estimated("mass, whole", "kg", mass, 0.0, given.mass)
    else:
        mass_estimate = fit_mass(given, motion(log, given))
    body = mass_estimate.value - given.mass_rotor_frame - 4.0 * given.mass_unsprung
    if body <= 0.0:
        raise ConfigError(
            f"mass of {mass_estimate.value:.3g} kg: "
            f"no more than the wheels and rotors of {given.name}"
        )
    params = given.replace(mass_body=body)
    logged = motion(log, params)
    estimated = [
        mass_estimate,
        Estimated("of it, body", "kg", body, mass_estimate.sigma, given.mass_body, "mass.body_kg"),
    ]

    # struts and rotors' lag
    struts = [] if np.isnan(logged.load[:, 0]).any() else fit_struts(params, logged)
    estimated += struts
    if not struts:
        notes.append(
            "struts: it does not bounce on them with its wheels at rest, "
            "or there are no wheel_loads"
        )
    lag = fit_rotor_lag(params, log, logged)
    estimated += lag
    if not lag:
        notes.append("rotors' lag: no cmd/rotors with speeds that change")

    # tyres
    tyres = fit_tyres(params, logged)
    if tyres is None:
        notes.append(
            "tyres and I_zz: not enough driving above 3 m/s with wheel_loads; "
            "I_zz, c_M and J_r: only their ratios show"
        )
    else:
        estimated += tyres.estimated
        params = unchecked(params, inertia=tyres.params.inertia)

    # flight
    try:
        estimated += _flight_estimates(params, logged, estimated)
    except ConfigError as error:
        notes.append(f"rotors, I_xx and I_yy: {error}")

    estimated = [with_model_error(e) for e in estimated]
    for name in [e.name for e in estimated if not e.excited and e.key]:
        notes.append(f"{name}: the log says little of it")
    return VehicleFit(given, tuple(estimated), tyres, logged, tuple(notes))


def _flight_estimates(
    params: VehicleParameters, logged: LoggedMotion, estimated: list[Estimated]
) -> list[Estimated]:
    """Return the estimates of a flight, as uncertain as mass and inertia in yaw make it."""
    shares = {
        e.name: e.sigma / abs(e.value) for e in estimated if e.name in ("mass, whole", "I_zz")
    }
    by_mass = shares.get("mass, whole", 0.0)
    by_yaw = shares.get("I_zz", 1.0)
    results = []
    for e in fit_flight(params, logged):
        share = by_yaw if e.name.startswith(("c_M", "J_r", "figure")) else by_mass
        results.append(e._replace(sigma=float(np.hypot(e.sigma, share * e.value))))
    return results


def fitted_document(vehicle: str, fit: VehicleFit, log: str) -> str:
    """Return a vehicle's file (YAML): that of `vehicle` with the changes of the fit."""
    data, file, _ = read_parameters("vehicle parameters", "rfly_amphibious", "vehicles", vehicle)
    changes = [(path, float(f"{value:.6g}")) for path, value in fit.changes]
    document = checked_document(
        data, file, VehicleParameters.schema(), "version, mass, inertia", changes
    )

    # refuses contradictions, with their keys
    VehicleParameters.load(vehicle, changes)
    text = dump_yaml(document.value)
    return f"# As {vehicle}, with what {log} says.\n" + text


SLIPS = np.linspace(-0.35, 0.35, 141)


def draw_fit(fit: VehicleFit, path: Path) -> None:
    """Draw the picture; the ending of `path` is its format. Needs no display."""
    with picture(path, (14.0, 8.5)) as figure:
        panels = figure.subplot_mosaic(
            [["shares", "x", "y"], ["shares", "motion", "motion"]], width_ratios=(1.1, 1, 1)
        )
        figure.suptitle(f"identified parameters, against those of {fit.given.name}")
        _draw_shares(panels["shares"], fit)
        for axis in "xy":
            _draw_tyre(panels[axis], fit.given, fit.tyres, axis)
        _draw_motion(panels["motion"], fit)


def _draw_shares(axes: Any, fit: VehicleFit) -> None:
    shown = [e for e in fit.estimated if e.given > 0.0 and e.excited]
    rows = np.arange(len(shown))[::-1]
    shares = np.array([e.value / e.given for e in shown])
    spreads = np.array([1.96 * e.sigma / e.given for e in shown])
    axes.errorbar(shares, rows, xerr=spreads, fmt="o", markersize=4, capsize=3, color="#2f6db3")
    axes.axvline(1.0, color="0.5", linewidth=1.0)
    axes.set_yticks(rows, [e.name for e in shown], fontsize="small")
    axes.set_xlabel("identified / given, with 95 % intervals")
    axes.grid(alpha=0.3)


def tyre_curve(p: VehicleParameters, axis: str) -> Floats:
    """Return the force of a rear tyre under its nominal load, N, (k,), at SLIPS of one kind."""
    none = np.zeros_like(SLIPS)
    load = np.full_like(SLIPS, p.nominal_load)
    pair = (SLIPS, none) if axis == "x" else (none, SLIPS)
    return tyre_forces(p, load, *pair, np.full_like(SLIPS, p.cornering_factor_rear))[axis == "y"]


def _draw_tyre(axes: Any, given: VehicleParameters, tyres: TyreFit | None, axis: str) -> None:
    axes.plot(
        SLIPS, tyre_curve(given, axis), color="0.6", linestyle="--", linewidth=1.2, label="given"
    )
    if tyres is not None:
        axes.plot(
            SLIPS,
            tyre_curve(tyres.params, axis),
            color="#c8322b",
            linewidth=1.6,
            label="identified",
        )
        slips = tyres.slips[axis == "y"].ravel()
        slips = slips[np.abs(slips) <= SLIPS[-1]]
        floor = axes.get_ylim()[0]
        axes.plot(
            slips,
            np.full_like(slips, floor),
            "|",
            color="#2f6db3",
            markersize=9,
            alpha=0.4,
            label="slips in the log",
        )

    # axes
    axes.set_xlabel("slip κ" if axis == "x" else "slip tan α")
    axes.set_ylabel("F_x (N)" if axis == "x" else "F_y (N)")
    axes.set_title(f"tyre {'along' if axis == 'x' else 'across'}, nominal load", fontsize="medium")
    axes.grid(alpha=0.3)
    axes.legend(fontsize="small")


def _draw_motion(axes: Any, fit: VehicleFit) -> None:
    m = fit.motion
    axes.plot(m.time, m.velocity[:, 0], linewidth=0.9, label="forward speed (m/s)")
    axes.plot(m.time, 10.0 * m.rates[:, 2], linewidth=0.7, label="yaw rate (0.1 rad/s)")
    axes.plot(m.time, m.height, linewidth=1.2, color="black", label="height (m)")
    axes.plot(m.time, 100.0 * m.strut.mean(axis=1), linewidth=0.7, label="mean strut travel (cm)")
    axes.set_xlabel("time (s)")
    axes.set_ylabel("recorded motion, units below")
    axes.grid(alpha=0.3)
    axes.legend(
        fontsize="small", ncols=4, loc="upper center", bbox_to_anchor=(0.5, -0.16), frameon=False
    )


DURATION = 66.0
"""Duration of the manoeuvre, s."""
_SHARES: tuple[tuple[str, float, float, float, float, tuple[float, float]], ...] = (
    # channel, from, to (s), value and amplitude as shares of `_units`, frequency (in stiffness: of
    # its natural one)
    ("lift_n", 4.0, 12.0, 0.22, 0.16, (0.5, 4.0)),
    ("roll_nm", 4.0, 12.0, 0.0, 0.12, (4.0, 0.5)),
    ("pitch_nm", 4.0, 12.0, 0.0, 0.12, (0.5, 2.5)),
    ("drive_nm", 13.0, 15.0, 0.5, 0.0, (0.0, 0.0)),
    ("drive_nm", 15.0, 24.0, 0.2, 0.0, (0.0, 0.0)),
    ("steering_rad", 15.0, 19.5, 0.0, 0.12, (0.5, 0.9)),
    ("steering_rad", 19.5, 24.0, 0.0, 0.35, (0.4, 0.7)),
    ("drive_nm", 24.0, 32.0, 0.03, 0.0, (0.0, 0.0)),
    # bursts, forward and back, so short that it does not turn round while its wheels slide
    *(
        (
            "drive_nm",
            24.0 + 0.8 * k,
            24.6 + 0.8 * k,
            0.0,
            (0.8 + 0.15 * (k // 2)) * (-1) ** k,
            (1 / 1.2, 1 / 1.2),
        )
        for k in range(10)
    ),
    ("steering_rad", 24.0, 32.0, 0.0, 0.0, (0.0, 0.0)),
    ("height_m", 34.0, 60.0, 1.0, 0.0, (0.0, 0.0)),
    ("roll_nm", 42.0, 46.0, 0.0, 1.0, (0.6, 2.5)),
    ("pitch_nm", 46.5, 50.5, 0.0, 1.0, (0.6, 2.5)),
    ("yaw_nm", 51.0, 57.0, 0.0, 1.0, (0.4, 2.0)),
)


def excitation(params: VehicleParameters, vehicle: str) -> str:
    """Return a scenario (YAML) that excites all parameters of a vehicle about like `params`.

    The vehicle stands, bounces on its struts under its rotors, drives in ever narrower bends,
    accelerates and brakes until the tyres slide, flies, tilts and turns. `vehicle`: the scenario's,
    a shipped set or a file.
    """
    signals: list[dict[str, Any]] = []
    for channel, begin, end, value, amplitude, frequency in _SHARES:
        unit = _units(params, flying=begin > 33.0)[channel]
        signal: dict[str, Any] = {
            "signal": channel,
            "from_s": _rounded(begin),
            "to_s": _rounded(end),
            "value": _rounded(value * unit),
        }
        if amplitude:
            signal |= {
                "amplitude": _rounded(amplitude * unit),
                "frequency_hz": [_rounded(end) for end in frequency],
            }
        signals.append(signal)

    modes = [{"mode": "takeoff", "from_s": 35.5}, {"mode": "land", "from_s": 58.0}]
    document = {
        "version": 1,
        "vehicle": vehicle,
        "mission": {"manoeuvre": signals + modes},
        "end": {"when": "time", "time_s": DURATION},
    }
    return (
        "# Excites what rfly sim fit looks for; "
        "needs some 300 m of level ground, and slides on it.\n"
        + dump_yaml(document, default_flow_style=None, width=120)
    )


def _units(p: VehicleParameters, flying: bool) -> dict[str, float]:
    """Return the unit of each channel.

    These are the weight, moments that lift the wheels of a side or turn the vehicle at some rad/s²,
    and the torque at which tyres slide.
    """
    weight = p.mass * GRAVITY
    inertia = p.total_inertia
    slides = p.friction_x * p.static_load.mean() * p.rolling_radius.mean()
    drive = float(min(slides, p.max_drive_torque))

    # moments
    roll = weight * p.track / 2.0
    pitch = weight * p.wheelbase / 2.0
    yaw = 0.0
    if flying:
        brisk = (p.attitude_frequency / 7.0) ** 2
        roll = 6.0 * brisk * inertia[0, 0]
        pitch = 6.0 * brisk * inertia[1, 1]
        yaw = 0.35 * p.torque_coefficient / p.thrust_coefficient * weight
    return {
        "lift_n": weight,
        "roll_nm": float(roll),
        "pitch_nm": float(pitch),
        "yaw_nm": float(yaw),
        "steering_rad": p.max_steering if p.steered != "none" else 0.0,
        "drive_nm": drive,
        "height_m": max(3.0, 5.0 * p.rotor_radius),
    }


def _rounded(value: float) -> float:
    return float(f"{value:.3g}") if math.isfinite(value) else value
