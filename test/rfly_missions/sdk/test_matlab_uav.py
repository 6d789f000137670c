# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

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
    # left, straight, left: three quarters of a circle, two radii, and three quarters more
    radius = 100 / (9.8 * math.tan(0.5))
    lsl = next(path for path in paths if path.MotionTypes == ("L", "S", "L", "N"))
    assert lsl.length == pytest.approx(math.hypot(radius * (3 * math.pi + 2), 20))
    assert matlab_uav.interpolate(path)[-1, :3] == pytest.approx([0, 0, 20], abs=1e-9)
    with pytest.raises(ValueError, match="'optimal' or 'all'"):
        matlab_uav.connect(connection, [0, 0, 0, 0], [0, 0, 20, 0], "all")


def test_several_poses_are_connected_at_once():
    connection = matlab_uav.uavDubinsConnection()
    poses = [[0, 0, 0, 0], [100, 0, -10, 0], [100, 100, 0, math.pi]]
    paths, costs = matlab_uav.connect(connection, poses[:-1], poses[1:])
    assert costs == [path.length for path in paths]
    assert costs[0] == pytest.approx(math.hypot(100, 10))
    from_one, _ = matlab_uav.connect(connection, poses[0], poses[1:])
    assert [path.goal_pose.tolist() for path in from_one] == poses[1:]


def test_a_path_is_drawn_with_up_upwards():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    path, _ = matlab_uav.connect(matlab_uav.uavDubinsConnection(), [0, 0, 0, 0], [90, 0, -20, 0])
    axes = matlab_uav.show(path)
    north, east, up = axes.lines[0].get_data_3d()
    assert (north[-1], up[-1]) == (pytest.approx(90), pytest.approx(20))
    assert max(map(abs, east)) < 1e-9
    pyplot.close(axes.figure)
