"""Parameters of the state estimator: YAML files checked against `data/schemas/estimator.schema.json`."""

from __future__ import annotations

import dataclasses
import math
import os
from typing import Any

import numpy as np
from scipy.special import chdtri

from rfly_amphibious.estimation.kernels import Constants
from rfly_amphibious.sensors.noise import NoiseModel
from rfly_amphibious.sensors.sensor_parameters import NoisySensor, SensorParameters
from rfly_amphibious.vehicle.parameter_files import checked_document, read_parameters, shipped_sets
from rfly_amphibious.vehicle.parameters import GRAVITY, VehicleParameters


@dataclasses.dataclass(frozen=True)
class EstimatorParameters:
    """SI units; what each means is in the schema, whose keys these are. `replace(history=1.0)` gives a changed copy."""

    history: float
    align_time: float
    align_rate: float
    align_force: float
    gyro_bias: float
    force_bias: float
    process_force: float
    process_gyro: float
    silence: float
    coast_force: float
    coast_gyro: float
    gate_probability: float
    reacquire: float
    orientation_rate: float
    wheel_load_share: float
    wheel_speed: float
    slip: float
    slip_time: float
    side_rate: float
    side_speed: float
    side_slip: float
    side_slip_rate: float
    still_time: float
    still_way: float
    still_rate: float
    still_load_share: float
    still_repeat_rate: float
    still_speed: float
    still_gyro: float
    map_error: float
    map_error_time: float
    ground_slope: float
    name: str = ""

    @classmethod
    def load(cls, name_or_path: str | os.PathLike[str]) -> EstimatorParameters:
        """A shipped set (`shipped_estimator_sets()`: they bear the names of the vehicles) or a YAML file.

        Raises ConfigError that names file, line, key and what is allowed.
        """
        return cls.parse(*read_parameters("estimator", "estimators", name_or_path))

    @classmethod
    def parse(cls, data: bytes, file: str, name: str = "") -> EstimatorParameters:
        """The parameters of a file's content; `file` is what errors call it."""
        value = checked_document(data, file, "estimator", "version, history_s, alignment").value
        found = {field: float(value[section][key]) for field, (section, key) in _KEYS.items()}
        return cls(history=float(value["history_s"]), **found, name=name or file)

    def replace(self, **changes: Any) -> EstimatorParameters:
        """A copy with other values."""
        return dataclasses.replace(self, **changes)


def shipped_estimator_sets() -> list[str]:
    """Names of the sets that come with the package."""
    return shipped_sets("estimators")


def constants_of(
    p: EstimatorParameters,
    sensors: SensorParameters,
    vehicle: VehicleParameters,
    altitude: float,
    ground_known: bool,
) -> Constants:
    """What the kernels need; `altitude`: of the world's origin, m. A sensor that is not there gets any numbers."""
    imu, gps, field = sensors.imu, sensors.gps, sensors.magnetometer
    place = np.array(imu.position if imu is not None else (0.0, 0.0, 0.0))
    force, rates, ahrs = (_noise(imu, slice(k, k + 3), 9) for k in (0, 3, 6))
    fix, speed = _noise(gps, slice(0, 3), 6), _noise(gps, slice(3, 6), 6)
    encoders = sensors.encoders
    counted = encoders is not None and encoders.wheel_counts > 0
    # the difference of two counts, each of which is cut off at a whole number: √2/√12 of a count
    count = (
        0.0 if encoders is None or not counted else math.tau / encoders.wheel_counts * encoders.rate / math.sqrt(6.0)
    )
    hubs = vehicle.hub_position
    baro = _noise(sensors.barometer, slice(0, 1), 1)
    return Constants(
        force_noise=math.hypot(float(force["white_density"][0]), p.process_force),
        gyro_noise=math.hypot(float(rates["white_density"][0]), p.process_gyro),
        force_walk=float(force["walk_density"][0]),
        gyro_walk=float(rates["walk_density"][0]),
        coast_force=p.coast_force,
        coast_gyro=p.coast_gyro,
        gps_sigma=fix["markov_sigma"],
        gps_time=float(fix["markov_time"][0]),
        baro_walk=float(baro["walk_density"][0]),
        ahrs_sigma=ahrs["markov_sigma"],
        ahrs_time=float(ahrs["markov_time"][0]),
        ground_known=ground_known,
        ground_sigma=p.map_error,
        ground_time=p.map_error_time,
        ground_slope=p.ground_slope,
        slip_sigma=p.slip,
        slip_time=p.slip_time,
        gps_white=np.maximum(fix["white_sigma"], 1e-3),
        gps_velocity=max(float(speed["white_sigma"][0]), 1e-3),
        field=np.array(field.earth_field if field is not None else (0.0, 0.0, 0.0)),
        field_white=max(float(_noise(field, slice(0, 1), 3)["white_sigma"][0]), 1e-8),
        pressure_white=max(float(baro["white_sigma"][0]), 0.1),
        altitude=altitude,
        ahrs_white=max(float(ahrs["white_sigma"][0]), 1e-4),
        height_white=max(float(_noise(sensors.height, slice(0, 1), 1)["white_sigma"][0]), 1e-3),
        wheel_noise=count,
        wheel_floor=max(p.wheel_speed, 1e-3),
        wheel_delay=0.0 if encoders is None or not counted else 0.5 / encoders.rate,
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
        lever_gps=_lever(gps, place),
        lever_baro=_lever(sensors.barometer, place),
        lever_height=_lever(sensors.height, place),
        gates=np.array([0.0, *(chdtri(k, 1.0 - p.gate_probability) for k in range(1, 7))]),
        reacquire=p.reacquire,
    )


def _side_gain(vehicle: VehicleParameters) -> float:
    """rad of slip angle for each m/s² across, mean of both axles: their loads over what they hold. Eq. 5.9."""
    v = vehicle
    load = v.static_load[[0, 2]]
    factors = np.array((v.cornering_factor_front, v.cornering_factor_rear))
    held = v.cornering_stiffness_per_rad * v.nominal_load * factors
    held = held * np.sin(2.0 * np.arctan(load / (v.cornering_load_ratio * v.nominal_load)))
    return float((load / GRAVITY / held).mean())


def _lever(sensor: NoisySensor | None, place: Any) -> Any:
    return np.array(sensor.position) - place if sensor is not None else np.zeros(3)


def _noise(sensor: NoisySensor | None, channels: slice, count: int) -> dict[str, Any]:
    """The noise of some channels; none where there is no sensor."""
    noise = sensor.noise if sensor is not None else NoiseModel(count)
    return {
        name: np.asarray(getattr(noise, name))[channels].copy()
        for name in ("white_density", "white_sigma", "walk_density", "markov_sigma", "markov_time", "turn_on_bias")
    }


_KEYS = {
    "align_time": ("alignment", "time_s"),
    "align_rate": ("alignment", "still_radps"),
    "align_force": ("alignment", "still_mps2"),
    "gyro_bias": ("alignment", "gyroscope_bias_radps"),
    "force_bias": ("alignment", "accelerometer_bias_mps2"),
    "process_force": ("process", "acceleration_mps2_per_sqrthz"),
    "process_gyro": ("process", "rates_radps_per_sqrthz"),
    "silence": ("coasting", "silence_s"),
    "coast_force": ("coasting", "acceleration_mps2_per_sqrthz"),
    "coast_gyro": ("coasting", "rates_radps_per_sqrthz"),
    "gate_probability": ("gate", "probability"),
    "reacquire": ("gate", "reacquire_s"),
    "orientation_rate": ("orientation", "rate_hz"),
    "wheel_load_share": ("wheels", "load_share"),
    "wheel_speed": ("wheels", "speed_mps"),
    "slip": ("wheels", "slip"),
    "slip_time": ("wheels", "slip_time_s"),
    "side_rate": ("wheels", "side_rate_hz"),
    "side_speed": ("wheels", "side_mps"),
    "side_slip": ("wheels", "side_slip_rad"),
    "side_slip_rate": ("wheels", "side_slip_rad_per_mps2"),
    "still_time": ("standstill", "time_s"),
    "still_way": ("standstill", "way_m"),
    "still_rate": ("standstill", "rates_radps"),
    "still_load_share": ("standstill", "load_share"),
    "still_repeat_rate": ("standstill", "rate_hz"),
    "still_speed": ("standstill", "speed_mps"),
    "still_gyro": ("standstill", "rates_noise_radps"),
    "map_error": ("ground", "map_error_m"),
    "map_error_time": ("ground", "map_error_time_s"),
    "ground_slope": ("ground", "slope"),
}
"""where each field is in the file"""
