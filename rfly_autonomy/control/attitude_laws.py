# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Attitude laws: how fast the body has to turn towards an attitude. Other packages may bring some.

A law from outside is an entry point of the group `rfly_suite.attitude_laws`.
"""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import Protocol, runtime_checkable

import numpy as np

from rfly_common.arrays import Floats
from rfly_common.errors import ConfigError

GROUP = "rfly_suite.attitude_laws"
"""Group of the entry points."""

GEOMETRIC = "geometric"
"""Name of the law that is used by default."""


@runtime_checkable
class AttitudeLaw(Protocol):
    """Interface of a law, which an entry point makes without arguments."""

    def set_gains(self, frequency: Floats, damping: float) -> None:
        """Use these frequencies of roll, pitch and yaw, (3,), rad/s, and this damping ratio.

        It is called before the first turn, and for new gains in flight.
        """

    def turn(self, wanted: Floats, rotation: Floats, rates: Floats) -> Floats:
        """Return the angular acceleration that the body needs, (3,), body axes, rad/s².

        `wanted`, `rotation`: wanted and present attitude, (3, 3), body -> world. `rates`: present
        body rates less the wanted ones, (3,), rad/s.
        """


class GeometricLaw:
    """Proportional and derivative law on SO(3). Eq. 10.4, after Lee, Leok and McClamroch (2010)."""

    def set_gains(self, frequency: Floats, damping: float) -> None:
        """Use these frequencies, (3,), rad/s, and this damping ratio."""
        self._frequency = frequency
        self._damping = damping

    def turn(self, wanted: Floats, rotation: Floats, rates: Floats) -> Floats:
        """Return the angular acceleration, (3,), body axes, rad/s²."""
        error = wanted.T @ rotation - rotation.T @ wanted
        error_vector = 0.5 * np.array((error[2, 1], error[0, 2], error[1, 0]))
        turn = -(self._frequency**2) * error_vector
        turn -= 2.0 * self._damping * self._frequency * rates
        return np.asarray(turn, np.float64)


def load_attitude_law(name: str) -> AttitudeLaw:
    """Return a new law of this name. Raise ConfigError for one that can't be had."""
    if name == GEOMETRIC:
        return GeometricLaw()
    points = {each.name: each for each in entry_points(group=GROUP)}
    if name not in points:
        raise ConfigError(
            f"attitude_law {name!r}: no installed package has it; known are "
            f"{', '.join((GEOMETRIC, *sorted(points)))}"
        )

    try:
        law = points[name].load()()
    except Exception as error:  # another package's code may raise anything
        raise ConfigError(f"attitude_law {name!r}: {points[name].value}: {error!r}") from error
    if not isinstance(law, AttitudeLaw):
        raise ConfigError(
            f"attitude_law {name!r}: {points[name].value} lacks a method set_gains or turn"
        )
    return law
