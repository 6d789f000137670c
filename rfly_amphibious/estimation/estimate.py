"""Estimate: the vehicle's pose and motion as an estimator gives them to the controllers."""

from __future__ import annotations

from typing import NamedTuple

from rfly_common.arrays import Floats


class Estimate(NamedTuple):
    """Of base_link, the sprung centre of mass. World axes ENU, body axes FLU."""

    time: float
    """s, simulation time"""
    position: Floats
    """(3,) m, world"""
    orientation: Floats
    """(4,) quaternion x y z w, body -> world"""
    velocity: Floats
    """(3,) m/s, world"""
    rates: Floats
    """(3,) rad/s, body"""
    covariance: Floats | None = None
    """(9, 9) of position (m), velocity (m/s) and attitude error (rad, world axes), where it is
    known
    """


class EstimatedMotion(NamedTuple):
    """Of the sprung centre of mass: position and velocity in the world, rotation (3, 3) body ->
    world, rates in body axes.
    """

    position: Floats
    velocity: Floats
    rotation: Floats
    rates: Floats
