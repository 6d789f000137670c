# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Weather's datagrams: bytes worked out by hand from the layout of public scripts."""

from __future__ import annotations

import pytest

from rfly_common.errors import CommandError
from rfly_ue_bridge.objects.weather_actor import encode_weather, weather_names, weather_of

CREATE = (
    bytes.fromhex("d3029649 64000000 24030000")
    + bytes(84)
    + bytes.fromhex("00000000000020c0 000000000000f0bf")
)
"""Actor 100 of class 804, 8 m up, without a time."""


@pytest.mark.parametrize(
    ("weather", "number"),
    [
        ("rain", "0000000000001440"),
        ("fog", "0000000000002440"),
        ("snow", "0000000000002040"),
        ("strong_wind", "000000000000f03f"),
    ],
)
def test_the_actor_and_its_action(weather, number):
    act = bytes.fromhex("d6029649 64000000 0000000000000840" + number) + bytes(120)
    assert encode_weather(weather, 100, 3.0) == [CREATE, act]


def test_clear_weather_has_no_actor():
    text = b"RflyDelVehicles 100"
    expected = (bytes.fromhex("d2029649") + text).ljust(56, b"\0")
    assert encode_weather("clear", 100, 3.0) == [expected]


def test_unknown_weather_is_refused_with_what_is_known():
    assert weather_names() == ["clear", "strong_wind", "rain", "snow", "fog"]
    with pytest.raises(CommandError, match="weather: 'hail', expected one of clear, strong_wind"):
        encode_weather("hail", 100, 0.0)


@pytest.mark.parametrize(
    ("visibility", "rain_rate", "weather"),
    [(0.0, 0.0, "clear"), (300.0, 0.0, "fog"), (300.0, 2.0, "rain"), (0.0, 2.0, "rain")],
)
def test_weather_of_an_environment(visibility, rain_rate, weather):
    assert weather_of(visibility, rain_rate) == weather
