# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""RewindingFilter: the filter, and logs to go back to a late reading."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from rfly_autonomy.estimation.error_state import ERRORS
from rfly_autonomy.estimation.filter_kernels import advance
from rfly_autonomy.estimation.filter_records import (
    BOOK,
    IMU,
    IMU_SAMPLE,
    MEASUREMENT,
    SAME_TIME,
    STATE,
    Constants,
    History,
)
from rfly_common.arrays import Floats
from rfly_terrain.height_map.ground import GroundGrid


class RewindingFilter:
    """The filter's state, with logs of the IMU and of the measurements of its last seconds.

    Each row of the IMU's log keeps the filter at its time. A measurement or a change marks the rows
    from its time on, and `advance` carries the filter over them.
    """

    def __init__(self, history_s: float, imu_rate: float) -> None:
        self._kept_rows = max(4, math.ceil(history_s * imu_rate) + 2)
        rows = 2 * self._kept_rows
        self._history = History(
            imu=np.zeros(rows, IMU_SAMPLE),
            x=np.zeros(rows, STATE),
            book=np.zeros(rows, BOOK),
            p=np.zeros((rows, ERRORS, ERRORS)),
            cursor=np.zeros(rows, np.int64),
        )

        self._imu_times = self._history.imu["time"]
        self._log = np.zeros(4 * rows, MEASUREMENT)

        # the filter now
        self.x = np.zeros(1, STATE)
        """State, a record STATE."""
        self.book = np.zeros(1, BOOK)
        """Book, a record BOOK."""
        self.p = np.zeros((ERRORS, ERRORS))
        """Covariance of the errors."""
        self.revision = 0
        """Number of times that the filter was carried on."""
        self.clear()

    def clear(self) -> None:
        """Empty the logs."""
        self._rows = 0
        """Rows of the IMU's log."""
        self._count = 0
        """Rows of the measurements' log."""
        self._dirty = 1
        """First row of the IMU's log that the filter has to go over."""
        self._last_sample = -1
        """Row of the IMU's last sample; later rows stand for samples of a silent IMU."""

    def use(self, constants: Constants, ground: GroundGrid) -> None:
        """Carry the filter on with these constants above this ground."""
        self._constants = constants
        self._ground = ground

    def begin(
        self,
        sample: Sequence[Any],
        first: tuple[Any, Any, Floats],
        waiting: Sequence[tuple[Any, ...]],
    ) -> None:
        """Begin with a sample of the IMU, the filter at its time, and measurements after it.

        `first`: state, book (records, (1,)) and covariance. `waiting`: records MEASUREMENT.
        """
        self.x, self.book, self.p = first
        self._history.imu[0] = sample
        self._keep(0)
        self._history.cursor[0] = 0

        while len(self._log) < len(waiting):
            self._double_log()
        self._log[: len(waiting)] = np.array(waiting, MEASUREMENT)
        self._rows = 1
        self._count = len(waiting)
        self._last_sample = 0
        self._dirty = 1

    # times

    @property
    def begin_time(self) -> float:
        """Time of the first row of the IMU's log, s: the filter can go back to it."""
        return float(self._imu_times[0])

    @property
    def end_time(self) -> float:
        """Time of the last row of the IMU's log, s."""
        return float(self._imu_times[self._rows - 1])

    @property
    def last_row(self) -> Any:
        """Last row of the IMU's log, a record IMU_SAMPLE."""
        return self._history.imu[self._rows - 1]

    @property
    def coasting(self) -> bool:
        """True while the last rows stand for samples of a silent IMU."""
        return self._rows - 1 > self._last_sample

    # measurements

    def add(self, kind: int, time: float, values: Floats) -> bool:
        """Put a measurement after `begin_time` into the log, unless it is there already.

        The log is in the order of times and kinds. Returns whether the measurement is new.
        """
        place = self._place(time, kind)
        log = self._log
        if place < self._count and log["time"][place] == time and log["kind"][place] == kind:
            return False
        if self._count == len(log):
            self._make_room()
            place = self._place(time, kind)
            log = self._log
        if place < self._count:
            log[place + 1 : self._count + 1] = log[place : self._count].copy()
        log[place] = (time, kind, 0.0)
        log["values"][place, : len(values)] = values
        self._count += 1

        if time <= self.end_time + SAME_TIME:
            self._mark(time - SAME_TIME)
        return True

    def _place(self, time: float, kind: int) -> int:
        """Return the first row of the log that is not before a measurement."""
        times = self._log["time"]
        kinds = self._log["kind"]
        place = self._count
        while place and (times[place - 1], kinds[place - 1]) >= (time, kind):
            place -= 1
        return place

    def _mark(self, time: float) -> None:
        """Have the filter go over the rows since a time, s, again."""
        times = self._imu_times[: self._rows]
        self._dirty = min(self._dirty, int(np.searchsorted(times, time)))

    def _make_room(self) -> None:
        """Forget old measurements, or double the log if the IMU is silent and they are needed."""
        self._forget(self._rows - self._kept_rows)
        if self._count == len(self._log):
            self._double_log()

    def _double_log(self) -> None:
        self._log = np.concatenate([self._log, np.zeros_like(self._log)])

    # samples of the IMU

    def add_sample(self, time: float, motion: Floats) -> None:
        """Append force and rates (6,) of the IMU, unless the last row has that time."""
        if self.end_time < time - SAME_TIME:
            self.append(time, motion, IMU)
        self._last_sample = self._rows - 1

    def append(self, time: float, motion: Floats, source: float) -> None:
        """Append force and rates (6,), in body axes, to the IMU's log."""
        imu = self._history.imu
        if self._rows == len(imu):
            self._forget(self._rows - self._kept_rows)
        imu[self._rows] = (time, source, motion[:3], motion[3:])
        self._rows += 1

    def drop_coasted(self, time: float) -> None:
        """Drop the rows without the IMU if a sample of this time, s, was only late."""
        if self.coasting and self._last_sample >= 0 and time > self._imu_times[self._last_sample]:
            self._rows = self._last_sample + 1
            self._dirty = min(self._dirty, self._rows)

    # forget

    def _forget(self, first: int) -> None:
        """Drop the rows of the IMU's log before `first`, and the measurements before that."""
        self.advance()
        if first <= 0:
            return
        left = self._rows - first
        used = int(self._history.cursor[first])
        for array in self._history:
            array[:left] = array[first : self._rows].copy()
        self._history.cursor[:left] -= used

        self._log[: self._count - used] = self._log[used : self._count].copy()
        self._count -= used
        self._rows = left
        self._dirty = left
        self._last_sample = max(self._last_sample - first, -1)

    def forget_past(self) -> None:
        """Make the filter now, changed from outside, the one that it can go back to."""
        last = self._rows - 1
        self._keep(last)
        self._forget(last)

    def forget_motion(self, since: float) -> None:
        """Drop the samples of the IMU after a time, s, as far as the filter can go back."""
        times = self._imu_times[: self._rows]
        self._rows = max(1, int(np.searchsorted(times, since + SAME_TIME)))
        self._last_sample = min(self._last_sample, self._rows - 1)
        self._dirty = min(self._dirty, self._rows - 1)

    def forget_readings(self, kinds: Sequence[int], since: float) -> None:
        """Drop the measurements of some kinds after a time, s, as far as the filter can go back."""
        since = max(since, self.begin_time) + SAME_TIME
        log = self._log[: self._count]
        kept = log[~(np.isin(log["kind"], kinds) & (log["time"] > since))]
        self._count = len(kept)
        self._log[: self._count] = kept
        self._mark(since)

    def _keep(self, row: int) -> None:
        """Keep the filter now as the one at a row of the IMU's log."""
        self._history.x[row] = self.x[0]
        self._history.book[row] = self.book[0]
        self._history.p[row] = self.p

    def advance(self) -> None:
        """Carry the filter over all rows that have come in or changed since."""
        if self._dirty >= self._rows:
            return
        advance(
            self._history,
            self._log[: self._count],
            max(self._dirty, 1),
            self._rows,
            self.x,
            self.book,
            self.p,
            self._constants,
            self._ground,
        )
        self._dirty = self._rows
        self.revision += 1
