# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""SensorSuite: a vehicle's pose and environment sensors, stepped with its simulation.

docs/model, section 11.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from rfly_amphibious.dynamics.model import STILL, AmphibiousModel, Controls, Method, ModelState
from rfly_amphibious.dynamics.wind import Wind
from rfly_amphibious.sensors import samples
from rfly_amphibious.sensors import sensor_kernels as kernels
from rfly_amphibious.sensors.ideal_readings import IdealReadings, ideal_readings, mounting_of
from rfly_amphibious.sensors.noise import NoiseModel, NoiseSource
from rfly_amphibious.sensors.samples import SensorSamples, joint_names
from rfly_amphibious.sensors.sensor_parameters import NoisySensor, Sensor, SensorParameters
from rfly_amphibious.vehicle import state_layout
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_amphibious.vehicle.vehicle_record import vehicle_record
from rfly_common.arrays import Floats, Ints
from rfly_common.config.checks import finite_number
from rfly_common.errors import ConfigError
from rfly_common.frames import enu_to_ned
from rfly_common.geodesy import DEFAULT_GEO_ORIGIN, geo_point, ned_to_geodetic
from rfly_common.physics import standard_pressure

TURN = 2.0 * math.pi
MOST_SCHEDULES = 1000
"""Most schedules of ticks that a suite keeps: rates without a common period have endless ones."""


class PlanarMotion(NamedTuple):
    """Motion of base_link in the frame of the odometry, which began at 0, 0, heading along x."""

    x: float
    y: float
    yaw: float
    """Heading, rad, not wrapped."""
    speed_x: float
    """Speed forward, m/s."""
    speed_y: float
    """Speed to the left, m/s."""
    yaw_rate: float
    """Yaw rate, rad/s."""


class WheelOdometry:
    """Odometry by wheels: the forward motion and turn that fit the turns of all wheels best.

    Assumes level ground and wheels that do not slip. The vehicle turns about a point abreast of its
    unsteered axle, between two of them, or abreast of its middle if both ends are steered or none.
    Slipping wheels and wheels in the air are not detected: see `wheel_loads`.
    """

    def __init__(self, params: VehicleParameters, wheel_angle: Floats | None = None) -> None:
        """Begin with angles of the wheels (wheels,), rad; by default those of the first update."""
        self._turn_x = params.turn_x
        hubs = params.hub_position
        self._across = hubs[:, 1].tolist()
        self._along = (hubs[:, 0] - self._turn_x).tolist()
        self._radius = params.rolling_radius.tolist()
        self._angle = None if wheel_angle is None else [float(angle) for angle in wheel_angle]
        self._motion = PlanarMotion(0.0, 0.0, 0.0, 0.0, 0.0, 0.0)

    @property
    def motion(self) -> PlanarMotion:
        """Motion after the last update."""
        return self._motion

    def update(self, wheel_angle: Floats, steering: Floats, period: float) -> PlanarMotion:
        """Take in angles (wheels,) of wheels and steering, rad.

        The last ones were `period` seconds before.
        """
        angle = wheel_angle.tolist()
        steered = steering.tolist()
        last = self._angle if self._angle is not None else angle
        self._angle = angle

        # normal equations of least squares over the wheels
        a00 = 0.0
        a01 = 0.0
        a11 = 0.0
        b0 = 0.0
        b1 = 0.0
        for i in range(len(angle)):
            cosine = math.cos(steered[i])
            sine = math.sin(steered[i])
            turn = sine * self._along[i] - cosine * self._across[i]
            rolled = self._radius[i] * (angle[i] - last[i])
            a00 += cosine * cosine
            a01 += cosine * turn
            a11 += turn * turn
            b0 += cosine * rolled
            b1 += turn * rolled
        determinant = a00 * a11 - a01 * a01
        forward = (a11 * b0 - a01 * b1) / determinant
        turned = (a00 * b1 - a01 * b0) / determinant
        left = -self._turn_x * turned

        # the chord of an arc
        half = 0.5 * turned
        share = math.sin(half) / half if abs(half) > 1e-9 else 1.0
        x, y, yaw, *_ = self._motion
        c = share * math.cos(yaw + half)
        s = share * math.sin(yaw + half)
        self._motion = PlanarMotion(
            x + c * forward - s * left,
            y + s * forward + c * left,
            yaw + turned,
            forward / period,
            left / period,
            turned / period,
        )
        return self._motion


def joint_geometry(params: VehicleParameters) -> kernels.JointGeometry:
    """Return the geometry of a vehicle's joints for `kernels.turn_joints`."""
    record = vehicle_record(params, False, False, 0.0)
    states = np.arange(params.state_size)
    columns = state_layout.state_columns(params.rotors, len(params.wheels))
    return kernels.JointGeometry(
        np.array(record.steering_sign, float),
        params.hub_position[:, 1].copy(),
        float(record.steering_lever),
        np.array(params.rotor_spin, float),
        states[columns["wheel_speed"]],
        states[columns["steering_trim"]],
    )


class SensorSuite:
    """Sensors of one vehicle, which advance with its simulation tick by tick.

    A sensor of rate f measures at every multiple of 1/f. The same seed gives the same readings, bit
    by bit, however the time is cut into ticks; `seed` may be several numbers, such as a run's and a
    vehicle's. `noise` False: readings are the truth. `geo_origin`: latitude, longitude (deg),
    altitude (m) of the world's origin; by default the map's.
    """

    def __init__(
        self,
        model: AmphibiousModel,
        sensors: SensorParameters,
        *,
        seed: int | Sequence[int] = 0,
        noise: bool = True,
        step: float = 0.001,
        geo_origin: Sequence[float] | None = None,
    ) -> None:
        finite_number("step", step, "s", above=0.0)
        self.model = model
        self.step = step
        self.noise = noise
        self._seed = seed
        map_origin = model.terrain.geo_origin if model.terrain is not None else None
        self.geo_origin = geo_point(geo_origin or map_origin or DEFAULT_GEO_ORIGIN, "geo_origin")
        self.parameters = sensors = sensors.at_place(self.geo_origin)

        # measuring: period in steps and method of each sensor
        self._sensors = sensors.sensors()
        self._every = {name: self._period(name, sensor) for name, sensor in self._sensors.items()}
        self._cycle = math.lcm(*self._every.values())
        """Number of steps after which all sensors are due at once again."""
        self._schedules: dict[tuple[int, int], _Schedule] = {}
        self._measure = {name: getattr(self, f"_{name}") for name in self._sensors}

        self._mounting = mounting_of(sensors)
        self._geometry = joint_geometry(model.params)
        self._wheels = len(model.params.wheels)
        self._latency = 0
        """Delay of GPS fixes in steps."""
        if sensors.gps is not None:
            self._latency = self._whole_steps("gps", "latency", sensors.gps.latency)
        self.reset()

    def reset(self) -> None:
        """Return to the state before the first tick: all sensors on, and the same errors again."""
        models = {
            name: sensor.noise if self.noise else sensor.noise.silent()
            for name, sensor in self._sensors.items()
            if isinstance(sensor, NoisySensor)
        }
        self._sources = {
            name: NoiseSource(model, self._every[name] * self.step, self._seed, name)
            for name, model in (models | self._white_noises()).items()
        }

        self._off: set[str] = set()
        self._step: int | None = None
        self._joints = np.repeat([0.0, np.nan], self._wheels + self.model.params.rotors)
        self._counted = np.zeros(self._wheels)
        self._odometry = WheelOdometry(self.model.params, np.zeros(self._wheels))
        self._pending: list[tuple[int, list[float]]] = []
        """GPS fixes on their way, each with its step."""

    def _white_noises(self) -> dict[str, NoiseModel]:
        """Return the noise of sensors with a channel for each wheel or rotor, if they have any."""
        encoders = self.parameters.encoders
        cells = self.parameters.wheel_loads
        wheels = len(self.model.params.wheels)
        sigmas = {}
        if encoders is not None:
            strut = [encoders.strut_noise] * wheels + [encoders.strut_rate_noise] * wheels
            sigmas["encoders"] = [*strut, *[encoders.rotor_noise] * self.model.params.rotors]
        if cells is not None:
            sigmas["wheel_loads"] = [cells.load_noise] * wheels
        return {
            name: NoiseModel(len(sigma), white_sigma=sigma)
            for name, sigma in sigmas.items()
            if self.noise and any(sigma)
        }

    def _period(self, name: str, sensor: Sensor) -> int:
        steps = round(1.0 / (sensor.rate * self.step))
        if steps < 1 or abs(steps * sensor.rate * self.step - 1.0) > 1e-6:
            near = sorted({max(steps + k, 1) for k in (-1, 0, 1)}, reverse=True)
            rates = ", ".join(f"{1.0 / (k * self.step):.6g}" for k in near)
            where = self.parameters.lines.get(name)
            prefix = f"{where}: " if where else ""
            raise ConfigError(
                f"{prefix}{name}.rate_hz: {sensor.rate:g}, expected a period of whole "
                f"simulation steps of {self.step:g} s, such as {rates}"
            )
        return steps

    def _whole_steps(self, name: str, key: str, seconds: float) -> int:
        return round(finite_number(f"{name}.{key}", seconds, "s", at_least=0.0) / self.step)

    # queries

    @property
    def joint_names(self) -> list[str]:
        """Names of the joints as in `JointSamples.columns`."""
        return joint_names(self.model.params)

    def variance(self, sensor: str) -> Floats:
        """Return the variance (channels,) of a sample's error, for covariances of messages.

        The channels are those in `sensor_parameters`.
        """
        source = self._sources[sensor]
        return source.model.variance(source.period)

    def switch(self, sensor: str, on: bool) -> None:
        """Switch a sensor off, until it is switched on again. Other sensors do not change by this.

        Samples on their way when it goes off are lost. Raises ConfigError if there is no such
        sensor.
        """
        if sensor not in self._sensors:
            raise ConfigError(f"sensor {sensor!r}: there are {', '.join(self._sensors)}")
        if on:
            self._off.discard(sensor)
        else:
            self._off.add(sensor)

    # ticks

    def advance(
        self,
        state: ModelState,
        controls: Controls,
        duration: float,
        *,
        wind: Wind = STILL,
        method: Method = "rk4",
    ) -> tuple[ModelState, SensorSamples]:
        """Simulate a tick of `duration` seconds with the controls held.

        Returns the state then, and what was sensed in it. Raises DynamicsError as the model does.
        """
        run = self.model.run(
            state, controls, duration, self.step, wind=wind, method=method, sample_period=self.step
        )
        return run.final, self.observe(state, run.x, run.memory, controls, wind)

    def observe(
        self, before: ModelState, x: Floats, memory: Floats, controls: Controls, wind: Wind = STILL
    ) -> SensorSamples:
        """Return what is sensed in a tick that has been simulated already.

        `x` (k, states) and `memory` (k, memory) are those of every step. `before` is the state at
        the beginning, where the tick before has ended. Raises ConfigError if it did not end there.
        """
        if x.ndim != 2 or len(x) != len(memory):
            raise ValueError(
                f"expected the steps of one vehicle, got x of shape {x.shape}, "
                f"memory of {memory.shape}"
            )

        begin = round(before.time / self.step)
        if self._step is None:
            self._turn(before.x.reshape(1, -1))
        elif self._step != begin:
            raise ConfigError(
                f"the tick begins at {before.time:.6g} s, "
                f"but the sensors are at {self._step * self.step:.6g} s"
            )
        self._step = end = begin + len(x)
        turned = self._turn(x)

        # each sensor at its own steps, out of one look at all of them
        rows, due = self._schedule(begin % self._cycle, len(x))
        readings: dict[str, Any] = {}
        if due:
            union = begin + 1 + rows
            seen = self._look(rows, x, memory, begin, controls, wind)
            turned = turned[rows]
            for name, own in due:
                if own is None:
                    readings |= self._measure[name](union, seen, turned)
                    continue
                seen_by_sensor = IdealReadings(*(array[own] for array in seen))
                readings |= self._measure[name](union[own], seen_by_sensor, turned[own])

        if self._pending:
            readings["gps"] = self._deliver(end)
        for name in self._off:
            for samples_name in _SAMPLES_OF.get(name, (name,)):
                readings.pop(samples_name, None)
        return SensorSamples(**readings)

    def _schedule(self, phase: int, length: int) -> _Schedule:
        """Return which rows of a tick's states (length, …) its sensors see.

        `phase`: steps before the tick since all sensors were due at once.
        """
        known = self._schedules.get((phase, length))
        if known is not None:
            return known

        due = {
            name: steps
            for name, every in self._every.items()
            if (steps := range((phase // every + 1) * every, phase + length + 1, every))
        }
        union = sorted(set().union(*due.values()))
        own_rows = [
            (name, None if len(steps) == len(union) else _rows_of(union, steps))
            for name, steps in due.items()
        ]
        schedule = np.array(union, np.int64) - phase - 1, own_rows
        if len(self._schedules) < MOST_SCHEDULES:
            self._schedules[phase, length] = schedule
        return schedule

    def _turn(self, x: Floats) -> Floats:
        """Return angles and rates of the joints at every step."""
        rotors = self.model.params.rotors
        out = np.empty((len(x), 3 * self._wheels + 2 * rotors))
        kernels.turn_joints(self.step, np.ascontiguousarray(x), self._geometry, self._joints, out)
        return out

    def _look(
        self, rows: Ints, x: Floats, memory: Floats, begin: int, controls: Controls, wind: Wind
    ) -> IdealReadings:
        """Return all that can be seen at these rows of a tick's states."""
        obstacles = self.model.obstacles_at(begin * self.step, x[0], (len(x) + 1) * self.step)
        since = self._time(rows + 1)

        x = x[rows]
        commands = controls.rows(self.model.params, len(x))
        return ideal_readings(
            self.model,
            self._mounting,
            x,
            memory[rows],
            (commands, controls.torques),
            np.asarray(wind.mean, float),
            obstacles,
            since,
        )

    # the sensors

    def _time(self, steps: Ints) -> Floats:
        return steps.astype(np.float64) * self.step

    def _imu(self, steps: Ints, seen: IdealReadings, _: Floats) -> dict[str, Any]:
        readings = self._sources["imu"].disturb(seen.truth["imu"])
        attitude = np.empty((len(steps), 4))
        kernels.turned_by(seen.truth, readings, attitude)
        return {
            "imu": samples.ImuSamples(
                self._time(steps), readings[:, :3], readings[:, 3:6], attitude
            )
        }

    def _gps(self, steps: Ints, seen: IdealReadings, _: Floats) -> dict[str, Any]:
        readings = self._sources["gps"].disturb(seen.truth["gps"])
        if "gps" not in self._off:
            self._pending += zip(steps.tolist(), readings.tolist(), strict=True)
        return {}

    def _deliver(self, end: int) -> samples.GpsSamples | None:
        """Return what was measured a latency ago or earlier."""
        if "gps" in self._off:
            self._pending.clear()
        ready = [item for item in self._pending if item[0] + self._latency <= end]
        if not ready:
            return None
        del self._pending[: len(ready)]
        numbers = np.array([numbers for _, numbers in ready])
        geodetic = ned_to_geodetic(enu_to_ned(numbers[:, :3]), self.geo_origin)
        time = np.array([step for step, _ in ready]) * self.step
        return samples.GpsSamples(time, geodetic, numbers[:, 3:])

    def _magnetometer(self, steps: Ints, seen: IdealReadings, _: Floats) -> dict[str, Any]:
        readings = self._sources["magnetometer"].disturb(seen.truth["magnetic_field"])
        return {"magnetometer": samples.MagnetometerSamples(self._time(steps), readings)}

    def _barometer(self, steps: Ints, seen: IdealReadings, _: Floats) -> dict[str, Any]:
        pressure = standard_pressure(seen.truth["barometer_z"] + self.geo_origin[2])
        readings = self._sources["barometer"].disturb(pressure[:, None])
        return {"barometer": samples.BarometerSamples(self._time(steps), readings[:, 0])}

    def _height(self, steps: Ints, seen: IdealReadings, _: Floats) -> dict[str, Any]:
        sensor = self.parameters.height
        assert sensor is not None
        places = seen.truth["height_place"]
        height = self.model.height_above_ground(places)
        readings = self._sources["height"].disturb(height[:, None])[:, 0]
        readings[readings < sensor.min_range] = -math.inf
        readings[readings > sensor.max_range] = math.inf
        return {"height": samples.HeightSamples(self._time(steps), readings)}

    def _encoders(self, steps: Ints, seen: IdealReadings, turned: Floats) -> dict[str, Any]:
        sensor = self.parameters.encoders
        rotors = self.model.params.rotors
        wheels = self._wheels
        assert sensor is not None
        time = self._time(steps)
        period = self._every["encoders"] * self.step
        steering, rate, angle = (turned[:, k * wheels : (k + 1) * wheels] for k in range(3))

        # counts
        if self.noise and sensor.steering_counts:
            steering_step = TURN / sensor.steering_counts
            steering = np.round(steering * (sensor.steering_counts / TURN)) * steering_step
        if self.noise and sensor.wheel_counts:
            wheel_step = TURN / sensor.wheel_counts
            counts = np.floor(angle * (sensor.wheel_counts / TURN))
            angle = counts * wheel_step
            rate = np.diff(counts, axis=0, prepend=self._counted[None]) * (wheel_step / period)
            self._counted = counts[-1]

        motions = [
            self._odometry.update(a, s, period) for a, s in zip(angle, steering, strict=True)
        ]
        columns = state_layout.state_columns(rotors, wheels)
        strut = seen.x[:, columns["strut"]]
        strut_rate = seen.x[:, columns["strut_rate"]]
        spin = turned[:, 3 * wheels : 3 * wheels + rotors]
        rotor = turned[:, 3 * wheels + rotors :]
        if "encoders" in self._sources:
            noisy = self._sources["encoders"].disturb(np.hstack((strut, strut_rate, spin)))
            strut, strut_rate, spin = np.split(noisy, (wheels, 2 * wheels), axis=1)
        joints = samples.JointSamples(time, angle, rate, steering, strut, strut_rate, rotor, spin)
        return {"joints": joints, "wheel_odometry": _odometry_samples(time, np.array(motions))}

    def _wheel_loads(self, steps: Ints, seen: IdealReadings, _: Floats) -> dict[str, Any]:
        loads = seen.loads
        if "wheel_loads" in self._sources:
            loads = self._sources["wheel_loads"].disturb(loads)
        return {"wheel_loads": samples.WheelLoadSamples(self._time(steps), loads)}

    def _wind(self, steps: Ints, seen: IdealReadings, _: Floats) -> dict[str, Any]:
        return {"wind": samples.WindSamples(self._time(steps), seen.wind)}

    def _ground_truth(self, steps: Ints, seen: IdealReadings, _: Floats) -> dict[str, Any]:
        x = seen.x
        velocity = seen.truth["body_velocity"]
        pose = (
            x[:, state_layout.POSITION : state_layout.POSITION + 3],
            x[:, state_layout.QUATERNION_XYZW],
        )
        truth = samples.OdometrySamples(
            self._time(steps), *pose, velocity, x[:, state_layout.RATES : state_layout.RATES + 3]
        )
        return {"ground_truth": truth}


_Rows = Ints | slice
_Schedule = tuple[Ints, list[tuple[str, _Rows | None]]]
"""Rows of a tick that are seen, and of these the rows of each sensor that is due; None: all."""


def _rows_of(union: Sequence[int], steps: range) -> _Rows:
    """Return the rows of the union that are a sensor's steps; a slice, a view, for a single one."""
    rows = np.searchsorted(union, steps)
    return slice(rows[0], rows[0] + 1) if len(rows) == 1 else rows


def _odometry_samples(time: Floats, motions: Floats) -> samples.OdometrySamples:
    """Return samples of rows of PlanarMotion."""
    flat = np.zeros((3, len(time), 3))
    position = flat[0]
    velocity = flat[1]
    rates = flat[2]

    position[:, :2] = motions[:, :2]
    velocity[:, :2] = motions[:, 3:5]
    rates[:, 2] = motions[:, 5]

    attitude = np.zeros((len(time), 4))
    attitude[:, 2] = np.sin(0.5 * motions[:, 2])
    attitude[:, 3] = np.cos(0.5 * motions[:, 2])
    return samples.OdometrySamples(time, position, attitude, velocity, rates)


_SAMPLES_OF = {"encoders": ("joints", "wheel_odometry")}
"""Names of a sensor's samples, if they are not its own name."""
