# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""`rfly view --foxglove` as a WebSocket client sees it, and the layout that is shipped for it."""

from __future__ import annotations

import json
import re
import signal
import struct
import time
from contextlib import suppress
from pathlib import Path

import pytest
from node_harness import PATIENCE
from topic_harness import LATCHED_ONES, LOSSY, TYPES, RflyInDomain, messages, publishers, told

ROOT = Path(__file__).parents[3]
LAYOUT = json.loads((ROOT / "config" / "foxglove.json").read_text(encoding="utf-8"))
PLOTTED = {
    "/vehicle_states": "rfly_suite/msg/VehicleStateArray",
    "/amphibious_1/ground_truth/odom": "nav_msgs/msg/Odometry",
    "/amphibious_1/odometry/global": "nav_msgs/msg/Odometry",
}


class Client:
    """Speaks Foxglove's protocol (github.com/foxglove/ws-protocol, docs/spec.md)."""

    def __init__(self, address):
        from websockets.sync.client import connect

        self.socket = connect(address, subprotocols=["foxglove.sdk.v1"], max_size=None)
        self.channels = {}
        self.messages = []
        self.subscribed = {}

    def read_until(self, ready, patience_s=PATIENCE):
        while not ready():
            data = self.socket.recv(timeout=patience_s)
            if isinstance(data, bytes):
                operation, number, time_ns = struct.unpack_from("<BIQ", data)
                if operation == 1:
                    self.messages.append((self.subscribed[number], time_ns, data[13:]))
                continue
            message = json.loads(data)
            for channel in message.get("channels", ()):
                self.channels[channel["topic"]] = channel

    def subscribe(self, *topics):
        for topic in topics:
            number = len(self.subscribed)
            self.subscribed[number] = topic
            subscription = {"id": number, "channelId": self.channels[topic]["id"]}
            self.socket.send(json.dumps({"op": "subscribe", "subscriptions": [subscription]}))

    def of(self, topic):
        return [data for name, _, data in self.messages if name == topic]


def publish_until(made, topics, client):
    """Publish until a message of each topic has come; a subscriber may know its publisher later
    than that one it.
    """
    deadline = time.monotonic() + PATIENCE
    while missing := [topic for topic in topics if not client.of(topic)]:
        assert time.monotonic() < deadline, missing
        for topic in missing:
            made[topic].publish(messages(3)[topic])
        with suppress(TimeoutError):
            client.read_until(lambda: all(client.of(topic) for topic in topics), patience_s=0.3)


@pytest.mark.ros
@pytest.mark.needs("websockets", "rosbags")
def test_a_client_gets_what_is_published_and_a_late_one_what_is_latched(domain_id):
    from node_harness import Peer
    from rosbags.typesys import Stores, get_types_from_msg, get_typestore

    peer = Peer(domain_id)
    with RflyInDomain(
        domain_id, "view", "--foxglove", "--port", "0", "--exclude", "/rosout"
    ) as process:
        address = re.search(r"ws://127\.0\.0\.1:\d+", process.process.stdout.readline())[0]
        made = publishers(peer, 0)
        first = Client(address)
        first.read_until(lambda: set(TYPES) <= set(first.channels))
        assert "/rosout" not in first.channels
        topics = [topic for topic in TYPES if topic != LOSSY]
        first.subscribe(*topics)
        assert all(made[topic].get_subscription_count() == 0 for topic in TYPES if topic == LOSSY)
        publish_until(made, topics, first)
        late = Client(address)
        late.read_until(lambda: set(TYPES) <= set(late.channels))
        late.subscribe(*LATCHED_ONES)
        late.read_until(lambda: all(late.of(topic) for topic in LATCHED_ONES))
        assert made[LOSSY].get_subscription_count() == 0, "nobody looks at it"
        late.socket.close()
        first.socket.close()
        peer.spin_until(lambda: not made["/vehicle_states"].get_subscription_count())
        code, output = process.end(signal.SIGTERM)
        assert code in (0, 128 + signal.SIGTERM, -signal.SIGTERM), output
        assert not re.search("Traceback|Error", output), output
    peer.close()
    store = get_typestore(Stores.EMPTY)
    for client, topic in [
        *((first, topic) for topic in topics),
        *((late, topic) for topic in LATCHED_ONES),
    ]:
        channel = client.channels[topic]
        assert (channel["schemaName"], channel["encoding"], channel["schemaEncoding"]) == (
            TYPES[topic],
            "cdr",
            "ros2msg",
        )
        store.register(get_types_from_msg(channel["schema"], TYPES[topic]))
        found = [
            told(topic, store.deserialize_cdr(data, TYPES[topic])) for data in client.of(topic)
        ]
        assert told(topic, messages(3)[topic]) in found


def panels(kind):
    return {
        name: config for name, config in LAYOUT["configById"].items() if name.startswith(f"{kind}!")
    }


def test_the_layout_holds_each_panel_once():
    """The panels are of kinds that Foxglove and its free forks know, in a tree of splits."""

    def leaves(node):
        if isinstance(node, str):
            return [node]
        assert node["direction"] in ("row", "column")
        assert 0 < node["splitPercentage"] < 100
        return [*leaves(node["first"]), *leaves(node["second"])]

    assert sorted(leaves(LAYOUT["layout"])) == sorted(LAYOUT["configById"])
    assert {name.partition("!")[0] for name in LAYOUT["configById"]} == {
        "3D",
        "Image",
        "Plot",
        "DiagnosticSummary",
    }


@pytest.mark.needs("foxglove")
def test_the_panels_settings_are_those_of_foxgloves_own_library():
    """The settings equal those that foxglove.layouts writes under the same names."""
    from foxglove import layouts

    known = {
        "Plot": set(layouts.PlotConfig()._to_dict()),
        "3D": set(layouts.ThreeDeeConfig()._to_dict()) | {"title"},
        "Image": set(layouts.ImageConfig()._to_dict()) | {"title"},
    }
    for kind, names in known.items():
        for name, config in panels(kind).items():
            assert set(config) <= names | {"title"}, name
    for config in panels("Plot").values():
        for series in config["paths"]:
            assert set(series) <= set(layouts.PlotSeries(value="/a.b")._to_dict())
    (scene,) = panels("3D").values()
    assert set(scene["cameraState"]) <= set(layouts.ThreeDeeCameraState()._to_dict())


@pytest.mark.ros
def test_every_plotted_path_leads_to_a_number():
    """Each field in its message's definition, numbers at its end."""
    from rfly_bringup.ros.topic_taps import message_class

    for config in panels("Plot").values():
        for series in config["paths"]:
            topic, *fields = re.split(r"\.", series["value"])
            kind = message_class(PLOTTED[topic])
            for field in fields:
                name, _, index = field.partition("[")
                text = kind.get_fields_and_field_types()[name]
                assert bool(index) == ("[" in text or "sequence" in text), series["value"]
                nested = re.fullmatch(r"(\w+)/(\w+)", text)
                kind = message_class(f"{nested[1]}/msg/{nested[2]}") if nested else None
            assert kind is None, series["value"]
            assert re.search(r"double|float", text), series["value"]
