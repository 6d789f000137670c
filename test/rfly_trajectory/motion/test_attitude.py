# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Height and attitude over a terrain.

Planes and slopes are worked out by hand, body rates compared with differences of quaternions.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rfly_common.errors import ConfigError
from rfly_common.frames import quat_conjugate, quat_multiply, quat_rotate, quat_to_euler
from rfly_common.physics import GRAVITY
from rfly_terrain.height_map.height_map import HeightMap
from rfly_trajectory.fleet.fleet import Fleet, Vehicle
from rfly_trajectory.motion.speed_profile import SpeedProfile
from rfly_trajectory.paths.shapes import Circle, FigureEight, Line, Polyline

WEST_EAST = Line((-40.0, 3.0), (40.0, 3.0)).path()
SOUTH_NORTH = Line((3.0, -40.0), (3.0, 40.0)).path()


def plane(a, b, c=0.0, cells=20, step=5.0):
    """Return the ground z = a x + b y + c around the origin."""
    axis = (np.arange(cells + 1) - cells / 2) * step
    x, y = np.meshgrid(axis, axis, indexing="ij")
    return HeightMap(
        a * x + b * y + c, origin_x=axis[0], origin_y=axis[0], step_x=step, step_y=step
    )


def hills(seed=1, cells=80, step=10.0):
    """Return rough ground, 800 m on a side, on which every cell is twisted."""
    rng = np.random.default_rng(seed)
    heights = rng.normal(0.0, 3.0, (cells + 1, cells + 1))
    return HeightMap(
        heights,
        origin_x=-step * cells / 2,
        origin_y=-step * cells / 2,
        step_x=step,
        step_y=step,
        name="hills",
    )


def one(path, terrain=None, speed=10.0, **options):
    profile = speed if isinstance(speed, SpeedProfile) else SpeedProfile(speed)
    options = {"at_end": "repeat" if path.closed else "stop"} | options
    return Fleet([Vehicle("v", 7, 3, path, profile, **options)], terrain)


def body_rates_by_difference(fleet, times, h=1e-5):
    """Return (m, n, 3) body rates 2 q⁻¹ dq/dt from q(t-h) and q(t+h)."""
    before, after = (fleet.sample_times(times + d).orientation for d in (-h, h))
    turn = quat_multiply(quat_conjugate(before), after)
    return 2.0 * np.where(turn[..., 3:] < 0, -turn[..., :3], turn[..., :3]) / (2 * h)


class TestGroundVehicle:
    @pytest.mark.parametrize("terrain", [None, plane(0.0, 0.0)], ids=["no terrain", "flat map"])
    def test_level_ground(self, terrain):
        state = one(WEST_EAST, terrain).sample(1.0)
        np.testing.assert_allclose(state.position, [[-30, 3, 0]], atol=1e-12)
        np.testing.assert_allclose(state.orientation, [[0, 0, 0, 1]], atol=1e-15)
        np.testing.assert_allclose(state.velocity, [[10, 0, 0]], atol=1e-6)
        np.testing.assert_allclose(state.angular_velocity, [[0, 0, 0]], atol=1e-9)

    def test_north_is_a_yaw_of_90_degrees(self):
        expected = [[0, 0, math.sqrt(0.5), math.sqrt(0.5)]]
        np.testing.assert_allclose(one(SOUTH_NORTH).sample(1.0).orientation, expected, atol=1e-15)

    def test_uphill_the_nose_goes_up_and_the_speed_over_ground_is_kept(self):
        """The nose goes up uphill, and the speed over ground is kept.

        On a slope of 1:4 along the way, pitch is -atan 0.25 (positive is nose down in FLU), and it
        climbs 2.5 m/s.
        """
        state = one(WEST_EAST, plane(0.25, 0.0, 100.0)).sample(1.0)
        np.testing.assert_allclose(state.position, [[-30, 3, 92.5]], atol=1e-5)
        np.testing.assert_allclose(state.velocity, [[10, 0, 2.5]], atol=1e-5)
        expected = [[0, -math.atan(0.25), 0]]
        np.testing.assert_allclose(quat_to_euler(state.orientation), expected, atol=1e-6)

    def test_ground_that_rises_to_the_left_rolls_to_the_right(self):
        state = one(WEST_EAST, plane(0.0, 0.25)).sample(1.0)
        expected = [[math.atan(0.25), 0, 0]]
        np.testing.assert_allclose(quat_to_euler(state.orientation), expected, atol=1e-6)

    def test_downhill_to_the_north(self):
        """The same ground driven northwards falls to the front, but not to the side."""
        state = one(SOUTH_NORTH, plane(0.0, -0.25)).sample(1.0)
        np.testing.assert_allclose(
            quat_to_euler(state.orientation),
            [[0, math.atan(0.25), math.pi / 2]],
            atol=1e-6,
        )
        np.testing.assert_allclose(state.velocity, [[0, 10, -2.5]], atol=1e-5)

    @settings(deadline=None)
    @given(
        a=st.floats(-1, 1),
        b=st.floats(-1, 1),
        angle=st.floats(-180, 180),
        t=st.floats(0, 100),
    )
    def test_stands_on_the_plane_and_heads_along_its_path(self, a, b, angle, t):
        """The body's z is the plane's normal; its x lies in the plane, above the velocity."""
        state = one(Circle((2.0, 1.0), 20.0, angle).path(), plane(a, b)).sample(t)
        normal = np.array([-a, -b, 1.0]) / math.sqrt(a * a + b * b + 1)
        forward, up = (quat_rotate(state.orientation[0], np.eye(3)[axis]) for axis in (0, 2))
        np.testing.assert_allclose(up, normal, atol=2e-6)
        velocity = state.velocity[0].astype(float)
        expected = velocity / np.linalg.norm(velocity)
        np.testing.assert_allclose(forward, expected, atol=2e-6)

    def test_height_of_the_origin_above_the_ground(self):
        assert one(WEST_EAST, plane(0.1, 0.0), height=0.5).sample(0.0).position[
            0, 2
        ] == pytest.approx(-3.5, abs=1e-6)

    def test_before_its_delay_it_stands_on_the_slope_with_the_heading_of_the_start(
        self,
    ):
        state = one(SOUTH_NORTH, plane(0.0, 0.25), delay=5.0).sample(4.0)
        np.testing.assert_allclose(state.position, [[3, -40, -10]], atol=1e-5)
        assert not state.velocity.any()
        assert not state.angular_velocity.any()
        expected = [[0, -math.atan(0.25), math.pi / 2]]
        np.testing.assert_allclose(quat_to_euler(state.orientation), expected, atol=1e-6)

    def test_drives_backwards_on_the_way_back_with_the_heading_of_the_way_out(self):
        fleet = one(WEST_EAST, plane(0.25, 0.0), at_end="ping_pong")
        out = fleet.sample(4.0)
        back = fleet.sample(12.0)
        np.testing.assert_allclose(back.position, out.position, atol=1e-9)
        np.testing.assert_allclose(back.orientation, out.orientation, atol=1e-12)
        np.testing.assert_allclose(back.velocity, -out.velocity, atol=1e-5)

    def test_off_the_map_the_ground_is_as_high_as_the_edge(self):
        """The ground off the map is as high as the map's edge.

        The map ends at x = 50, where it is 5 m high; beyond it is level along x, and nothing is
        NaN.
        """
        state = one(Line((60.0, 0.0), (90.0, 0.0)).path(), plane(0.1, 0.0)).sample(1.0)
        np.testing.assert_allclose(state.position, [[70, 0, 5]], atol=1e-6)
        np.testing.assert_allclose(state.velocity, [[10, 0, 0]], atol=1e-9)
        np.testing.assert_allclose(state.orientation, [[0, 0, 0, 1]], atol=1e-12)


def smooth_inside_cells(fleet, times, h):
    """Return a mask of times clear of cell borders and of joints, where rates may jump."""
    moved = fleet.sample_times(times)
    terrain = fleet.terrain
    keep = np.ones(moved.arc_length.shape, bool)
    reach = 2 * h * 50.0
    for axis, (origin, step) in enumerate(
        ((terrain.origin_x, terrain.step_x), (terrain.origin_y, terrain.step_y))
    ):
        cell = (moved.position[..., axis] - origin) / step
        keep &= np.abs(cell - np.round(cell)) > reach / abs(step)
    path = fleet.vehicles[0].path
    along = np.mod(moved.arc_length, path.length)
    for joint in [*path.start, path.length]:
        keep &= np.abs(along - joint) > reach
    return keep[:, 0]


PATHS = {
    "line": Line((-300.0, -210.0), (320.0, 170.0)).path(),
    "circle": Circle((10.0, 20.0), 130.0, 33.0, clockwise=True).path(),
    "figure_eight": FigureEight((0.0, 0.0), 600.0, 300.0, 20.0).path(),
    "polyline": Polyline(
        [
            (-300, -200),
            (250, -180),
            (200, 200),
            (-150, 30),
        ],
        40.0,
        closed=True,
    ).path(),
}
PROFILES = {
    "constant": SpeedProfile(12.0),
    "trapezoid": SpeedProfile(15.0, 0.8, 1.1),
    "s_curve": SpeedProfile(15.0, 0.8, 1.1, 0.1),
}


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("kind", ["ground", "fixed_wing", "multirotor"])
def test_velocity_and_body_rates_are_derivatives(kind, path, profile):
    """Velocity is the derivative of position, body rates that of the attitude.

    The ground is rough, the times are within the cells.
    """
    options = {} if kind == "ground" else {"height": 30.0}
    fleet = one(PATHS[path], hills(), PROFILES[profile], kind=kind, at_end="stop", **options)

    # times away from steps of speed and borders of cells
    h = 1e-5
    times = np.random.default_rng(5).uniform(0.5, 100.0, 3000)
    speed_steps = np.array([piece[0] for piece in fleet.vehicles[0].schedule.pieces])
    times = times[np.min(np.abs(times[:, None] - speed_steps), axis=1) > 2 * h]
    times = times[smooth_inside_cells(fleet, times, h)]
    assert times.size > 1500

    moved = fleet.sample_times(times)
    after = fleet.sample_times(times + h)
    before = fleet.sample_times(times - h)

    np.testing.assert_allclose(
        (after.position - before.position) / (2 * h), moved.velocity, atol=2e-6
    )
    np.testing.assert_allclose(
        body_rates_by_difference(fleet, times, h), moved.angular_velocity, atol=2e-6
    )

    assert np.max(np.abs(moved.angular_velocity)) > 1e-3 or (kind, path) == (
        "multirotor",
        "line",
    )


@pytest.mark.parametrize("name", ["polyline", "figure_eight"])
def test_members_of_a_formation_tilt_as_their_own_motion_asks(name):
    """Body rates of members are the derivatives of their attitudes.

    They move next to a clothoid and a curve, under an S-curve.
    """
    path = PATHS[name]
    profile = SpeedProfile(15.0, 0.8, 1.1, 0.1)

    places = [(0.0, 12.0), (-5.0, -9.0)]
    vehicles = [
        Vehicle(
            f"v{i}",
            i + 1,
            3,
            path,
            profile,
            "stop",
            "multirotor",
            height=30.0,
            offset=place,
        )
        for i, place in enumerate(places)
    ]
    fleet = Fleet(vehicles)

    # times away from joints of the path
    h = 1e-5
    times = np.linspace(1.01, 60.0, 400)
    joints = np.min(
        np.abs(np.mod(fleet.sample_times(times).arc_length[..., None], path.length) - path.start),
        axis=-1,
    )
    times = times[(joints > 0.1).all(axis=1)]

    rates = fleet.sample_times(times).angular_velocity
    np.testing.assert_allclose(body_rates_by_difference(fleet, times, h), rates, atol=2e-6)
    assert np.abs(rates[..., 1]).max() > 5e-3


def test_attitude_is_continuous_over_cells():
    """The smooth normal has no steps over cells.

    The attitude hardly turns between two samples 1 mm apart.
    """
    fleet = one(PATHS["circle"], hills(), 10.0)
    q = fleet.sample_times(np.arange(0.0, 10.0, 1e-4)).orientation[:, 0]
    turn = 2.0 * np.arccos(np.minimum(np.abs((q[1:] * q[:-1]).sum(-1)), 1.0))
    assert np.max(turn) < 2e-3


@pytest.mark.parametrize("kind", ["ground", "multirotor", "fixed_wing"])
def test_no_vehicle_is_ever_below_the_ground(kind):
    terrain = hills()
    options = {
        "ground": {},
        "multirotor": {"height": 0.0, "absolute": True},
        "fixed_wing": {"height": 2.0},
    }[kind]
    fleet = one(PATHS["figure_eight"], terrain, kind=kind, **options)
    p = fleet.sample_times(np.linspace(0, 300, 5000)).position[:, 0]
    assert np.all(p[:, 2] >= terrain.altitude(p[:, 0], p[:, 1]))


class TestAircraft:
    CIRCLE = Circle((0.0, 0.0), 100.0).path()

    def test_fixed_wing_banks_as_a_coordinated_turn(self):
        """A fixed wing on a radius of 100 m to the left at 25 m/s banks left.

        tan roll = -v²/(r g); the yaw rate is 0.25 rad/s.
        """
        state = one(self.CIRCLE, speed=25.0, kind="fixed_wing", height=500.0, absolute=True).sample(
            0.0
        )
        roll = -math.atan(6.25 / GRAVITY)
        np.testing.assert_allclose(state.position, [[100, 0, 500]], atol=1e-9)
        expected = [[roll, 0, math.pi / 2]]
        np.testing.assert_allclose(quat_to_euler(state.orientation), expected, atol=1e-12)
        expected = [[0, 0.25 * math.sin(roll), 0.25 * math.cos(roll)]]
        np.testing.assert_allclose(state.angular_velocity, expected, atol=1e-7)

    def test_fixed_wing_pitches_with_the_slope_that_it_follows(self):
        terrain = plane(0.2, 0.0)
        state = one(WEST_EAST, terrain, speed=20.0, kind="fixed_wing", height=50.0).sample(1.0)
        expected = [[0, -math.atan(0.2), 0]]
        np.testing.assert_allclose(quat_to_euler(state.orientation), expected, atol=1e-6)
        assert state.position[0, 2] == pytest.approx(terrain.altitude(-20.0, 3.0) + 50.0)
        np.testing.assert_allclose(state.velocity, [[20, 0, 4]], atol=1e-5)

    def test_no_side_force_in_a_climbing_turn(self):
        """Gravity and centripetal force together have no component along the wings.

        This holds for every climb.
        """
        fleet = one(
            Circle((0.0, 0.0), 30.0).path(),
            plane(0.3, -0.2),
            speed=12.0,
            kind="fixed_wing",
            height=10.0,
        )
        moved = fleet.sample_times(np.linspace(0.0, 15.0, 40))
        left = quat_rotate(moved.orientation[:, 0], np.array([0.0, 1.0, 0.0]))
        inward = -moved.position[:, 0, :2] / 30.0 * 12.0**2 / 30.0
        force = np.column_stack([inward, np.full(40, GRAVITY)])
        np.testing.assert_allclose((left * force).sum(-1), 0.0, atol=1e-6)

    def test_multirotor_leans_into_the_turn_and_its_acceleration(self):
        """The body's z points along acceleration, here 2 m/s² ahead, minus gravity."""
        profile = SpeedProfile(10.0, 2.0)
        state = one(WEST_EAST, speed=profile, kind="multirotor", height=20.0).sample(1.0)

        # nose down
        np.testing.assert_allclose(
            quat_to_euler(state.orientation),
            [[0, math.atan(2 / GRAVITY), 0]],
            atol=1e-12,
        )

        turning = one(self.CIRCLE, speed=20.0, kind="multirotor", height=20.0).sample(0.0)
        up = quat_rotate(turning.orientation[0], np.array([0.0, 0.0, 1.0]))
        thrust = np.array([-4.0, 0.0, GRAVITY])
        expected = thrust / np.linalg.norm(thrust)
        np.testing.assert_allclose(up, expected, atol=1e-12)

    def test_multirotor_stays_level_over_a_slope(self):
        state = one(WEST_EAST, plane(0.3, 0.2), kind="multirotor", height=20.0).sample(1.0)
        np.testing.assert_allclose(state.orientation, [[0, 0, 0, 1]], atol=1e-12)

    def test_an_absolute_altitude_below_the_ground_is_raised_to_it(self):
        """A vehicle at z = 0 is raised to the ground that rises through it at x = 0."""
        fleet = one(WEST_EAST, plane(0.1, 0.0), kind="multirotor", height=0.0, absolute=True)
        moved = fleet.sample_times([2.0, 6.0])
        expected = [[-20, 3, 0], [20, 3, 2]]
        np.testing.assert_allclose(moved.position[:, 0], expected, atol=1e-6)
        np.testing.assert_allclose(moved.velocity[:, 0], [[10, 0, 0], [10, 0, 1]], atol=1e-6)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (
            {"kind": "boat"},
            "kind: 'boat', expected one of ground, multirotor, fixed_wing",
        ),
        ({"height": 10.0, "absolute": True}, "altitude: absolute is for aircraft"),
        ({"height": -1.0}, "altitude: -1.0 m, expected a finite number of at least 0"),
        ({"delay": -1.0}, "delay: -1.0 s"),
        ({"delay": math.nan}, "delay: nan s, expected a finite number"),
        (
            {"kind": "fixed_wing", "at_end": "ping_pong"},
            "at_end: ping_pong drives backwards",
        ),
        ({"at_end": "repeat"}, "at_end: repeat needs a closed path"),
        ({"phase": 81.0}, "phase: 81 m is not on the path"),
    ],
)
def test_vehicles_that_contradict_themselves_are_refused(options, text):
    with pytest.raises(ConfigError, match=text):
        one(WEST_EAST, **options)
