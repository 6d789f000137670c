# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""RflySim3D's weather: the actor that shows it, from `data/weather.yaml`."""

from __future__ import annotations

import functools
import importlib.resources
from typing import Any

from rfly_common.config.marked_yaml import parse_yaml
from rfly_common.config.vehicle_models import model_named
from rfly_common.errors import CommandError
from rfly_ue_bridge.codec.commands import delete_vehicles, encode_command
from rfly_ue_bridge.codec.state_datagrams import encode_pose
from rfly_ue_bridge.codec.to_rflysim3d import UE4_EXT_MSG

WEATHER_ACTOR = 10_804
"""Usual id of the actor."""
CLEAR = "clear"
"""Weather without an actor."""
_LEVEL = (0.0, 0.0, 0.0)
_NO_MORE_NUMBERS = (0.0,) * 15


def weather_names() -> list[str]:
    """Return the kinds of weather that RflySim3D can be asked for."""
    return [CLEAR, *_settings()["types"]]


def weather_of(visibility: float, rain_rate: float) -> str:
    """Return the kind of weather of a visibility (m, 0: clear air) and a rain (mm/h)."""
    if rain_rate > 0:
        return "rain"
    return "fog" if visibility > 0 else CLEAR


def encode_weather(weather: str, actor_id: int, time_s: float) -> list[bytes]:
    """Return the datagrams that show a weather by the actor of that id.

    One creates the actor and one names the weather, with the sender's time, s; in clear weather the
    actor is deleted. Raises CommandError for a weather that is not among `weather_names`.
    """
    if weather == CLEAR:
        return [encode_command(delete_vehicles([actor_id]))]

    number = _settings()["types"].get(weather)
    if number is None:
        raise CommandError(f"weather: {weather!r}, expected one of {', '.join(weather_names())}")
    model = model_named("weather")
    assert model is not None
    north, east, down = _settings()["position_ned"]
    return [
        encode_pose(actor_id, model.vehicle_type, (north, east, down), _LEVEL),
        UE4_EXT_MSG.pack_flat(actor_id, time_s, float(number), *_NO_MORE_NUMBERS),
    ]


@functools.cache
def _settings() -> dict[str, Any]:
    file = importlib.resources.files("rfly_ue_bridge") / "data" / "weather.yaml"
    settings: dict[str, Any] = parse_yaml(file.read_text("utf-8"), file.name).value
    return settings
