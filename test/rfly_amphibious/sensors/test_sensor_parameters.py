# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Sensor files: the shipped sets hold the defaults of docs/model, section 11; errors of wrong
files.
"""

from __future__ import annotations

import math
import re
from importlib.resources import files

import numpy as np
import pytest

from rfly_amphibious import AmphibiousModel, SensorParameters, SensorSuite, VehicleParameters
from rfly_amphibious.sensors.sensor_parameters import Sensor, shipped_sensor_sets
from rfly_amphibious.vehicle.parameters import shipped_parameter_sets
from rfly_autonomy.estimation.estimator import StateEstimator
from rfly_autonomy.estimation.estimator_parameters import EstimatorParameters
from rfly_common.errors import ConfigError
from rfly_sensing.range_sensor_parameters import LidarParameters

SCALE = (files("rfly_amphibious") / "data" / "sensors" / "scale.yaml").read_text(encoding="utf-8")


LAYOUT = r"  beams: 32\n  lowest_beam_deg: -30.67\n  highest_beam_deg: 10.67\n"


def changed(pattern, replacement):
    text, count = re.subn(pattern, replacement, SCALE, count=1)
    assert count == 1
    return text


def refusal(text):
    with pytest.raises(ConfigError) as error:
        SensorParameters.parse(text.encode(), "mine.yaml")
    return str(error.value)


def test_each_vehicle_has_its_sensors():
    assert shipped_sensor_sets() == sorted([*shipped_parameter_sets(), "kinect_v2", "scale_rtk"])


@pytest.mark.parametrize("name", ["full", "scale", "scale_quad", "scale_six"])
def test_defaults_of_the_description(name):
    """The defaults are the table of docs/model, section 11, in SI units."""
    p = SensorParameters.load(name)
    rates = {
        "imu": 250,
        "gps": 10,
        "magnetometer": 50,
        "barometer": 25,
        "encoders": 100,
        "height": 50,
    }
    rates |= {"wheel_loads": 100, "wind": 10, "ground_truth": 100}

    assert {key: sensor.rate for key, sensor in p.sensors().items()} == rates

    noise = p.imu.noise
    assert np.asarray(noise.white_density)[[0, 3]].tolist() == [4e-3, 3.4e-4]
    assert np.asarray(noise.walk_density)[[0, 3]].tolist() == [6e-3, 3.9e-5]
    assert np.asarray(noise.high)[[0, 3]] == pytest.approx([18 * 9.80665, 20.0])
    assert (p.gps.latency, p.encoders.wheel_counts) == (0.1, 2048)
    assert np.asarray(p.gps.noise.white_sigma).tolist() == [0.3, 0.3, 0.6, 0.1, 0.1, 0.1]
    assert np.asarray(p.gps.noise.markov_sigma).tolist() == [1.5, 1.5, 3.0, 0.0, 0.0, 0.0]
    assert np.asarray(p.magnetometer.noise.white_sigma) == pytest.approx(0.4e-6)
    assert np.asarray(p.magnetometer.noise.turn_on_bias) == pytest.approx(1e-6)
    assert p.magnetometer.earth_field == pytest.approx((0.0, 21.5e-6, -42.5e-6))
    assert np.asarray(p.barometer.noise.walk_density)[0] * math.sqrt(3600.0) == pytest.approx(2.0)
    assert float(p.height.noise.white_sigma[0]) == 0.02


def test_noise_of_loads_struts_and_rotor_speeds_is_read_and_none_by_default():
    loads = changed(r"wheel_loads:\n", "wheel_loads:\n  noise_n: 2.5\n")
    assert SensorParameters.parse(loads.encode(), "mine.yaml").wheel_loads.load_noise == 2.5
    keys = "  strut_noise_m: 0.001\n  strut_rate_noise_mps: 0.02\n  rotor_noise_radps: 0.5\n"
    encoders = changed(r"encoders:.*\n", f"encoders:\n{keys}")
    read = SensorParameters.parse(encoders.encode(), "mine.yaml").encoders
    assert (read.strut_noise, read.strut_rate_noise, read.rotor_noise) == (0.001, 0.02, 0.5)

    shipped = SensorParameters.load("scale")
    assert shipped.wheel_loads.load_noise == 0.0
    assert (shipped.encoders.strut_noise, shipped.encoders.rotor_noise) == (0.0, 0.0)
    wrong = changed(r"wheel_loads:\n", "wheel_loads:\n  noise_n: -1\n")
    assert "wheel_loads.noise_n: -1" in refusal(wrong)


def test_the_earths_field_may_be_left_to_the_place():
    """Simulated sensors and estimator both have Zurich's 3.7° of declination."""
    p = SensorParameters.parse(changed(r"  earth_field_ut: .*\n", "").encode(), "mine.yaml")
    assert p.magnetometer.earth_field is None
    vehicle = VehicleParameters.load("scale")
    place = (47.4, 8.5, 488.0)
    for user in (
        SensorSuite(AmphibiousModel(vehicle), p, geo_origin=place).parameters,
        StateEstimator(EstimatorParameters.load("scale"), p, vehicle, place).sensors,
    ):
        east, north, _ = user.magnetometer.earth_field
        assert math.degrees(math.atan2(east, north)) == pytest.approx(3.73, abs=0.2)


@pytest.mark.parametrize("name", ["full", "scale", "scale_quad", "scale_six"])
def test_defaults_of_cameras_and_lidars(name):
    """The defaults are docs/model's, section 11: HDL-32E, Kinect V2, a gimbal of 0.1 s.

    None of these sensors is a SensorSuite's.
    """
    p = SensorParameters.load(name)
    expected = [-30.67, -30.67 + 41.34 / 31, 10.67]
    assert np.degrees(p.lidar.elevations[[0, 1, 31]]) == pytest.approx(expected)
    assert (
        p.lidar.rate,
        len(p.lidar.azimuths),
        p.lidar.min_range,
        p.lidar.max_range,
    ) == (
        10,
        1800,
        1,
        70,
    )
    assert (p.lidar.noise, p.lidar.dropout) == (0.02, 0.001)
    assert p.scan.ring(p.lidar) == 23

    depth = p.depth_camera
    color = p.color_camera
    assert (depth.width, depth.height, depth.rate, depth.min_range, depth.max_range) == (
        256,
        212,
        5,
        0.5,
        4.5,
    )
    assert (depth.noise, depth.noise_square, color.noise) == (0.002, 0.002, 2.0)
    assert (color.width, color.height, color.rate) == (320, 180, 5)

    fields = (depth.horizontal_fov, depth.vertical_fov, color.horizontal_fov, color.vertical_fov)
    assert np.degrees(fields) == pytest.approx([70.6, 60.0, 84.1, 53.8])
    assert p.gimbal.lag == 0.1
    assert not {"lidar", "scan", "depth_camera", "color_camera", "gimbal"} & set(p.sensors())


def test_the_set_of_a_kinect_v2_has_its_sizes_and_rates():
    """The colour pixels are square: 960 / tan 42.05° and 540 / tan 26.9° are both 1064.5 pixels.

    Depth: 256 / tan 35.3° and 212 / tan 30°.
    """
    sensors = SensorParameters.load("kinect_v2")
    assert sensors.depth_camera.rate == sensors.color_camera.rate == 30.0
    depth = sensors.depth_camera
    color = sensors.color_camera
    assert (depth.width, depth.height, color.width, color.height) == (512, 424, 1920, 1080)

    def focal_lengths(camera):
        return (
            camera.width / 2.0 / math.tan(camera.horizontal_fov / 2.0),
            camera.height / 2.0 / math.tan(camera.vertical_fov / 2.0),
        )

    assert focal_lengths(depth) == pytest.approx((361.6, 367.2), abs=0.1)
    assert focal_lengths(color) == pytest.approx((1064.5, 1064.5), abs=0.3)


def test_rings_as_the_maker_states_them():
    lidar = SensorParameters.parse(
        changed(LAYOUT, "  beam_elevations_deg: [-25, -1.5, 0, 15]\n").encode(), "m"
    ).lidar
    assert (lidar.beams, np.degrees(lidar.elevations)) == (
        4,
        pytest.approx([-25.0, -1.5, 0.0, 15.0]),
    )
    assert (lidar.columns, lidar.max_range) == (1800, 70.0)
    with pytest.raises(ConfigError, match=r"beams: 32, but beam_elevations has 2 rings"):
        LidarParameters(beam_elevations=(0.0, 0.1))


LIVOX = """version: 1
lidar:
  pattern: mid360
  rate_hz: 10
  position_m: [0.0, 0.0, 0.25]
  noise_m: 0.02
  dropout: 0.0
  min_range_m: 0.1
  max_range_m: 40.0
"""


def test_a_livox_has_its_own_beams():
    lidar = SensorParameters.parse(LIVOX.encode(), "m").lidar
    assert (lidar.beams, lidar.columns, lidar.max_range) == (4, 5000, 40.0)
    for line, told in (
        ("  beams: 4\n", "mine.yaml:10: lidar.beams: expected none: mid360 has its own beams"),
        ("scan: {elevation_deg: 0}\n", "mine.yaml:10: scan: expected none: mid360 has no ring"),
    ):
        assert told in refusal(LIVOX + line)
    assert "columns_per_turn is missing" in refusal(LIVOX.replace("mid360", "rings"))


def test_scan_needs_a_lidar():
    assert (
        refusal("version: 1\nscan: {elevation_deg: 0}\n")
        == "mine.yaml:2: scan: a ring of the lidar, which is not there"
    )


def test_a_file_of_ones_own(tmp_path):
    (tmp_path / "mine.yaml").write_text("version: 1\nwind: {rate_hz: 20}\n")
    p = SensorParameters.load(tmp_path / "mine.yaml")
    assert (p.name, p.wind.rate, p.imu, p.gps) == ("mine", 20, None, None)
    assert p.replace(wind=None).sensors() == {}
    with pytest.raises(
        ConfigError, match=r"no shipped set of this name \(full, kinect_v2, scale, scale_quad"
    ):
        SensorParameters.load(tmp_path / "none.yaml")


@pytest.mark.parametrize(
    ("pattern", "replacement", "told"),
    [
        (
            "latency_s: 0.1",
            "latency_s: soon",
            r"mine.yaml:24: gps.latency_s: 'soon', expected a number",
        ),
        (
            "latency_s: 0.1",
            "latency_s: 0.1\n  latncy_s: 0.1",
            r"mine.yaml:25: gps.latncy_s: unknown key; did you mean latency_s",
        ),
        ("  latency_s: 0.1\n", "", r"mine.yaml:22: gps: the key latency_s is missing"),
        ("noise_pa: 5.0", "noise_pa: -5.0", r"barometer.noise_pa: -5.0"),
        (
            "wheel_counts_per_turn: 2048",
            "wheel_counts_per_turn: 2.5",
            r"encoders.wheel_counts_per_turn: 2.5",
        ),
        (
            r"drift_rad: \[0.009, 0.009, 0.017\]",
            "drift_rad: [0.1]",
            r"imu.orientation.drift_rad: 1 elements, allowed: 3",
        ),
        (
            "min_range_m: 0.05",
            "min_range_m: 200",
            r"mine.yaml:5\d: height.min_range_m: 200, expected less than .* 100.0",
        ),
        ("version: 1", "version: 7", r"mine.yaml:2: version: 7"),
        (
            "max_range_m: 70.0",
            "max_range_m: 0.5",
            r"lidar.min_range_m: 1.0, expected less than max_range_m, 0.5",
        ),
        (
            "max_pitch_deg: 90.0",
            "max_pitch_deg: -90.0",
            r"gimbal.min_pitch_deg: -30.0, expected less than max_pitch_deg",
        ),
        ("columns_per_turn: 1800", "columns_per_turn: 0", r"lidar.columns_per_turn: 0"),
        (
            "  beams: 32\n",
            "",
            r"mine.yaml:59: lidar: beams is missing: give beams, .* or beam_elevations_deg",
        ),
        (
            "  beams: 32\n",
            "  beams: 32\n  beam_elevations_deg: [0, 1]\n",
            r"mine.yaml:62: lidar.beams: 32, "
            r"expected none with beam_elevations_deg, which gives all rings",
        ),
        (
            LAYOUT,
            "  beam_elevations_deg: [-25, 0, 0.0]\n",
            r"mine.yaml:62: lidar.beam_elevations_deg\[2\]: 0.0, "
            r"expected more than the one before, 0",
        ),
        (
            LAYOUT,
            "  beam_elevations_deg: [91]\n",
            r"mine.yaml:62: lidar.beam_elevations_deg\[0\]: 91",
        ),
        (
            LAYOUT,
            "  beam_elevations_deg: []\n",
            r"mine.yaml:62: lidar.beam_elevations_deg: 0 elements",
        ),
        ("gps:", "gsp:", r"gsp: unknown key; did you mean gps"),
        ("rate_hz: 250", "rate_hz: 0", r"mine.yaml:4: imu.rate_hz: 0"),
        ("rate_hz: 250", "rate_hz: .nan", r"mine.yaml:4: .*nan is not a finite number"),
    ],
)
def test_wrong_files_are_named(pattern, replacement, told):
    assert re.search(told, refusal(changed(pattern, replacement))), refusal(
        changed(pattern, replacement)
    )


def test_a_rate_that_does_not_fit_the_steps_is_named():
    p = SensorParameters.parse(changed("rate_hz: 250", "rate_hz: 400").encode(), "mine.yaml")
    model = AmphibiousModel(VehicleParameters.load("scale"))
    with pytest.raises(
        ConfigError,
        match=r"mine.yaml:4: imu.rate_hz: 400, .* steps of 0.001 s, such as 333.333, 500",
    ):
        SensorSuite(model, p)
    SensorSuite(model, p, step=0.0005)


def test_wrong_values_in_code_are_refused():
    with pytest.raises(ConfigError, match="rate: -1"):
        Sensor(rate=-1)
    with pytest.raises(ConfigError, match="position"):
        Sensor(rate=1, position=(0.0, math.inf, 0.0))
