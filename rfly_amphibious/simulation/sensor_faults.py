# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Faults of sensors, applied to the samples of one tick after another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from rfly_amphibious.sensors import samples
from rfly_amphibious.sensors.samples import SensorSamples
from rfly_amphibious.sensors.sensor_suite import SensorSuite
from rfly_amphibious.simulation.faults import QUANTITIES, Fault, FaultKind
from rfly_common.arrays import Bools, Floats
from rfly_common.frames import enu_to_ned, ned_to_enu
from rfly_common.geodesy import geodetic_to_ned, ned_to_geodetic
from rfly_sensing.random_generators import sensor_generator

_KINDS_OF_SAMPLES: Mapping[str, tuple[str, ...]] = {
    **{sensor: (sensor,) for sensor in QUANTITIES},
    "encoders": ("joints", "wheel_odometry"),
}
"""Kinds of samples of each sensor."""

_KINDS = tuple(kind for kinds in _KINDS_OF_SAMPLES.values() for kind in kinds)


class SensorFaults:
    """Filter of a suite's samples by its sensors' faults.

    Faults act in their order. Noise and losses depend on the seed and the time of the sample alone,
    so that other sensors, and the same one after the fault, read the same numbers as without it.
    """

    def __init__(self, suite: SensorSuite, seed: int | Sequence[int]) -> None:
        self._origin = suite.geo_origin
        self._step = suite.step
        self._seed = seed
        sensors = suite.parameters.sensors()
        self._periods = {name: 1.0 / sensor.rate for name, sensor in sensors.items()}
        self.reset()

    def reset(self) -> None:
        """Forget all earlier samples."""
        self._last: dict[str, Any] = {}
        """Last samples that were delivered, by kind."""
        self._waiting: dict[tuple[int, str], list[tuple[float, Any]]] = {}
        """Delayed samples by fault and kind, each with the time of its delivery, s."""

    def apply(self, sensed: SensorSamples, faults: Sequence[Fault], now: float) -> SensorSamples:
        """Return what the sensors deliver at `now` (s), under the faults that act then."""
        if not faults:
            self._waiting.clear()
            for kind in _KINDS:
                readings = getattr(sensed, kind)
                if readings is not None:
                    self._last[kind] = readings
            return sensed

        acting = set(map(id, faults))
        self._waiting = {key: held for key, held in self._waiting.items() if key[0] in acting}
        changes: dict[str, Any] = {}
        for sensor, kinds in _KINDS_OF_SAMPLES.items():
            own = [fault for fault in faults if fault.part == sensor]
            is_stuck = any(fault.kind is FaultKind.STUCK for fault in own)
            for kind in kinds:
                readings = getattr(sensed, kind)
                for fault in own:
                    readings = self._through(fault, kind, readings, now)
                    changes[kind] = readings
                if readings is not None and not is_stuck:
                    self._last[kind] = readings
        return replace(sensed, **changes) if changes else sensed

    def _through(self, fault: Fault, kind: str, readings: Any, now: float) -> Any:
        """Return what a fault makes of samples of one kind, or None if none is left."""
        if fault.kind is FaultKind.DELAYED:
            return self._delayed((id(fault), kind), readings, fault.value[0], now)
        if readings is None or fault.kind is FaultKind.OFF:
            return None
        if fault.kind is FaultKind.STUCK:
            return self._repeated(kind, readings)
        if fault.kind is FaultKind.SLOW:
            return _kept(readings, self._on_time(fault, readings.time))
        if fault.kind is FaultKind.INTERMITTENT:
            return _kept(readings, self._drawn(fault, readings.time, 1)[:, 0] >= fault.value[0])
        return self._changed(fault, readings)

    def _delayed(self, key: tuple[int, str], readings: Any, delay: float, now: float) -> Any:
        """Return the samples that a delay (s) lets through now."""
        waiting = self._waiting.setdefault(key, [])
        if readings is not None:
            waiting.append((now + delay, readings))
        due = [held for time, held in waiting if time <= now + 0.5 * self._step]
        if not due:
            return None
        del waiting[: len(due)]
        return type(due[0])(*(np.concatenate(parts) for parts in zip(*due, strict=True)))

    def _repeated(self, kind: str, readings: Any) -> Any:
        """Return the last reading at the times of new ones; None if there was none."""
        last = self._last.get(kind)
        if last is None:
            return None
        count = len(readings.time)
        _, *fields = last
        return type(last)(readings.time, *(np.repeat(field[-1:], count, 0) for field in fields))

    def _on_time(self, fault: Fault, time: Floats) -> Bools:
        """Return which samples a slow sensor takes: the first after each of its own periods."""
        rate = fault.value[0]
        before = time - self._periods[fault.part]
        later: Bools = np.floor(time * rate + 1e-6) > np.floor(before * rate + 1e-6)
        return later

    def _drawn(self, fault: Fault, time: Floats, size: int) -> Floats:
        """Return numbers (k, size): uniform for losses, normal for noise."""
        name = f"{fault.part} {fault.kind.value} {fault.quantity}"
        drawn = []
        for step in np.rint(time / self._step).astype(int).tolist():
            generator = sensor_generator(self._seed, name, step)
            if fault.kind is FaultKind.NOISY:
                drawn.append(generator.standard_normal(size))
            else:
                drawn.append(generator.random(size))
        return np.array(drawn).reshape(-1, size)

    def _changed(self, fault: Fault, readings: Any) -> Any:
        """Return samples with one quantity that is biased, noisy or wrong."""
        if isinstance(readings, samples.GpsSamples) and fault.reading == "position":
            ned = geodetic_to_ned(readings.geodetic, self._origin)
            place = ned_to_enu(ned).astype(np.float64)
            moved = self._new_values(fault, place, readings.time)
            return readings._replace(geodetic=ned_to_geodetic(enu_to_ned(moved), self._origin))
        if fault.reading not in readings._fields:
            return readings
        values = self._new_values(fault, getattr(readings, fault.reading), readings.time)
        return readings._replace(**{fault.reading: values})

    def _new_values(self, fault: Fault, values: Floats, time: Floats) -> Floats:
        """Return the readings (k, …) of a quantity under a fault."""
        value = np.array(fault.value) if len(fault.value) > 1 else fault.value[0]
        if fault.kind is FaultKind.WRONG:
            return np.zeros_like(values) + value
        if fault.kind is FaultKind.BIASED:
            return values + value
        size = values[0].size
        noise = self._drawn(fault, time, size) * value
        return values + noise.reshape(values.shape)


def _kept(readings: Any, keep: Bools) -> Any:
    """Return the samples of a mask (k,); None if there are none."""
    if not keep.any():
        return None
    return type(readings)(*(field[keep] for field in readings))
