# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Unreal's own console commands: words, order and limits, by the examples of RflySim's manual."""

from __future__ import annotations

import pytest

from rfly_common.errors import CommandError
from rfly_ue_bridge.codec import unreal_commands as unreal

BUILT = [
    (unreal.max_fps(30), "t.MaxFPS 30"),
    (unreal.slow_motion(0.5), "slomo 0.5"),
    (unreal.screenshot(1920, 1080), "HighResShot 1920x1080"),
    (unreal.toggle_statistics("scenerendering"), "stat scenerendering"),
    (unreal.set_resolution(1280, 720), "r.setRes 1280x720"),
    (unreal.set_resolution(1280, 720, "window"), "r.setRes 1280x720w"),
    (unreal.set_resolution(1920, 1080, "full screen"), "r.setRes 1920x1080f"),
    (unreal.set_quality("r.ForceLOD", -1), "r.ForceLOD -1"),
    (unreal.set_quality("sg.TextureQuality", 3), "sg.TextureQuality 3"),
]

REFUSED = [
    (lambda: unreal.toggle_statistics("memory"), "name: 'memory', expected one of fps"),
    (lambda: unreal.set_resolution(0, 720), "width: 0"),
    (lambda: unreal.set_resolution(1280, 720, "wide"), "screen: 'wide'"),
    (lambda: unreal.set_quality("r.ShadowQuality", 4), "r.ShadowQuality: 4"),
    (lambda: unreal.set_quality("r.Fog", 1), "name: 'r.Fog', expected one of r.Streaming"),
    (lambda: unreal.max_fps(float("nan")), "frames_per_s: nan"),
]


@pytest.mark.parametrize(("built", "text"), BUILT, ids=[text for _, text in BUILT])
def test_words_and_order(built, text):
    assert built == text


@pytest.mark.parametrize(("build", "named"), REFUSED, ids=[named for _, named in REFUSED])
def test_what_is_wrong_is_named(build, named):
    with pytest.raises(CommandError, match=named):
        build()
