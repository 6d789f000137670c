"""SensorSuite: a vehicle's pose and environment sensors, stepped with its simulation. docs/model,
section 11.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from rfly_amphibious.dynamics.arguments import Inputs
from rfly_amphibious.dynamics.model import STILL, AmphibiousModel, Controls, Method, ModelState
from rfly_amphibious.dynamics.wind import Wind
from rfly_amphibious.sensors import kernels, samples
from rfly_amphibious.sensors.noise import NoiseSource
from rfly_amphibious.sensors.samples import SensorSamples, joint_names
from rfly_amphibious.sensors.sensor_parameters import Imu, NoisySensor, Sensor, SensorParameters
from rfly_amphibious.vehicle import state_layout as at
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_amphibious.vehicle.vehicle_record import vehicle_record
from rfly_common.arrays import Floats, Ints
from rfly_common.config.checks import finite_number
from rfly_common.errors import ConfigError
from rfly_common.frames import enu_to_ned, euler_to_quat, rotation_matrix
from rfly_common.geodesy import DEFAULT_GEO_ORIGIN, geo_point, ned_to_geodetic
from rfly_common.physics import standard_pressure

TURN = 2.0 * math.pi


class PlanarMotion(NamedTuple):
    """Of base_link, in the frame in which the odometry began: there it was at 0, 0, heading along
    x.
    """

    x: float
    y: float
    yaw: float
    """rad, not wrapped"""
    speed_x: float
    """m/s, forward"""
    speed_y: float
    """m/s, to the left"""
    yaw_rate: float
    """rad/s"""


class WheelOdometry:
    """Forward motion and turn that fit the turns of all wheels best, where no wheel slips, on level
    ground.

    The vehicle turns about a point abreast of its unsteered axle, between two of them, or abreast
    of its middle where both ends are steered or none. It knows nothing of slipping wheels, nor of
    wheels in the air: see `wheel_loads`.
    """

    def __init__(self, params: VehicleParameters, wheel_angle: Floats | None = None) -> None:
        """`wheel_angle` (wheels,): where the wheels are at the beginning, rad; else the first
        update tells.
        """
        self._turn_x = params.turn_x
        hubs = params.hub_position
        self._across = hubs[:, 1].tolist()
        self._along = (hubs[:, 0] - self._turn_x).tolist()
        self._radius = params.rolling_radius.tolist()
        self._angle = None if wheel_angle is None else [float(angle) for angle in wheel_angle]
        self._motion = PlanarMotion(0.0, 0.0, 0.0, 0.0, 0.0, 0.0)

    @property
    def motion(self) -> PlanarMotion:
        """After the last update."""
        return self._motion

    def update(self, wheel_angle: Floats, steering: Floats, period: float) -> PlanarMotion:
        """With angles (wheels,) of wheels and steering (rad) `period` seconds after those before."""
        angle = wheel_angle.tolist()
        steered = steering.tolist()
        last = self._angle if self._angle is not None else angle
        self._angle = angle
        a00 = a01 = a11 = b0 = b1 = 0.0
        for i in range(len(angle)):
            cosine = math.cos(steered[i])
            sine = math.sin(steered[i])
            turn = sine * self._along[i] - cosine * self._across[i]
            rolled = self._radius[i] * (angle[i] - last[i])
            a00 = a00 + cosine * cosine
            a01 = a01 + cosine * turn
            a11 = a11 + turn * turn
            b0 = b0 + cosine * rolled
            b1 = b1 + turn * rolled
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

    def save(self) -> list[float]:
        """All that the next update depends on."""
        return [*self._motion, *(self._angle or ())]

    def restore(self, saved: list[float]) -> None:
        """Goes on from `save`. Raises ConfigError where it is none."""
        numbers = np.array(saved, np.float64)
        sizes = 6, 6 + len(self._along)
        if numbers.ndim != 1 or numbers.size not in sizes or not np.isfinite(numbers).all():
            most = {4: "ten", 6: "twelve"}[len(self._along)]
            raise ConfigError(
                f"no saved state of wheel odometry: expected six or {most} finite numbers"
            )
        values = numbers.tolist()
        self._motion = PlanarMotion(*values[:6])
        self._angle = values[6:] or None


def joint_geometry(params: VehicleParameters) -> kernels.JointGeometry:
    """Of a vehicle, for `kernels.turn_joints`."""
    record = vehicle_record(params, False, False, 0.0)
    states = np.arange(params.state_size)
    wheel_speed = states[at.state_columns(params.rotors, len(params.wheels))["wheel_speed"]]
    return kernels.JointGeometry(
        np.array(record.steering_sign, float),
        params.hub_position[:, 1].copy(),
        float(record.steering_lever),
        np.array(params.rotor_spin, float),
        wheel_speed,
    )


class SensorSuite:
    """The sensors of one vehicle. Advances with its simulation and hands out what is due, tick by
    tick.

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
        of_map = model.terrain.geo_origin if model.terrain is not None else None
        self.geo_origin = geo_point(geo_origin or of_map or DEFAULT_GEO_ORIGIN, "geo_origin")
        self.parameters = sensors = sensors.at_place(self.geo_origin)
        self._sensors = sensors.sensors()
        self._every = {name: self._period(name, sensor) for name, sensor in self._sensors.items()}
        self._sources = {
            name: NoiseSource(
                sensor.noise if noise else sensor.noise.silent(),
                self._every[name] * step,
                seed,
                name,
            )
            for name, sensor in self._sensors.items()
            if isinstance(sensor, NoisySensor)
        }
        self._measure = {name: getattr(self, f"_{name}") for name in self._sensors}
        self._off: set[str] = set()
        self._place_sensors()
        self._prepare_joints()
        self._step: int | None = None
        self._latency = (
            0 if sensors.gps is None else self._whole_steps("gps", "latency", sensors.gps.latency)
        )
        self._pending: list[tuple[int, list[float]]] = []

    def _period(self, name: str, sensor: Sensor) -> int:
        steps = round(1.0 / (sensor.rate * self.step))
        if steps < 1 or abs(steps * sensor.rate * self.step - 1.0) > 1e-6:
            near = sorted({max(steps + k, 1) for k in (-1, 0, 1)}, reverse=True)
            rates = ", ".join(f"{1.0 / (k * self.step):.6g}" for k in near)
            where = self.parameters.lines.get(name)
            raise ConfigError(
                f"{f'{where}: ' if where else ''}{name}.rate_hz: {sensor.rate:g}, expected a period of whole "
                f"simulation steps of {self.step:g} s, such as {rates}"
            )
        return steps

    def _whole_steps(self, name: str, key: str, seconds: float) -> int:
        return round(finite_number(f"{name}.{key}", seconds, "s", at_least=0.0) / self.step)

    def _place_sensors(self) -> None:
        p = self.parameters
        levers = np.zeros((4, 3))
        for row, sensor in (
            (kernels.IMU, p.imu),
            (kernels.GPS, p.gps),
            (kernels.BARO, p.barometer),
            (kernels.HEIGHT, p.height),
        ):
            if sensor is not None:
                levers[row] = sensor.position
        rotation = p.imu.rotation if isinstance(p.imu, Imu) else (0.0, 0.0, 0.0)
        quat = euler_to_quat(rotation).astype(np.float64)
        self._mounting = kernels.Mounting(levers, rotation_matrix(quat), quat)
        self._field = np.array((p.magnetometer and p.magnetometer.earth_field) or (0.0, 0.0, 0.0))

    def _prepare_joints(self) -> None:
        params = self.model.params
        self._geometry = joint_geometry(params)
        self._wheels = len(params.wheels)
        joints = self._wheels + params.rotors
        self._joints = np.repeat([0.0, np.nan], joints)
        self._counted = np.zeros(self._wheels)
        self._odometry = WheelOdometry(params, np.zeros(self._wheels))

    # what callers ask

    @property
    def joint_names(self) -> list[str]:
        """As in `JointSamples.columns`: wheels, steered wheels, struts, rotors."""
        return joint_names(self.model.params)

    def variance(self, sensor: str) -> Floats:
        """(channels,) variance of a sample's error, for covariances of messages; channels as in
        `sensor_parameters`.
        """
        source = self._sources[sensor]
        return source.model.variance(source.period)

    def switch(self, sensor: str, on: bool) -> None:
        """Off: nothing more comes from this sensor, until it is on again. Others do not change by
        it.

        Samples on their way when it goes off are lost. Raises ConfigError for a sensor that is not
        there.
        """
        if sensor not in self._sensors:
            raise ConfigError(f"sensor {sensor!r}: there are {', '.join(self._sensors)}")
        if on:
            self._off.discard(sensor)
        else:
            self._off.add(sensor)

    # going along

    def advance(
        self,
        state: ModelState,
        controls: Controls,
        duration: float,
        *,
        wind: Wind = STILL,
        method: Method = "rk4",
    ) -> tuple[ModelState, SensorSamples]:
        """Simulates a tick of `duration` seconds with the controls held: the state then, and what
        was sensed in it.

        Raises DynamicsError as the model does.
        """
        run = self.model.run(
            state, controls, duration, self.step, wind=wind, method=method, sample_period=self.step
        )
        return run.final, self.observe(state, run.x, run.memory, controls, wind)

    def observe(
        self, before: ModelState, x: Floats, memory: Floats, controls: Controls, wind: Wind = STILL
    ) -> SensorSamples:
        """What is sensed in a tick that has been simulated already: `x` (k, states), `memory` (k,
        memory), every step.

        `before` is the state at its beginning, where the tick before has ended. Raises ConfigError
        where it is not.
        """
        if x.ndim != 2 or len(x) != len(memory):
            raise ValueError(
                f"expected the steps of one vehicle, got x of shape {x.shape}, memory of {memory.shape}"
            )
        begin = round(before.time / self.step)
        if self._step is None:
            self._turn(before.x.reshape(1, -1))
        elif self._step != begin:
            raise ConfigError(
                f"the tick begins at {before.time:.6g} s, but the sensors are at {self._step * self.step:.6g} s"
            )
        self._step = end = begin + len(x)
        turned = self._turn(x)
        due = {
            name: steps
            for name, every in self._every.items()
            if (steps := range((begin // every + 1) * every, end + 1, every))
        }
        found: dict[str, Any] = {}
        if due:
            union = np.array(sorted(set().union(*due.values())))
            seen = self._look(union, x, memory, begin, controls, wind)
            turned = turned[union - begin - 1]
            for name, steps in due.items():
                if len(steps) == len(union):
                    found |= self._measure[name](union, seen, turned)
                    continue
                own = np.array(steps)
                rows = np.searchsorted(union, own)
                found |= self._measure[name](
                    own, _Seen(*(array[rows] for array in seen)), turned[rows]
                )
        if self._pending:
            found["gps"] = self._deliver(end)
        for name in self._off:
            for made in _MADE.get(name, (name,)):
                found.pop(made, None)
        return SensorSamples(**found)

    def _turn(self, x: Floats) -> Floats:
        """Angles and rates of the joints at every step."""
        rotors = self.model.params.rotors
        out = np.empty((len(x), 3 * self._wheels + 2 * rotors))
        kernels.turn_joints(self.step, np.ascontiguousarray(x), self._geometry, self._joints, out)
        return out

    def _look(
        self, steps: Ints, x: Floats, memory: Floats, begin: int, controls: Controls, wind: Wind
    ) -> _Seen:
        """All that can be seen at these steps."""
        rows = steps - begin - 1
        obstacles = self.model.obstacles_at(begin * self.step, x[0], (len(x) + 1) * self.step)
        since = self._time(rows + 1)
        x = x[rows]
        memory = memory[rows]
        blowing = memory[:, at.GUST : at.GUST + 3] + np.asarray(wind.mean, float)
        acting = np.array(memory[:, at.memory_columns(self._wheels)["brake_acting"]])
        params = self.model.params
        commands = controls.rows(params, len(x))
        torques = controls.torques
        dx, numbers = self.model.evaluate_rows(
            x, Inputs(commands, torques, acting, blowing), obstacles, since
        )
        dead = memory[:, at.CRASHED] != 0.0
        if dead.any():  # what has crashed obeys nobody
            brakes = Controls(brake_torque=params.max_brake_torque).rows(params, int(dead.sum()))
            inputs = Inputs(brakes, False, acting[dead], blowing[dead])
            dx[dead], numbers[dead] = self.model.evaluate_rows(
                x[dead], inputs, obstacles, since[dead]
            )
        truth = np.empty((len(x), kernels.TRUTHS))
        force = numbers[:, at.SPECIFIC_FORCE : at.SPECIFIC_FORCE + 3].copy()
        kernels.truths(x, dx, force, self._mounting, self._field, truth)
        return _Seen(x, truth, numbers[:, at.output_columns(self._wheels)["wheel_load"]], blowing)

    # the sensors

    def _time(self, steps: Ints) -> Floats:
        return steps.astype(np.float64) * self.step

    def _imu(self, steps: Ints, seen: _Seen, _: Floats) -> dict[str, Any]:
        read = self._sources["imu"].disturb(seen.truth, kernels.SPECIFIC_FORCE)
        attitude = np.empty((len(steps), 4))
        kernels.turned_by(seen.truth, read, kernels.ATTITUDE_ERROR, attitude)
        return {"imu": samples.ImuSamples(self._time(steps), read[:, :3], read[:, 3:6], attitude)}

    def _gps(self, steps: Ints, seen: _Seen, _: Floats) -> dict[str, Any]:
        read = self._sources["gps"].disturb(seen.truth, kernels.GPS_POSITION)
        if "gps" not in self._off:
            self._pending += zip(steps.tolist(), read.tolist(), strict=True)
        return {}

    def _deliver(self, end: int) -> samples.GpsSamples | None:
        """What was measured a latency ago or earlier."""
        if "gps" in self._off:
            self._pending.clear()
        ready = [item for item in self._pending if item[0] + self._latency <= end]
        if not ready:
            return None
        del self._pending[: len(ready)]
        numbers = np.array([numbers for _, numbers in ready])
        geodetic = ned_to_geodetic(enu_to_ned(numbers[:, :3]), self.geo_origin)
        return samples.GpsSamples(
            np.array([step for step, _ in ready]) * self.step, geodetic, numbers[:, 3:]
        )

    def _magnetometer(self, steps: Ints, seen: _Seen, _: Floats) -> dict[str, Any]:
        read = self._sources["magnetometer"].disturb(seen.truth, kernels.MAGNETIC_FIELD)
        return {"magnetometer": samples.MagnetometerSamples(self._time(steps), read)}

    def _barometer(self, steps: Ints, seen: _Seen, _: Floats) -> dict[str, Any]:
        pressure = standard_pressure(seen.truth[:, kernels.BARO_Z] + self.geo_origin[2])
        read = self._sources["barometer"].disturb(pressure[:, None])
        return {"barometer": samples.BarometerSamples(self._time(steps), read[:, 0])}

    def _height(self, steps: Ints, seen: _Seen, _: Floats) -> dict[str, Any]:
        sensor = self.parameters.height
        assert sensor is not None
        height = self.model.height_above_ground(
            seen.truth[:, kernels.HEIGHT_PLACE : kernels.HEIGHT_PLACE + 3]
        )
        read = self._sources["height"].disturb(height[:, None])[:, 0]
        read[read < sensor.min_range] = -math.inf
        read[read > sensor.max_range] = math.inf
        return {"height": samples.HeightSamples(self._time(steps), read)}

    def _encoders(self, steps: Ints, seen: _Seen, turned: Floats) -> dict[str, Any]:
        sensor = self.parameters.encoders
        rotors = self.model.params.rotors
        wheels = self._wheels
        assert sensor is not None
        time = self._time(steps)
        period = self._every["encoders"] * self.step
        steering, rate, angle = (turned[:, k * wheels : (k + 1) * wheels] for k in range(3))
        if self.noise and sensor.steering_counts:
            steering = np.round(steering * (sensor.steering_counts / TURN)) * (
                TURN / sensor.steering_counts
            )
        if self.noise and sensor.wheel_counts:
            counts = np.floor(angle * (sensor.wheel_counts / TURN))
            angle = counts * (TURN / sensor.wheel_counts)
            rate = np.diff(counts, axis=0, prepend=self._counted[None]) * (
                TURN / sensor.wheel_counts / period
            )
            self._counted = counts[-1]
        motions = [
            self._odometry.update(a, s, period) for a, s in zip(angle, steering, strict=True)
        ]
        strut, strut_rate = (
            seen.x[:, at.state_columns(rotors, wheels)[k]] for k in ("strut", "strut_rate")
        )
        spin = turned[:, 3 * wheels : 3 * wheels + rotors]
        rotor = turned[:, 3 * wheels + rotors :]
        joints = samples.JointSamples(time, angle, rate, steering, strut, strut_rate, rotor, spin)
        return {"joints": joints, "wheel_odometry": _odometry_samples(time, np.array(motions))}

    def _wheel_loads(self, steps: Ints, seen: _Seen, _: Floats) -> dict[str, Any]:
        return {"wheel_loads": samples.WheelLoadSamples(self._time(steps), seen.loads)}

    def _wind(self, steps: Ints, seen: _Seen, _: Floats) -> dict[str, Any]:
        return {"wind": samples.WindSamples(self._time(steps), seen.wind)}

    def _ground_truth(self, steps: Ints, seen: _Seen, _: Floats) -> dict[str, Any]:
        x = seen.x
        velocity = seen.truth[:, kernels.BODY_VELOCITY : kernels.BODY_VELOCITY + 3]
        pose = x[:, at.POSITION : at.POSITION + 3], x[:, at.QUATERNION_XYZW]
        truth = samples.OdometrySamples(
            self._time(steps), *pose, velocity, x[:, at.RATES : at.RATES + 3]
        )
        return {"ground_truth": truth}

    # keeping

    def save(self) -> dict[str, Any]:
        """All that later samples depend on beside the vehicle's state, fit for JSON: numbers,
        strings, lists, dicts.
        """
        return {
            "step": self._step,
            "noise": {name: source.save() for name, source in self._sources.items()},
            "joints": self._joints.tolist() if self._step is not None else None,
            "counted": self._counted.tolist(),
            "odometry": self._odometry.save(),
            "pending": [[step, *numbers] for step, numbers in self._pending],
            "off": sorted(self._off),
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Goes on from `save` of a suite like this one. Raises ConfigError where it does not fit."""
        try:
            step = saved["step"]
            off = set(saved["off"])
            joints = (
                np.full(len(self._joints), np.nan)
                if saved["joints"] is None
                else np.array(saved["joints"], float)
            )
            counted = np.array(saved["counted"], float)
            pending = [
                (int(first), [float(number) for number in numbers])
                for first, *numbers in saved["pending"]
            ]
            noise = dict(saved["noise"])
            odometry = list(saved["odometry"])
            if not (step is None or isinstance(step, int)):
                raise ValueError(f"step is {step!r}")
        except (KeyError, TypeError, ValueError) as error:
            raise ConfigError(f"no saved state of sensors ({error!r})") from None
        if (
            set(noise) != set(self._sources)
            or joints.shape != self._joints.shape
            or counted.shape != (self._wheels,)
            or not off <= set(self._sensors)
            or any(len(numbers) != 6 for _, numbers in pending)
        ):
            raise ConfigError("this saved state is that of other sensors, or of another vehicle")
        for name, source in self._sources.items():
            source.restore(noise[name])
        self._odometry.restore(odometry)
        if step is None:
            joints = np.repeat([0.0, np.nan], len(joints) // 2)
        self._step = step
        self._joints = joints
        self._counted = counted
        self._pending = pending
        self._off = off


class _Seen(NamedTuple):
    """The truth at some steps, a row for each."""

    x: Floats
    truth: Floats
    """columns as in `kernels`"""
    loads: Floats
    wind: Floats


def _odometry_samples(time: Floats, motions: Floats) -> samples.OdometrySamples:
    """Of rows of PlanarMotion."""
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


_MADE = {"encoders": ("joints", "wheel_odometry")}
"""what a sensor's samples are called, where not by its own name"""
