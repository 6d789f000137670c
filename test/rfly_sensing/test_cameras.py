# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Cameras: depths worked out by hand, pixels, noise, light and fog; the gimbal."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from rfly_amphibious.sensors.sensor_parameters import SensorParameters
from rfly_collision.shapes.shape import Box
from rfly_sensing.cameras import (
    FOG,
    GROUND_CLASS,
    SKY,
    SKY_CLASS,
    CameraPose,
    ColorCamera,
    DepthCamera,
    Gimbal,
    Pinhole,
    body_color,
    camera_pose,
)
from rfly_sensing.range_sensor_parameters import (
    ColorCameraParameters,
    DepthCameraParameters,
    GimbalParameters,
    ImageParameters,
)
from rfly_sensing.scene_rays import GROUND, NOTHING, SceneBodies, SceneRays
from rfly_terrain import HeightMap
from rfly_terrain.world.weather import Weather

LEVEL = SceneRays(None)
FAR = DepthCameraParameters(min_range=0.0, max_range=1000.0)


def boxes(*places, size=(2.0, 2.0, 2.0), ids=None):
    count = len(places)
    return SceneBodies(
        (Box(size),),
        np.zeros(count, np.int64),
        np.array(places, float),
        np.tile([0.0, 0.0, 0.0, 1.0], (count, 1)),
        np.zeros((count, 3)),
        np.zeros(count),
        np.array(ids or range(1, count + 1)),
    )


def at_height(height, pitch=0.0, rotation=None):
    mount = GimbalParameters(position=(0.0, 0.0, 0.0))
    return camera_pose(
        np.array((0.0, 0.0, height)), np.eye(3) if rotation is None else rotation, mount, pitch
    )


def test_numbers_of_the_camera():
    """Fields of view are the Kinect V2's; the middle lies between the middle pixels."""
    p = SensorParameters.load("scale")
    pinhole = Pinhole(p.depth_camera)
    fx, skew, cx, _, fy, cy, *_ = pinhole.matrix
    assert (pinhole.width, pinhole.height, skew) == (256, 212, 0.0)
    assert (cx, cy) == (127.5, 105.5)
    assert math.degrees(math.atan((255.5 - cx) / fx)) == pytest.approx(35.3)
    assert math.degrees(math.atan((211.5 - cy) / fy)) == pytest.approx(30.0)
    color = Pinhole(p.color_camera)
    assert math.degrees(2 * math.atan(160 / color.focal_x)) == pytest.approx(84.1)
    assert math.degrees(2 * math.atan(90 / color.focal_y)) == pytest.approx(53.8)


@pytest.mark.parametrize("pitch", [0.0, 0.3, -0.1])
def test_depth_of_level_ground(pitch):
    """A pixel y below the middle looks along (x, y, 1): z (y cos θ + sin θ) = height."""
    camera = DepthCamera(FAR, noise=False)
    depth = camera.image(0, at_height(2.0, pitch), LEVEL).depth
    y = (np.arange(212) - 105.5) / camera.pinhole.focal_y
    down = y * math.cos(pitch) + math.sin(pitch)
    with np.errstate(divide="ignore"):
        exact = np.where(down > 0.0, 2.0 / down, np.inf)
    near = exact * np.sqrt(1 + y**2 + (127.5 / camera.pinhole.focal_x) ** 2) < 1000.0
    assert near.sum() > 80
    for column in (0, 127, 255):
        np.testing.assert_allclose(depth[near, column], exact[near], rtol=1e-6)
        assert np.isposinf(depth[~np.isfinite(exact), column]).all()


def test_a_wall_has_one_depth():
    """A wall has one depth z along the axis, not one range.

    A vehicle that looks north sees it, on a map and without one.
    """
    wall = boxes((0.0, 4.0, 2.0), size=(100.0, 2.0, 100.0))
    north = np.array(
        (
            (0.0, -1.0, 0.0),
            (1.0, 0.0, 0.0),
            (0.0, 0.0, 1.0),
        )
    )
    ground = HeightMap(
        np.full((2, 2), -60.0), origin_x=-500, origin_y=-500, step_x=1000, step_y=1000
    )
    camera = DepthCamera(DepthCameraParameters(), noise=False)
    images = camera.image(0, at_height(2.0, rotation=north), SceneRays(ground, wall))
    np.testing.assert_allclose(images.depth, 3.0, rtol=1e-6)
    middle = images.infrared[106, 128]
    corner = images.infrared[0, 0]
    # of the camera's own light ρ cos / r² · 0.5²: cos = 1 / 1.356 and r = 3 · 1.356 at the corner;
    # the sun is behind it
    assert middle == pytest.approx(65535 * 0.6 * 0.25 / 9, rel=0.001)

    x = math.tan(math.radians(35.3)) * 255 / 256
    y = math.tan(math.radians(30.0)) * 211 / 212
    expected = (1 + x * x + y * y) ** -1.5
    assert corner / middle == pytest.approx(expected, rel=0.002)


def test_left_is_left_and_up_is_up():
    """A box to the left and above shows up in the upper left: x is right, y down in the image."""
    box = boxes((10.0, 3.0, 5.0))  # 3 m to the left, 2 m above the camera, its near face 9 m away
    camera = DepthCamera(FAR, noise=False)
    depth = camera.image(0, at_height(3.0), SceneRays(None, box)).depth
    seen = np.argwhere(np.abs(depth - 9.0) < 1e-5)
    fx = camera.pinhole.focal_x
    fy = camera.pinhole.focal_y
    # the near face: y 2 … 4 to the left, z 1 … 3 above
    expected = math.ceil(127.5 - fx * 4 / 9)
    assert seen[:, 1].min() == expected
    expected = math.floor(127.5 - fx * 2 / 9)
    assert seen[:, 1].max() == expected
    expected = math.ceil(105.5 - fy * 3 / 9)
    assert seen[:, 0].min() == expected
    expected = math.floor(105.5 - fy * 1 / 9)
    assert seen[:, 0].max() == expected


def test_limits_and_noise_of_depth():
    """Depths are 0.5 … 4.5 m, σ = 0.002 + 0.002 z², and the same for a seed and a number."""
    parameters = SensorParameters.load("full").depth_camera
    camera = DepthCamera(parameters, seed=3)
    for near_face, sigma in ((1.0, 0.004), (4.0, 0.034)):
        scene = SceneRays(None, boxes((near_face + 1.0, 0.0, 20.0), size=(2.0, 40.0, 40.0)))
        images = np.stack([camera.image(k, at_height(20.0), scene).depth for k in range(2)])
        assert images.std() == pytest.approx(sigma, rel=0.02)
        assert images.mean() == pytest.approx(near_face, abs=4 * sigma / 300)
        assert np.array_equal(
            DepthCamera(parameters, seed=3).image(1, at_height(20.0), scene).depth, images[1]
        )
        assert not np.array_equal(images[0], images[1])
    far = SceneRays(None, boxes((6.0, 0.0, 20.0), size=(2.0, 40.0, 40.0)))

    assert np.isposinf(camera.image(0, at_height(20.0), far).depth).all()

    near = SceneRays(None, boxes((1.4, 0.0, 20.0), size=(2.0, 40.0, 40.0)))
    assert np.isneginf(camera.image(0, at_height(20.0), near).depth).all()

    ground = camera.image(0, at_height(1.0), LEVEL).depth
    exact = DepthCamera(parameters, noise=False).image(0, at_height(1.0), LEVEL).depth
    assert np.isposinf(ground[np.isposinf(exact)]).all()  # nothing from hundreds of metres away

    fog = camera.image(0, at_height(20.0), scene, Weather(visibility=3.0))
    assert np.isposinf(fog.depth).all()  # 4 m through fog in which one sees 3 m


def test_colours():
    """The sky is above, and each vehicle has the colour of its id in any order.

    The noise is 2 of 255.
    """
    camera = ColorCamera(ColorCameraParameters(), noise=False)
    scene = SceneRays(
        None,
        replace(boxes((10.0, 3.0, 2.0), (10.0, -3.0, 2.0), ids=[605, 602]), class_id=np.full(2, 5)),
    )
    images = camera.image(0, at_height(2.0), scene)
    image = images.color

    assert image.shape == (180, 320, 3)
    expected = np.rint(255 * SKY).tolist()
    assert image[0, 160].tolist() == expected
    assert (images.semantic[0, 160], images.instance[0, 160]) == (SKY_CLASS, NOTHING)
    assert (images.semantic[179, 160], images.instance[179, 160]) == (GROUND_CLASS, GROUND)

    fx = camera.pinhole.focal_x
    fy = camera.pinhole.focal_y
    for column, number in ((160 - 62, 605), (160 + 62, 602)):
        # its face to the west is lit at 60° from the sun, and has a grain
        light = 0.3 + 0.7 * 0.5
        face = image[84:97, column - 5 : column + 6].reshape(-1, 3) / 255
        assert face.mean(axis=0) == pytest.approx(light * np.array(body_color(number)), rel=0.15)
        assert 0.01 < (face / face.mean(axis=0)).std() < 0.3
        # 2 m x 2 m, 9 m away, seen a little from the side
        assert (images.instance == number).sum() == pytest.approx(
            fx * fy * 4 / 81 * (1 + 2 / 11), rel=0.1
        )
    assert set(images.semantic[images.instance > 0]) == {5}

    noisy = ColorCamera(ColorCameraParameters(), seed=1).image(0, at_height(2.0), scene).color
    assert (noisy.astype(float) - image).std() == pytest.approx(2.0, rel=0.05)


def test_light_and_fog():
    """Night darkens in proportion; fog leaves exp(-α r) of a surface and adds its own grey."""
    scene = SceneRays(None, boxes((31.0, 0.0, 20.0), size=(2.0, 400.0, 400.0)))
    camera = ColorCamera(ColorCameraParameters(), noise=False)
    day, dusk, fog, rain = (
        camera.image(0, at_height(20.0), scene, weather).color[90, 160].astype(float)
        for weather in (
            Weather(),
            Weather(light=0.4),
            Weather(visibility=60.0),
            Weather(rain_rate=50.0),
        )
    )
    np.testing.assert_allclose(dusk, 0.4 * day, atol=0.8)
    left = math.exp(-math.log(20.0) * 30.0 / 60.0)
    expected = left * day + (1 - left) * 255 * FOG
    np.testing.assert_allclose(fog, expected, atol=1.5)
    left = 10 ** (-0.1 * 1.076 * 50**0.67 * 0.030)  # dB of 30 m
    expected = left * day + (1 - left) * 255 * FOG
    np.testing.assert_allclose(rain, expected, atol=1.0)
    eye = DepthCamera(FAR, noise=False)
    by_day, by_night = (
        eye.image(0, at_height(20.0), scene, Weather(light)).infrared[106, 128] for light in (1, 0)
    )
    sun = 65535 * 0.6 * 0.25 * 0.5
    own = 65535 * 0.6 * 0.25 / 900

    assert by_day == pytest.approx(own + sun, abs=2)
    assert by_night == pytest.approx(own, abs=2)


DOWN = math.pi / 2


def test_the_grain_stays_on_the_ground():
    """Seen from 4 m above level ground, 20 pixels further on, the picture shifts by 20 rows."""
    camera = ColorCamera(ColorCameraParameters(), noise=False)
    first = camera.image(0, at_height(4.0, DOWN), LEVEL).color.astype(int)
    ahead = CameraPose(
        np.array((20 * 4.0 / camera.pinhole.focal_y, 0, 4.0)), at_height(4.0, DOWN).rotation
    )
    second = camera.image(0, ahead, LEVEL).color.astype(int)
    apart = np.abs(second[20:] - first[:-20])
    assert apart.max() <= 3  # what is seen from farther away is smoothed more
    assert apart.mean() < 0.3
    assert first.mean(axis=2).std() > 10.0


def test_the_sun_casts_shadows():
    """A cube of 2 m has a shadow to the south-east, lit by the sky alone, but none in clouds."""
    camera = ColorCamera(
        ColorCameraParameters(width=200, height=200, horizontal_fov=1.2, vertical_fov=1.2),
        noise=False,
    )
    pose = at_height(12.0, DOWN)
    cube = SceneRays(None, boxes((0.0, 0.0, 1.0)))
    bare, seen = (
        camera.image(0, pose, scene).color.astype(float).sum(axis=2) for scene in (LEVEL, cube)
    )
    shaded = seen / bare < 0.6

    def at(x, y):  # rows go back from the front, columns from left to right
        return round(99.5 - x / 12 * camera.pinhole.focal_y), round(
            99.5 - y / 12 * camera.pinhole.focal_x
        )

    along = math.sqrt(0.5) * 2  # of the shadow of its top, x and -y
    for x, y, dark in (
        (1 + along - 0.1, -1 - along + 0.1, True),  # the farthest corner
        (1 + along + 0.1, -1 - along - 0.1, False),
        (1.5, 0.0, True),
        (1.5, 0.6, False),  # beyond the edge from (1, 1) to the shadow of the corner above it
        (-1.5, 0.0, False),
        (0.0, 1.5, False),
    ):
        assert shaded[at(x, y)] == dark, (x, y)
    assert seen[at(1.5, 0.0)] / bare[at(1.5, 0.0)] == pytest.approx(
        0.3 / (0.3 + 0.7 * math.sqrt(0.5)), abs=0.02
    )

    overcast = Weather(cloud_cover=1.0)
    bare, seen = (
        camera.image(0, pose, scene, overcast).color.astype(float).sum(axis=2)
        for scene in (LEVEL, cube)
    )
    assert seen[at(1.5, 0.0)] == bare[at(1.5, 0.0)] > 0


def test_the_gimbal_lags():
    gimbal = Gimbal(GimbalParameters(lag=0.1, min_pitch=-0.5, max_pitch=1.2))
    gimbal.look(0.5)
    for _ in range(25):
        gimbal.advance(0.004)
    expected = 0.5 * (1 - math.exp(-1))
    assert gimbal.pitch == pytest.approx(expected, rel=1e-12)
    pitch, rate = gimbal.after(0.1)  # nothing moves by asking
    assert (pitch, gimbal.pitch) == pytest.approx((0.5 * (1 - math.exp(-2)), expected))
    assert rate == pytest.approx(0.5 * math.exp(-2) / 0.1)

    gimbal.look(9.0)
    assert gimbal.advance(10.0) == pytest.approx(1.2)

    with pytest.raises(ValueError, match="pitch of the gimbal: nan rad"):
        gimbal.look(math.nan)
    # pitched down by 90° the camera sees what is below: level ground at one depth
    pose = camera_pose(
        np.array((0.0, 0.0, 5.0)),
        np.eye(3),
        GimbalParameters(position=(1.0, 0.0, -1.0)),
        math.pi / 2,
    )
    assert isinstance(pose, CameraPose)

    np.testing.assert_allclose(
        DepthCamera(FAR, noise=False).image(0, pose, LEVEL).depth, 4.0, rtol=1e-6
    )


def test_sizes_are_parameters():
    tiny = ImageParameters(width=4, height=2, horizontal_fov=math.pi / 2, vertical_fov=math.pi / 2)
    expected = (2, 0, 1.5, 0, 1, 0.5, 0, 0, 1)
    assert Pinhole(tiny).matrix == pytest.approx(expected)
