# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Map and weather of RflySim3D's window, through a running bridge, real DDS and a UDP socket."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from bridge_harness import Bridge

pytestmark = pytest.mark.ros

NO_ORIGIN = (0.0, 0.0, 0.0)


def command(text):
    return struct.pack("<i52s", 1234567890, text.encode())


def terrain(name):
    from rfly_terrain.height_map.height_map import HeightMap
    from rfly_terrain.ros.terrain_msgs import height_map_to_msg

    ground = HeightMap(np.zeros((3, 3)), origin_x=0, origin_y=0, step_x=9, step_y=9, name=name)
    return height_map_to_msg(ground, NO_ORIGIN, 0, 10_000)


@pytest.fixture
def bridge(domain_id, request):
    started = Bridge(domain_id, **request.param)
    yield started
    started.close()


@pytest.mark.parametrize("bridge", [{"scene": "follow"}], indirect=True)
def test_the_scene_follows_the_terrain(bridge):
    from rfly_suite.msg import TerrainMap

    from rfly_common.ros.qos import LATCHED

    maps = bridge.peer.publisher(TerrainMap, "terrain_map", LATCHED)
    for name in ("Grasslands", "MountainTerrain"):
        maps.publish(terrain(name))
        expected = command(f"RflyChangeMapbyName {name}")
        bridge.peer.spin_until(lambda expected=expected: expected in bridge.window.poll())


@pytest.mark.parametrize("bridge", [{"scene": "lead"}], indirect=True)
def test_the_terrain_follows_the_scene(bridge):
    from rfly_suite.srv import LoadTerrain, SendUeCommand

    asked = []

    def load(request, response):
        asked.append(request.map)
        response.success = True
        return response

    bridge.peer.node.create_service(LoadTerrain, "load_terrain", load)

    def change_map():
        text = "RflyChangeMapbyName Grasslands"
        assert bridge.peer.call(SendUeCommand, "send_ue_command", command=text, window=0).success
        return asked

    bridge.peer.spin_until(change_map)
    assert set(asked) == {"Grasslands"}


@pytest.mark.parametrize("bridge", [{"weather_actor": 100}], indirect=True)
def test_rain_and_fog_come_with_an_actor_that_clear_air_deletes(bridge):
    """The actor's datagram is worked out by hand: class 804, 8 m up, no time."""
    from rfly_suite.msg import Environment

    actor = (
        bytes.fromhex("d3029649 64000000 24030000")
        + bytes(84)
        + bytes.fromhex("00000000000020c0 000000000000f0bf")
    )

    def kinds():
        """The numbers of weather that were sent, once its actor came as often."""
        sent = bridge.window.poll()
        found = [struct.unpack_from("<d", d, 16)[0] for d in sent if d[:4] == b"\xd6\x02\x96\x49"]
        return found if sent.count(actor) == len(found) else None

    rain = Environment(light=1.0, rain_rate=5.0)
    bridge.publish_until("environment", rain, lambda: kinds() == [5.0])
    fog = Environment(light=1.0, visibility=80.0)
    bridge.publish_until("environment", fog, lambda: kinds() == [5.0, 10.0])
    delete = command("RflyDelVehicles 100")
    clear = Environment(light=1.0)
    bridge.publish_until("environment", clear, lambda: delete in bridge.window.poll())
