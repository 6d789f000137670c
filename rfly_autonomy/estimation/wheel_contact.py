# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Loads of the wheels, from load cells or from the travel of the struts."""

from __future__ import annotations

import math

import numpy as np

from rfly_amphibious.sensors.samples import JointSamples, SensorSamples
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_autonomy.estimation.stuck_readings import STUCK_TIME
from rfly_common.arrays import Floats
from rfly_common.config.checks import all_finite
from rfly_common.physics import GRAVITY

SENSOR_TIMEOUT = 0.25
"""Age at which a reading no longer counts, s."""

CHANGED_SHARE = 0.2
"""Change of a load, as a share of the static load, that load cells and struts both have to show."""

TURNING = 0.5
"""Rate above which a wheel or rotor turns, rad/s."""

RATE_AGREES = 1.0
"""Largest difference of a wheel's rate and that of its angle, rad/s."""

CARRIED_SHARE = 0.9
"""Thrust as a share of the weight above which a vehicle may fly: more than lifts an axle."""

AGREES = 0.15
"""Largest difference of measured force and thrust of a vehicle that flies, weights."""

FLIGHT_TIMEOUT = 0.05
"""Age at which the witnesses of a flight no longer count, s."""

LYING_TIME = 1.0
"""Time over which readings with load in flight are counted, s: longer than any bounce."""

MOST_LYING = 0.3
"""Share of readings with load in flight above which load cells are at fault.

A noisy cell that shows no negative loads shows one in less than half of its readings.
"""

FEW_LYING = 0.1
"""The same below which they are sound again."""

FORGOTTEN = 1e-3
"""Share below which no such reading counts any more."""

LEAST_LOAD = 0.05
"""Share of a wheel's static load below which the struts show none.

A hanging wheel's inertia pulls at its strut as a small load does.
"""


def loads_of_struts(params: VehicleParameters, strut: Floats, rate: Floats) -> Floats:
    """Return the loads of the wheels, (wheels,), N, from struts and their rates, m and m/s.

    The force of each strut is that of Eq. 6.2; the load carries the wheel's weight as well.
    """
    p = params
    travels = strut.tolist()
    loads = []
    wheels = zip(
        travels,
        rate.tolist(),
        p.spring_load.tolist(),
        p.spring.tolist(),
        p.anti_roll.tolist(),
        p.static_load.tolist(),
        strict=True,
    )
    for wheel, (travel, speed, preload, spring, anti_roll, static_load) in enumerate(wheels):
        # spring, damper and anti-roll bar
        force = max(0.0, preload + spring * travel)
        force += (p.bump_damping if speed > 0.0 else p.rebound_damping) * speed
        force += anti_roll * (travel - travels[wheel ^ 1])

        # end stops only push
        if travel > p.bump_stop:
            above = p.bump_stop_stiffness * (travel - p.bump_stop) + p.stop_damping * speed
            force += max(0.0, above)
        if travel < p.rebound_stop:
            below = p.rebound_stop_stiffness * (travel - p.rebound_stop) + p.stop_damping * speed
            force += min(0.0, below)

        load = force + p.mass_unsprung * GRAVITY
        loads.append(load if load > LEAST_LOAD * static_load else 0.0)
    return np.array(loads)


class _Run:
    """Run of equal readings of a sensor."""

    def __init__(self, limits: Floats) -> None:
        self.limits: list[float] = limits.tolist()
        """Changes of this sensor's readings that another one has to notice, by wheel."""

        self.values: list[float] = []
        self.others: list[float] = []
        """Readings of the other sensor when the run began."""

        self.since = math.inf
        """Time since when the other one has shown a change, s."""

        self.stuck = False


class LoadWatch:
    """Watch over load cells and struts, which see the same loads.

    The one that repeats a reading bit by bit while the other shows a change is stuck. It need not
    be noisy for that.
    """

    def __init__(self, params: VehicleParameters) -> None:
        load = CHANGED_SHARE * params.static_load
        self._runs = {"wheel_loads": _Run(load), "encoders": _Run(load / params.spring)}
        self._hanging: list[float] = (params.hanging_strut + load / params.spring).tolist()

    def update(self, sensor: str, time: float, values: list[float]) -> bool:
        """Take in loads, N, or travels of struts, m, by wheel; return whether they are stuck.

        `sensor`: `wheel_loads` or `encoders`.
        """
        own = self._runs[sensor]
        other = self._runs["encoders" if sensor == "wheel_loads" else "wheel_loads"]
        if values != own.values or not own.others:
            own.values = values
            own.others = other.values
            own.since = math.inf
            own.stuck = False
            return False

        changed = not self._hang() and any(
            abs(now - then) > limit
            for now, then, limit in zip(other.values, own.others, other.limits, strict=True)
        )
        if not own.stuck:
            own.since = min(own.since, time) if changed else math.inf
        own.stuck = own.stuck or time - own.since >= STUCK_TIME - 1e-9
        return own.stuck

    def _hang(self) -> bool:
        """Return whether both sensors agree that no wheel carries a load.

        Cells of wheels that hang repeat 0 while the struts still swing.
        """
        loads, struts = self._runs["wheel_loads"], self._runs["encoders"]
        agree = zip(loads.values, loads.limits, struts.values, self._hanging, strict=True)
        return all(load < limit and strut < hangs for load, limit, strut, hangs in agree)

    def is_stuck(self, sensor: str) -> bool:
        """Return whether a sensor repeats itself while the other shows a change."""
        return self._runs[sensor].stuck

    def since(self, sensor: str) -> float:
        """Return the time since when the other sensor contradicts this one, s."""
        return self._runs[sensor].since


class TurnWatch:
    """Watch over encoders whose angles and rates say different things.

    Angles that rest, bit by bit, while the rates say that the wheels turn, are stuck. While both go
    together, a wheel turns as it says, whether it rolls or spins.
    """

    def __init__(self, counts: bool = False) -> None:
        """Begin; `counts`: whether rates are those of counts, so means since the last reading."""
        self._counts = counts
        self._angles: list[float] = []
        self._rates: list[float] = []
        self._time = -math.inf
        self.since = math.inf
        """Time since when the rates contradict the angles, s."""

        self.stuck = False
        """True while they do for long enough."""

        self._apart: list[float] = []
        """Rates less those of the angles, averaged, rad/s."""

    @property
    def turn(self) -> bool:
        """True while the wheels turn as their rates say."""
        return all(abs(apart) < RATE_AGREES for apart in self._apart)

    def update(self, time: float, angles: list[float], rates: list[float]) -> bool:
        """Take in angles, rad, and rates, rad/s; return whether they are stuck."""
        rests = angles == self._angles and any(abs(rate) > TURNING for rate in rates)
        self._compare(time, angles, rates)
        self._angles = angles
        self._rates = rates
        self._time = time
        self.since = min(self.since, time) if rests else math.inf
        self.stuck = rests and time - self.since >= STUCK_TIME - 1e-9
        return self.stuck

    def _compare(self, time: float, angles: list[float], rates: list[float]) -> None:
        """Average how far the rates are from those of the angles; odd numbers begin anew."""
        gap = time - self._time
        shown = [*angles, *rates, *self._angles, *self._rates]
        is_next = 0.0 < gap < STUCK_TIME and len(self._apart) == len(rates)
        if not (is_next and all(map(math.isfinite, shown))):
            self._apart = [0.0] * len(rates)
            return
        share = -math.expm1(-gap / STUCK_TIME)
        for wheel, apart in enumerate(self._apart):
            rate = rates[wheel] if self._counts else 0.5 * (rates[wheel] + self._rates[wheel])
            beyond = rate * gap - (angles[wheel] - self._angles[wheel])
            now = math.remainder(beyond, 2.0 * math.pi) / gap  # one that spins makes whole turns
            self._apart[wheel] = apart + share * (now - apart)


class FlightLoads:
    """Watch over load cells that show load in flight, when the wheels hang and the rotors carry.

    Two witnesses outvote the cells: the struts, which hang, and the accelerometer, which measures
    no more force than the thrust. On the ground the last judgement stands. Encoders that are stuck
    since a flight would show hanging struts and a hover's thrust on the ground as well: those that
    repeat struts and rotors bit by bit are no witness.
    """

    def __init__(self, params: VehicleParameters) -> None:
        load = CHANGED_SHARE * params.static_load
        self._loads: list[float] = load.tolist()
        self._struts = params.hanging_strut + load / params.spring
        self._strut = np.zeros(len(load))
        self._shown = b""
        """Newest travels of the struts and speeds of the rotors, bit by bit."""

        self._force = 0.0
        self._thrust = 0.0
        self._witnessed_at = -math.inf
        """Time of these witnesses, s."""

        self._time = -math.inf
        self._share = 0.0
        """Share of readings in flight that show load."""

        self.lies = False
        """True while most of them do."""

        self.since = -math.inf
        """Time since when they do, s."""

    def witness(
        self, time: float, strut: Floats, speeds: Floats, force: float, thrust: float
    ) -> None:
        """Take in the travel of the struts, (wheels,), m, at a time, s.

        `speeds`: measured speeds of the rotors, rad/s, or none; `force`: measured specific force
        along the body's z axis; `thrust`: that of the rotors, both m/s².
        """
        shown = strut.tobytes() + speeds.tobytes()
        repeats = shown == self._shown and speeds.size > 0
        self._shown = shown
        if repeats:
            return
        self._witnessed_at = time
        self._strut = strut
        self._force = force
        self._thrust = thrust

    def _flies(self, time: float) -> bool:
        """Return whether the witnesses agree that the vehicle flies."""
        if not 0.0 <= time - self._witnessed_at < FLIGHT_TIMEOUT:
            return False
        carried = self._thrust > CARRIED_SHARE * GRAVITY
        agrees = abs(self._force - self._thrust) < AGREES * GRAVITY
        return carried and agrees and bool((self._strut < self._struts).all())

    def update(self, time: float, load: list[float]) -> bool:
        """Take in loads, N; return whether the cells lie."""
        gap = time - self._time
        self._time = time
        shows = any(abs(each) > limit for each, limit in zip(load, self._loads, strict=True))
        if not shows and self._share == 0.0:
            return self.lies
        if not 0.0 <= gap < STUCK_TIME or not self._flies(time):
            return self.lies

        self._share += -math.expm1(-gap / LYING_TIME) * (float(shows) - self._share)
        if self._share < FORGOTTEN:
            self._share = 0.0
        if self._share > MOST_LYING and not self.lies:
            self.since = time - STUCK_TIME
            self.lies = True
        elif self._share < FEW_LYING:
            self.lies = False
        return self.lies


class WheelContact:
    """Newest loads of the wheels by load cells and by struts, each until it is too old or at fault.

    Load cells that show load in flight are found with the help of `witness`.
    """

    def __init__(self, params: VehicleParameters) -> None:
        self._params = params
        self._watch = LoadWatch(params)
        self._flight = FlightLoads(params)
        self._measured: Floats | None = None
        self._measured_time = -math.inf
        self._joints: JointSamples | None = None
        """Newest samples with finite travel of the struts."""
        self._by_struts: Floats | None = None
        """Loads by these samples; None: not computed yet."""
        self._struts_time = -math.inf

    def sense(self, samples: SensorSamples) -> None:
        """Take the loads and joints among samples."""
        if samples.wheel_loads is not None:
            self._measured = samples.wheel_loads.load[-1]
            self._measured_time = float(samples.wheel_loads.time[-1])
            loads = self._measured.tolist()
            self._watch.update("wheel_loads", self._measured_time, loads)
            self._flight.update(self._measured_time, loads)
        if samples.joints is not None and samples.joints.strut.shape[1] == len(self._params.wheels):
            self._take_struts(samples.joints)

    def _take_struts(self, joints: JointSamples) -> None:
        if all_finite(joints.strut[-1]) and all_finite(joints.strut_rate[-1]):
            self._joints = joints
            self._by_struts = None
            self._struts_time = float(joints.time[-1])
            self._watch.update("encoders", self._struts_time, joints.strut[-1].tolist())

    def witness(self, force: float, thrust: float) -> None:
        """Take in the force that the accelerometer measures and that of the rotors, m/s².

        Both are along the body's z axis, at the time of the newest joints.
        """
        joints = self._joints
        if joints is not None:
            speeds = joints.rotor_rate[-1]
            self._flight.witness(self._struts_time, joints.strut[-1], speeds, force, thrust)

    def measured(self, time: float) -> Floats | None:
        """Return the loads of the load cells, (wheels,), N; None if they are unknown at `time`."""
        is_old = time - self._measured_time > SENSOR_TIMEOUT
        is_faulty = self._watch.is_stuck("wheel_loads") or self._flight.lies
        return None if is_old or is_faulty else self._measured

    def by_struts(self, time: float) -> Floats | None:
        """Return the loads by the struts, (wheels,), N; None if they are unknown at `time`."""
        joints = self._joints
        if joints is None or time - self._struts_time > SENSOR_TIMEOUT:
            return None
        if self._watch.is_stuck("encoders"):
            return None
        if self._by_struts is None:
            strut = joints.strut[-1]
            self._by_struts = loads_of_struts(self._params, strut, joints.strut_rate[-1])
        return self._by_struts

    def loads(self, time: float) -> Floats | None:
        """Return the loads, (wheels,), N, measured or else by the struts; None if unknown."""
        measured = self.measured(time)
        return self.by_struts(time) if measured is None else measured
