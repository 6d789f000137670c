"""Mass, struts and the rotors' lag: of a vehicle that stands, bounces on its struts and speeds its rotors up."""

from __future__ import annotations

import numpy as np

from rfly_amphibious.identification.regression import Estimated, comparable, inside, linear_fit
from rfly_amphibious.identification.vehicle_log import Motion, VehicleLog
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_common.errors import ConfigError
from rfly_common.physics import GRAVITY

STANDING_SPEED, STANDING_RATE = 0.05, 0.02
"""m/s of wheels and struts, rad/s: slower than this it stands"""
MARGIN = 0.2


def fit_mass(p: VehicleParameters, m: Motion) -> Estimated:
    """Of the whole vehicle, by the loads of the wheels while it stands and its rotors do.

    Raises ConfigError where there is no such time or no load: then nothing in a log tells mass from thrust.
    """
    rates = np.linalg.norm(m.rates, axis=1)
    still = (np.abs(m.strut_rate) < STANDING_SPEED).all(axis=1) & (rates < STANDING_RATE + 3.0 * rates[:50].std())
    still &= (np.abs(m.wheel_speed) < STANDING_SPEED / p.wheel_radius * 10.0).all(axis=1)
    still &= (m.rotor_speed < 0.02 * p.hover_speed).all(axis=1) & np.isfinite(m.load[:, 0])
    if still.sum() < 50:
        raise ConfigError(
            "no wheel_loads of half a second in which it stands, rotors off: mass and thrust can't be told apart "
            "without them; weigh the vehicle and say --mass"
        )
    weight = m.load[still].sum(axis=1) / m.up[still, 2] / GRAVITY
    sigma = float(max(weight.std() / np.sqrt(still.sum() / 50.0), 1e-4 * weight.mean()))
    return Estimated("mass, whole", "kg", float(np.median(weight)), sigma, p.mass)


def fit_struts(p: VehicleParameters, m: Motion) -> list[Estimated]:
    """Stiffness and damping, of the loads and the motion while the vehicle bounces on the spot. [] without that.

    F_s = F₀ + k s + c ṡ ± k_arb (s_left − s_right), Eq. 6.2; the hub's equation gives F_s.
    """
    load = m.load[..., None] * m.up[:, None, :]
    strut_force = (load - p.mass_unsprung * m.hub_force)[..., 2]
    rolling = np.abs(m.velocity[:, :2]).max(axis=1) > 0.3
    within = (m.strut > 0.9 * p.rebound_stop) & (m.strut < 0.9 * p.bump_stop) & (m.load > 0.0)
    keep = inside(within.all(axis=1) & ~rolling, MARGIN)
    if (
        np.ptp(m.strut[:: max(1, len(m.strut) // keep.size)][: keep.size][keep], axis=0).min(initial=np.inf)
        < 0.1 * p.bump_stop
    ):
        return []
    front = np.array((1.0, 1.0, 0.0, 0.0))
    across = m.strut[:, (0, 1, 2, 3)] - m.strut[:, (1, 0, 3, 2)]
    columns = {
        "k_f, front springs": (front * m.strut, "N/m", p.front_spring, "suspension.front_stiffness_npm"),
        "k_r, rear springs": ((1 - front) * m.strut, "N/m", p.rear_spring, "suspension.rear_stiffness_npm"),
        "front anti-roll": (front * across, "N/m", p.front_anti_roll, "suspension.front_anti_roll_npm"),
        "rear anti-roll": ((1 - front) * across, "N/m", p.rear_anti_roll, "suspension.rear_anti_roll_npm"),
        "c_b, bump": (np.maximum(m.strut_rate, 0.0), "N s/m", p.bump_damping, "suspension.bump_damping_nspm"),
        "c_r, rebound": (np.minimum(m.strut_rate, 0.0), "N s/m", p.rebound_damping, "suspension.rebound_damping_nspm"),
    }
    ones = np.ones((m.time.size, 1))
    static = [ones * front, ones * (1 - front)]
    kept = np.stack([comparable(c)[keep] for c in [*(column[0] for column in columns.values()), *static]], axis=-1)
    given = [column[2] for column in columns.values()] + [p.spring_load[0], p.spring_load[2]]
    bars = np.array([0, 0, p.front_spring, p.rear_spring, 0, 0, 0, 0])
    scale = np.where(np.array(given) == 0.0, 0.2 * bars, given)  # a bar that is not there might be
    values, covariance = linear_fit(kept * scale, comparable(strut_force)[keep], np.array(given) / scale)
    sigma = np.sqrt(np.diag(covariance)) * scale
    return [
        Estimated(name, unit, float(values[k] * scale[k]), float(sigma[k]), before, key)
        for k, (name, (_, unit, before, key)) in enumerate(columns.items())
    ]


def fit_rotor_lag(p: VehicleParameters, log: VehicleLog, m: Motion) -> list[Estimated]:
    """The first-order lag between `cmd/rotors` and the rotors' speeds. [] where no speeds were commanded.

    A command holds till the next: over a span of time, the change of the speed is what command and speed differ,
    integrated, divided by the lag.
    """
    command = log.series.get("cmd/rotors")
    if command is None:
        return []
    span = 5
    asked = np.minimum(command.value, p.max_rotor_speed)
    so_far = np.vstack([np.zeros(p.rotors), np.cumsum(asked[:-1] * np.diff(command.time)[:, None], axis=0)])
    index = np.clip(np.searchsorted(command.time, m.time, side="right") - 1, 0, None)
    commanded = so_far[index] + asked[index] * (m.time - command.time[index])[:, None]
    step = m.time[1] - m.time[0]
    mean = 0.5 * (m.rotor_speed[1:] + m.rotor_speed[:-1]) - step / 12.0 * np.diff(m.rotor_speed_change, axis=0)
    turned = np.vstack([np.zeros(p.rotors), np.cumsum(mean * step, axis=0)])
    differ = (commanded - turned)[span:] - (commanded - turned)[:-span]
    change = m.rotor_speed[span:] - m.rotor_speed[:-span]
    if change.std() < 0.01 * p.hover_speed:
        return []
    x, y = differ[::span].ravel(), change[::span].ravel()
    rate = float(x @ y / (x @ x))
    sigma = float(np.std(y - rate * x) / np.sqrt(x @ x))
    return [Estimated("τ_m, rotors' lag", "s", 1.0 / rate, sigma / rate**2, p.rotor_lag, "rotors.lag_s")]
