"""MATLAB's names and call forms of UAV Toolbox."""

from __future__ import annotations

import math

import pytest

from rfly_missions import PathManager, matlab_uav


def test_every_name_is_there():
    namespace = {}
    exec("from rfly_missions.sdk.matlab_uav import *", namespace)
    assert set(matlab_uav.__all__) <= namespace.keys()
    assert matlab_uav.uavPathManager is PathManager


def test_matlabs_example_of_a_multirotor():
    model = matlab_uav.multirotor()
    s = matlab_uav.state(model)
    s[0:3] = [3, 2, 1]
    u = matlab_uav.control(model)
    u.Roll = math.pi / 12
    u.Thrust = 1
    e = matlab_uav.environment(model)
    rate = matlab_uav.derivative(model, s, u, e)
    assert rate[5] == 9.81
    assert rate[9] == pytest.approx(3402.97 * math.pi / 12)
    assert rate[12] == pytest.approx(3900)


def test_matlabs_example_of_a_connection():
    """Its reference page prints R L R N and 138.373157."""
    connection = matlab_uav.uavDubinsConnection()
    path, cost = matlab_uav.connect(connection, [0, 0, 0, 0], [0, 0, 20, math.pi])
    assert path.MotionTypes == ("R", "L", "R", "N")
    assert cost == pytest.approx(138.373157, abs=5e-7)
    paths, costs = matlab_uav.connect(
        connection, [0, 0, 0, 0], [0, 0, 20, math.pi], "PathSegments", "all"
    )
    assert len(paths) == len(costs) == 28
    assert matlab_uav.interpolate(path)[-1, :3] == pytest.approx([0, 0, 20], abs=1e-9)
    with pytest.raises(ValueError, match="'optimal' or 'all'"):
        matlab_uav.connect(connection, [0, 0, 0, 0], [0, 0, 20, 0], "all")
