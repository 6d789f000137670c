# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Parameters of the state estimator, each declared once, and the YAML files that hold them."""

from __future__ import annotations

import dataclasses
import math
import os
from typing import Any

import numpy as np

from rfly_amphibious.sensors.noise import FOREVER, NoiseModel
from rfly_amphibious.sensors.sensor_parameters import NoisySensor, SensorParameters
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_autonomy.estimation.error_state import (
    AHRS_DRIFT,
    BARO_BIAS,
    ERRORS,
    FORCE_BIAS,
    GPS_DRIFT,
    GROUND_ERROR,
    GYRO_BIAS,
    SLIP,
)
from rfly_autonomy.estimation.filter_records import LONGEST_GAP, Constants
from rfly_common.arrays import Floats
from rfly_common.config.declared import file_schema, number, values_of
from rfly_common.config.documents import shipped_names
from rfly_common.config.parameter_files import checked_document, read_parameters
from rfly_common.physics import GRAVITY

SCRUBBING = 0.1
"""Standard deviation of the speed of wheels that scrub, m/s: where motors steer, they slide aside
in turns, stick and slide again."""
LONGEST_PERIODS = 1.5
"""Time between two readings of a GPS above which the later begins anew, in its periods."""

RETURN_PROBABILITY = 0.95
"""Probability that a good fix passes the gate for the return of a refused GPS."""
NOISES = (
    "white_density",
    "white_sigma",
    "walk_density",
    "walk_time",
    "markov_sigma",
    "markov_time",
    "turn_on_bias",
)
"""Fields of a `NoiseModel` that the estimator uses."""
SECTIONS = {
    "alignment": "standing, at the beginning",
    "process": "in addition to the IMU's own noise",
    "coasting": "while the IMU is silent",
    "gate": "which readings are accepted",
    "gps": "of the receiver",
    "orientation": "of the IMU's own filter",
    "wheels": "that roll on the ground",
    "standstill": "what counts as standing",
    "ground": "below the vehicle",
}
"""Sections of the files, with their descriptions."""


@dataclasses.dataclass(frozen=True)
class EstimatorParameters:
    """Parameters of the state estimator, SI units.

    Each field declares its key in the file, its meaning and its range.
    """

    history: float = number("history_s", "longest delay of a reading", above=0.0, at_most=10.0)
    align_time: float = number("alignment.time_s", "s that are averaged", above=0.0, at_most=60.0)
    align_rate: float = number(
        "alignment.still_radps",
        "largest mean rate of a vehicle that stands",
        above=0.0,
        at_most=10.0,
    )
    align_force: float = number(
        "alignment.still_mps2",
        "largest difference of the mean specific force from gravity",
        above=0.0,
        at_most=10.0,
    )
    gyro_bias: float = number(
        "alignment.gyroscope_bias_radps",
        "standard deviation in addition to the sensor's own",
        at_least=0.0,
        at_most=10.0,
    )
    force_bias: float = number(
        "alignment.accelerometer_bias_mps2",
        "standard deviation in addition to the sensor's own",
        at_least=0.0,
        at_most=10.0,
    )
    process_force: float = number(
        "process.acceleration_mps2_per_sqrthz", "density", at_least=0.0, at_most=1000.0
    )
    process_gyro: float = number(
        "process.rates_radps_per_sqrthz", "density", at_least=0.0, at_most=1000.0
    )
    silence: float = number(
        "coasting.silence_s",
        "s without a sample after which the estimator goes on without the IMU",
        above=0.0,
        at_most=10.0,
    )
    coast_force: float = number(
        "coasting.acceleration_mps2_per_sqrthz", "density", at_least=0.0, at_most=1000.0
    )
    coast_gyro: float = number(
        "coasting.rates_radps_per_sqrthz", "density", at_least=0.0, at_most=1000.0
    )
    gate_probability: float = number(
        "gate.probability",
        "probability that a good reading is within",
        at_least=0.5,
        at_most=0.999999999,
    )
    reacquire: float = number(
        "gate.reacquire_s",
        "s over which readings that do not fit are averaged: most of them overrule the prediction",
        above=0.0,
        at_most=3600.0,
    )
    orientation_rate: float = number(
        "orientation.rate_hz",
        "readings a second that are used; 0: none",
        at_least=0.0,
        at_most=1000.0,
    )
    wheel_load_share: float = number(
        "wheels.load_share",
        "share of a wheel's static load from which it rolls",
        above=0.0,
        at_most=10.0,
    )
    wheel_speed: float = number(
        "wheels.speed_mps",
        "standard deviation of the speed, in addition to the encoders' counts",
        at_least=0.0,
        at_most=100.0,
    )
    slip: float = number(
        "wheels.slip", "standard deviation of the share of slip", at_least=0.0, at_most=1.0
    )
    slip_time: float = number(
        "wheels.slip_time_s", "correlation time of slip", above=0.0, at_most=3600.0
    )
    side_rate: float = number(
        "wheels.side_rate_hz",
        "times a second that no side slip is assumed",
        above=0.0,
        at_most=1000.0,
    )
    side_speed: float = number(
        "wheels.side_mps", "standard deviation of the speed across", above=0.0, at_most=100.0
    )
    side_slip: float = number(
        "wheels.side_slip_rad", "standard deviation of the slip angle", at_least=0.0, at_most=1.0
    )
    side_slip_rate: float = number(
        "wheels.side_slip_rad_per_mps2",
        "its increase for each m/s² of side force",
        at_least=0.0,
        at_most=1.0,
    )
    still_time: float = number(
        "standstill.time_s", "s during which nothing turns", above=0.0, at_most=60.0
    )
    still_way: float = number(
        "standstill.way_m", "largest way of a wheel's rim in this time", above=0.0, at_most=1.0
    )
    still_rate: float = number(
        "standstill.rates_radps", "largest rate of turn", above=0.0, at_most=10.0
    )
    still_load_share: float = number(
        "standstill.load_share", "share of the weight on the wheels", above=0.0, at_most=1.0
    )
    still_repeat_rate: float = number(
        "standstill.rate_hz", "times a second that it is used", above=0.0, at_most=1000.0
    )
    still_speed: float = number(
        "standstill.speed_mps", "standard deviation", above=0.0, at_most=10.0
    )
    still_gyro: float = number(
        "standstill.rates_noise_radps", "standard deviation", above=0.0, at_most=10.0
    )
    map_error: float = number(
        "ground.map_error_m",
        "standard deviation of the map's heights",
        at_least=0.0,
        at_most=1000.0,
    )
    map_error_time: float = number(
        "ground.map_error_time_s", "correlation time of the map's error", above=0.0, at_most=3600.0
    )
    ground_slope: float = number(
        "ground.slope", "slope of unknown ground, m a metre", at_least=0.0, at_most=10.0
    )
    gps_reset: float = number(
        "gps.reset_s",
        "s for which a position that does not fit is refused before it is taken over",
        above=0.0,
        at_most=1e9,
        default=30.0,
        optional=True,
    )
    gps_drift: float = number(
        "gps.drift_share",
        "share of the drift in the sensor's set; above 1 a margin",
        above=0.0,
        at_most=10.0,
        default=1.2,
        optional=True,
    )
    contact_time: float = number(
        "wheels.contact_s",
        "s on the ground after which a wheel that touched down rolls",
        at_least=0.0,
        at_most=10.0,
        default=0.2,
        optional=True,
    )
    grip: float = number(
        "wheels.grip_share",
        "share of the tyres' friction up to which they roll rather than slide",
        above=0.0,
        at_most=1.0,
        default=0.7,
        optional=True,
    )
    align_without_gps: float = number(
        "alignment.without_gps_s",
        "s without a GPS fix after which a vehicle that stands begins at the world's origin; "
        "0: it waits",
        at_least=0.0,
        at_most=3600.0,
        default=0.0,
        optional=True,
    )
    name: str = ""

    @classmethod
    def schema(cls) -> dict[str, Any]:
        """Return the JSON schema of the files."""
        return file_schema("State estimator of a land-air vehicle", cls, SECTIONS)

    @classmethod
    def load(cls, name_or_path: str | os.PathLike[str]) -> EstimatorParameters:
        """Load a shipped set (`shipped_estimator_sets()`, named after the vehicles) or a YAML file.

        Raises a ConfigError with file, line, key and the allowed values.
        """
        return cls.parse(*read_parameters("estimator", "rfly_autonomy", "estimators", name_or_path))

    @classmethod
    def for_vehicle(cls, vehicle: str, name_or_path: str = "") -> EstimatorParameters:
        """Load a set; without a name that of the vehicle's name, or `scale` if there is none."""
        own = vehicle if vehicle in shipped_estimator_sets() else "scale"
        return cls.load(name_or_path or own)

    @classmethod
    def parse(cls, data: bytes, file: str, name: str = "") -> EstimatorParameters:
        """Return the parameters of a file's content; errors call it `file`."""
        document = checked_document(data, file, cls.schema(), "version, history_s, alignment")
        return cls(**values_of(cls, document.value), name=name or file)

    def replace(self, **changes: Any) -> EstimatorParameters:
        """Return a copy with other values."""
        return dataclasses.replace(self, **changes)


def shipped_estimator_sets() -> list[str]:
    """Return the names of the sets that come with the package."""
    return shipped_names("rfly_autonomy", "estimators")


def constants_of(
    p: EstimatorParameters,
    sensors: SensorParameters,
    vehicle: VehicleParameters,
    altitude: float,
    ground_known: bool,
) -> Constants:
    """Return the constants of the kernels. A missing sensor gets arbitrary numbers.

    `altitude`: of the world's origin, m.
    """
    imu = sensors.imu
    gps = sensors.gps
    field = sensors.magnetometer
    place = np.array(imu.position if imu is not None else (0.0, 0.0, 0.0))
    force, rates, ahrs = (_noise(imu, slice(k, k + 3), 9) for k in (0, 3, 6))
    fix = _noise(gps, slice(0, 3), 6)
    speed = _noise(gps, slice(3, 6), 6)

    # the difference of two counts, each cut off at a whole number, scatters by √2/√12 of a count
    encoders = sensors.encoders
    wheel_noise = 0.0
    wheel_delay = 0.0
    if encoders is not None and encoders.wheel_counts > 0:
        wheel_noise = math.tau / encoders.wheel_counts * encoders.rate / math.sqrt(6.0)
        wheel_delay = 0.5 / encoders.rate

    scrubbing = SCRUBBING if vehicle.steered == "none" else 0.0
    hubs = vehicle.hub_position
    sigma, fading = _fading(p, sensors, ground_known)
    baro = _noise(sensors.barometer, slice(0, 1), 1)
    return Constants(
        force_noise=math.hypot(float(force["white_density"][0]), p.process_force),
        gyro_noise=math.hypot(float(rates["white_density"][0]), p.process_gyro),
        coast_force=p.coast_force,
        coast_gyro=p.coast_gyro,
        markov_sigma=sigma,
        markov_time=fading,
        ground_known=ground_known,
        ground_slope=p.ground_slope,
        gps_white=np.maximum(fix["white_sigma"], 1e-3),
        gps_velocity=max(float(speed["white_sigma"][0]), 1e-3),
        field=np.array((field and field.earth_field) or (0.0, 0.0, 0.0)),
        field_white=max(float(_noise(field, slice(0, 1), 3)["white_sigma"][0]), 1e-8),
        pressure_white=max(float(baro["white_sigma"][0]), 0.1),
        altitude=altitude,
        ahrs_white=max(float(ahrs["white_sigma"][0]), 1e-4),
        height_white=max(float(_noise(sensors.height, slice(0, 1), 1)["white_sigma"][0]), 1e-3),
        wheel_noise=wheel_noise,
        wheel_floor=max(math.hypot(p.wheel_speed, scrubbing), 1e-3),
        wheel_delay=wheel_delay,
        slip_gain=1.0 / (vehicle.slip_stiffness * GRAVITY),
        drag=vehicle.rolling_resistance * GRAVITY,
        side_gain=_side_gain(vehicle),
        side_noise=p.side_speed,
        side_slip=p.side_slip,
        side_slip_rate=p.side_slip_rate,
        side_period=1.0 / p.side_rate,
        still_time=p.still_time,
        still_rate=p.still_rate,
        still_way=p.still_way,
        still_speed=p.still_speed,
        still_gyro=p.still_gyro,
        still_period=1.0 / p.still_repeat_rate,
        wheel_load=p.wheel_load_share * float(vehicle.static_load.min()),
        still_load=p.still_load_share * vehicle.mass * GRAVITY,
        load_age=0.1 if sensors.wheel_loads is None else 0.05 + 1.5 / sensors.wheel_loads.rate,
        radius=vehicle.rolling_radius.copy(),
        hub_x=hubs[:, 0] - place[0],
        hub_y=hubs[:, 1] - place[1],
        hub_z=float(hubs[:, 2].mean()) - place[2],
        tread_z=float((hubs[:, 2] - vehicle.rolling_radius).mean()) - place[2],
        lever_gps=_lever(gps, place),
        lever_baro=_lever(sensors.barometer, place),
        lever_height=_lever(sensors.height, place),
        contact_time=p.contact_time,
        grip=p.grip * GRAVITY * min(vehicle.friction_x, vehicle.friction_y),
        weight=vehicle.mass * GRAVITY,
        gates=np.array([0.0, *(chi_square(k, p.gate_probability) for k in range(1, 7))]),
        return_gate=chi_square(3, RETURN_PROBABILITY),
        reacquire=p.reacquire,
        gyro_usual=np.hypot(sigma[GYRO_BIAS : GYRO_BIAS + 3], p.gyro_bias),
        force_usual=np.hypot(sigma[FORCE_BIAS : FORCE_BIAS + 3], p.force_bias),
        gps_reset=p.gps_reset,
        gps_gap=LONGEST_GAP if gps is None else max(LONGEST_GAP, LONGEST_PERIODS / gps.rate),
    )


def _fading(
    p: EstimatorParameters, sensors: SensorParameters, ground_known: bool
) -> tuple[Floats, Floats]:
    """Return stationary standard deviations and correlation times of the errors, both (27,).

    They are 0 and inf for errors that are no Gauss-Markov process. A turn-on bias is taken for a
    part of the bias's walk, so that it fades and comes back likewise.
    """
    sigma = np.zeros(ERRORS)
    time = np.full(ERRORS, math.inf)

    # biases
    for first, sensor, channel, count, channels in (
        (FORCE_BIAS, sensors.imu, 0, 3, 9),
        (GYRO_BIAS, sensors.imu, 3, 3, 9),
        (BARO_BIAS, sensors.barometer, 0, 1, 1),
    ):
        noise = _noise(sensor, slice(channel, channel + count), channels)
        walked = np.minimum(noise["walk_time"], FOREVER)
        time[first : first + count] = walked
        sigma[first : first + count] = np.sqrt(0.5 * walked) * noise["walk_density"]
        sigma[first : first + count] = np.hypot(sigma[first : first + count], noise["turn_on_bias"])

    drifts = ((GPS_DRIFT, sensors.gps, 0, 6, p.gps_drift), (AHRS_DRIFT, sensors.imu, 6, 9, 1.0))
    for first, sensor, channel, channels, share in drifts:
        noise = _noise(sensor, slice(channel, channel + 3), channels)
        sigma[first : first + 3] = share * noise["markov_sigma"]
        time[first : first + 3] = noise["markov_time"]

    sigma[SLIP] = p.slip
    time[SLIP] = p.slip_time
    if ground_known:
        sigma[GROUND_ERROR] = p.map_error
        time[GROUND_ERROR] = p.map_error_time
    return sigma, time


def chi_square(degrees: int, probability: float) -> float:
    """Return the bound below which a sum of squares stays with a probability.

    `degrees`: how many squares of unit normal numbers, 1 to 6. Found by halving: scipy.special
    would take a node 25 MB. NIST Digital Library of Mathematical Functions, 8.4.6, 8.8.2.
    """

    def exceeds(degrees: int, x: float) -> float:
        if degrees <= 2:
            return math.erfc(math.sqrt(0.5 * x)) if degrees == 1 else math.exp(-0.5 * x)
        more = (0.5 * x) ** (0.5 * degrees - 1.0) * math.exp(-0.5 * x) / math.gamma(0.5 * degrees)
        return exceeds(degrees - 2, x) + more

    low = 0.0
    high = 100.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        if exceeds(degrees, middle) > 1.0 - probability:
            low = middle
        else:
            high = middle
    return high


def turn_on_bias(sensor: NoisySensor | None, channels: int) -> Floats:
    """Return the standard deviations (channels,) of a sensor's biases when it is turned on."""
    return _noise(sensor, slice(None), channels)["turn_on_bias"]


def _side_gain(vehicle: VehicleParameters) -> float:
    """Return the slip angle for each m/s² across, rad, as the mean of the axles. Eq. 5.9.

    It is an axle's load over its cornering stiffness.
    """
    v = vehicle
    load = v.static_load[::2]
    held = v.cornering_stiffness_per_rad * v.nominal_load * v.cornering_factor[::2]
    held = held * np.sin(2.0 * np.arctan(load / (v.cornering_load_ratio * v.nominal_load)))
    return float((load / GRAVITY / held).mean())


def _lever(sensor: NoisySensor | None, place: Any) -> Any:
    return np.array(sensor.position) - place if sensor is not None else np.zeros(3)


def _noise(sensor: NoisySensor | None, channels: slice, count: int) -> dict[str, Any]:
    """Return the noise of some channels, which is 0 without a sensor."""
    noise = sensor.noise if sensor is not None else NoiseModel(count)
    return {name: np.asarray(getattr(noise, name))[channels].copy() for name in NOISES}
