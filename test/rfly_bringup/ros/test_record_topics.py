# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""`rfly record --mcap`, `rfly replay` and recorder_node between a test's own node and libraries
that are not ours.
"""

from __future__ import annotations

import re
import signal
import sys
import time
from collections import defaultdict
from pathlib import Path

import pytest
from node_harness import run_rfly
from topic_harness import LATCHED_ONES, LOSSY, TYPES, RflyInDomain, messages, publishers, told

pytestmark = [pytest.mark.ros, pytest.mark.needs("mcap", "mcap_ros2", "rosbags")]

ROUNDS = 20


def expected():
    """{topic: what was published}; latched ones once."""
    return {
        topic: [
            told(topic, messages(number)[topic])
            for number in range(1 if topic in LATCHED_ONES else ROUNDS)
        ]
        for topic in TYPES
    }


def check(found):
    """Check that all messages came in their order; of the lossy topic, a part of them."""
    lossy = list(found[LOSSY])
    everything = expected()
    assert lossy == [each for each in everything[LOSSY] if each in lossy]
    assert {**found, LOSSY: everything[LOSSY]} == everything


def publish(made):
    for number in range(ROUNDS):
        for topic, message in messages(number).items():
            if number == 0 or topic not in LATCHED_ONES:
                made[topic].publish(message)


def read_by_mcap_ros2(path):
    from mcap.reader import make_reader
    from mcap_ros2.decoder import DecoderFactory

    found = defaultdict(list)
    with path.open("rb") as file:
        reader = make_reader(file, decoder_factories=[DecoderFactory()])
        for _, channel, _, message in reader.iter_decoded_messages(topics=list(TYPES)):
            found[channel.topic].append(told(channel.topic, message))
    return found


def read_by_rosbags(path):
    """{topic: messages}, {topic: (durability, reliability)}."""
    from rosbags.rosbag2 import Reader
    from rosbags.typesys import Stores, get_types_from_msg, get_typestore

    store = get_typestore(Stores.EMPTY)
    found = defaultdict(list)
    qos = {}
    with Reader(path) as reader:
        for connection in reader.connections:
            store.register(get_types_from_msg(connection.msgdef.data, connection.msgtype))
            (profile,) = connection.ext.offered_qos_profiles
            qos[connection.topic] = (profile.durability.name, profile.reliability.name)
        for connection, _, data in reader.messages(
            [c for c in reader.connections if c.topic in TYPES]
        ):
            found[connection.topic].append(
                told(connection.topic, store.deserialize_cdr(data, connection.msgtype))
            )
    return found, qos


@pytest.mark.exhaustive
def test_nothing_is_lost_by_a_signal_and_two_foreign_libraries_read_it(
    domain_id, tmp_path, monkeypatch, capsys
):
    """Ctrl-C, kill, a closed terminal; and what kill -9 leaves is played to a node."""
    from node_harness import Peer

    signals = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL)
    files = {number: tmp_path / f"{number.name}.mcap" for number in signals}
    peer = Peer(domain_id)
    # its own /diagnostics and those of the other recorders are no part of the count
    choice = [word for topic in TYPES for word in ("--topic", topic)]
    with (
        RflyInDomain(domain_id, "record", "--mcap", files[signal.SIGINT], *choice) as first,
        RflyInDomain(domain_id, "record", "--mcap", files[signal.SIGTERM]) as second,
        RflyInDomain(
            domain_id, "record", "--mcap", files[signal.SIGHUP], "--exclude", "/rosout"
        ) as third,
        RflyInDomain(domain_id, "record", "--mcap", files[signal.SIGKILL], *choice) as fourth,
    ):
        made = publishers(peer, 4)
        publish(made)
        cut = files[signal.SIGKILL]
        peer.spin_until(lambda: cut.stat().st_size > 2000)
        peer.spin_for(1.2)  # two more flushes; everything was received long before
        code, _ = fourth.end(signal.SIGKILL)
        assert code == -signal.SIGKILL
        for each, number in (
            (first, signal.SIGINT),
            (second, signal.SIGTERM),
            (third, signal.SIGHUP),
        ):
            each.process.send_signal(number)
        for each, number in (
            (first, signal.SIGINT),
            (second, signal.SIGTERM),
            (third, signal.SIGHUP),
        ):
            code, output = each.end()
            assert code in (0, 128 + number, -number), output
            assert re.search(r"\d+ messages on \d+ topics, \d+ bytes in", output), output
            assert not re.search("Traceback|Error", output), output
    for number in signals[:3]:
        by_rosbags, qos = read_by_rosbags(files[number])
        for found in (by_rosbags, read_by_mcap_ros2(files[number])):
            found["/diagnostics"] = [
                each for each in found["/diagnostics"] if each[0] == "ä node: task"
            ]
            check(found)
        assert all(qos[topic] == ("TRANSIENT_LOCAL", "RELIABLE") for topic in LATCHED_ONES)
        assert qos[LOSSY] == ("VOLATILE", "BEST_EFFORT")
        assert qos["/vehicle_states"] == ("VOLATILE", "RELIABLE")
        assert ("/rosout" in qos) == (number == signal.SIGTERM)
    files[signal.SIGINT].rename(tmp_path / "flight.mcap")
    monkeypatch.chdir(tmp_path)
    exec(example_of_the_page(), {})
    lines = re.findall(
        r"^\d+ \[\s*(\d+)\s+7\] \[\[\s*([\d.]+) ", capsys.readouterr().out, re.MULTILINE
    )
    assert [(int(first), float(x)) for first, x in lines] == [
        (number, 0.5 * number) for number in range(ROUNDS)
    ]
    for each in made.values():  # what they have latched is no part of the replay
        peer.node.destroy_publisher(each)
    played = play(peer, domain_id, cut, "--speed", "0")
    assert "has no end, as if its writer was killed" in played.output
    check(played.found)
    peer.close()


def example_of_the_page():
    page = (Path(__file__).parents[3] / "docs" / "howto" / "record-and-replay.md").read_text(
        encoding="utf-8"
    )
    (example,) = re.findall(r"```py\n(.*?)```", page, re.DOTALL)
    return example


class Played:
    def __init__(self, found, output):
        self.found = found
        self.output = output


def play(peer, domain_id, file, *options):
    """Return what a node receives from `rfly replay`."""
    from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy

    from rfly_bringup.ros.topic_taps import message_class

    found = defaultdict(list)

    def listen(topic):
        def on_message(message):
            if topic != "/diagnostics" or message.status[0].name == "ä node: task":
                found[topic].append(told(topic.replace("/ghost/", "/lead/"), message))

        qos = QoSProfile(depth=500)
        if topic == LOSSY:
            qos.reliability = ReliabilityPolicy.BEST_EFFORT
        if topic in LATCHED_ONES:
            qos.durability = DurabilityPolicy.TRANSIENT_LOCAL
        return peer.node.create_subscription(message_class(TYPES[topic]), topic, on_message, qos)

    subscriptions = [listen(topic) for topic in TYPES]
    with RflyInDomain(domain_id, "replay", file, *options) as process:
        peer.spin_until(lambda: process.process.poll() is not None)
        code, output = process.end()
    peer.spin_for(0.2)
    for each in subscriptions:
        peer.node.destroy_subscription(each)
    assert code == 0, output
    return Played(found, output)


def written(path, period_ns=0):
    """A file with all rounds, without ROS's own recorder, so that a replay's errors are its own."""
    from rclpy.serialization import serialize_message

    from rfly_bringup.ros.topic_taps import message_definition
    from rfly_bringup.topic_recording.mcap_file import McapWriter
    from rfly_common.untrusted_files.mcap_reader import Topic

    writer = McapWriter(path)
    channels = {
        topic: writer.add_topic(Topic(topic, kind, message_definition(kind), topic in LATCHED_ONES))
        for topic, kind in TYPES.items()
    }
    for number in range(ROUNDS):
        for topic, message in messages(number).items():
            if number == 0 or topic not in LATCHED_ONES:
                writer.write(channels[topic], serialize_message(message), number * period_ns)
    return writer


def test_a_killed_recorder_keeps_what_it_has_written_and_its_file_is_made_whole(
    domain_id, tmp_path
):
    """It writes twice a second; after the fifth time that the file grows it is killed."""
    from mcap.reader import make_reader
    from node_harness import Peer

    from rfly_common.untrusted_files.mcap_reader import McapReader

    cut = tmp_path / "flight.mcap"
    whole = tmp_path / "whole.mcap"
    peer = Peer(domain_id)
    with RflyInDomain(domain_id, "record", "--mcap", cut, "--topic", "/lead/pose") as recorder:
        made = publisher_of(peer, "/lead/pose")
        sizes = {0}

        def publish_and_look():
            made.publish(messages(1)["/lead/pose"])
            sizes.add(cut.stat().st_size if cut.exists() else 0)
            return len(sizes) > 5

        peer.spin_until(publish_and_look)
        killed_ns = time.time_ns()
        code, _ = recorder.end(signal.SIGKILL)
        assert code == -signal.SIGKILL
    peer.close()

    with McapReader(cut) as reader:
        assert not reader.is_whole
    result = run_rfly("record", "--recover", cut, whole)
    assert result.returncode == 0, result.stderr
    with whole.open("rb") as file:
        statistics = make_reader(file).get_summary().statistics
    assert result.stdout == (
        f"{whole}: {statistics.message_count} messages on 1 topics, "
        f"{(statistics.message_end_time - statistics.message_start_time) / 1e9:.1f} s\n"
    )
    assert statistics.message_end_time <= killed_ns
    assert statistics.message_end_time - statistics.message_start_time > 0.9e9


def publisher_of(peer, topic):
    """A publisher of one topic, with a subscriber."""
    from rfly_bringup.ros.topic_taps import message_class

    publisher = peer.node.create_publisher(message_class(TYPES[topic]), topic, 50)
    peer.spin_until(lambda: publisher.get_subscription_count() > 0)
    return publisher


def test_a_full_disk_ends_a_recording_in_one_line(domain_id):
    with RflyInDomain(domain_id, "record", "/dev/full", "--overwrite", "--mcap") as recording:
        code, output = recording.end()
    assert code == 2
    assert output.splitlines()[-1] == (
        "rfly: the recording has ended: /dev/full: No space left on device; "
        "rfly record --recover makes a whole file of what it holds"
    )
    assert "0 messages" not in output


def test_a_replay_of_a_folder_keeps_the_time_the_choice_and_new_names(
    domain_id, tmp_path, monkeypatch
):
    """20 poses 50 ms apart, at double speed twice: from the first to the last 2 · 19 · 25 ms."""
    from node_harness import Peer

    file = tmp_path / "flight"
    file.mkdir()
    written(file / "flight_0.mcap", period_ns=50_000_000).close()
    monkeypatch.setitem(TYPES, "/ghost/pose", TYPES["/lead/pose"])
    peer = Peer(domain_id)
    options = (
        "--speed",
        "2",
        "--loop",
        "2",
        "--topic",
        "/.*/pose",
        "--topic",
        "/terrain_map",
        "--remap",
        "/lead/pose:=ghost/pose",
    )
    played = play(peer, domain_id, file, *options)
    peer.close()
    monkeypatch.delitem(TYPES, "/ghost/pose")
    assert played.found == {
        "/ghost/pose": expected()["/lead/pose"] * 2,
        "/terrain_map": expected()["/terrain_map"] * 2,
    }
    assert "published 42 messages on 2 topics" in played.output
    duration = float(re.search(r"topics in ([\d.]+) s", played.output)[1])
    assert duration >= 0.95


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["record", "--mcap", "-"], "takes a name, not a pipe"),
        (["record", "--mcap", "{file}"], "exists; choose another name"),
        (
            ["record", "--mcap", "/no/such/folder/a.mcap"],
            "a.mcap: there is no folder /no/such/folder",
        ),
        (
            ["record", "--mcap", "{file}x", "--port", "20020"],
            "--port: with --mcap it has no meaning",
        ),
        (
            ["record", "a.pcap", "--topic", "/tf"],
            "--topic: without --mcap it has no meaning",
        ),
        (["replay", "{file}", "--host", "10.0.0.1"], "a recording of topics, it has no meaning"),
        (
            ["replay", "{file}", "--topic", "/tf"],
            "no messages on topics to be published; there are ",
        ),
        (["replay", "{file}", "--topic", "*"], "expected a regular expression"),
        (["replay", "{file}", "--remap", "/a"], "--remap '/a': expected OLD:=NEW"),
        (["replay", "{file}", "--remap", "/a:=/b"], "no messages on /a to be renamed; there are "),
        (["replay", "{file}", "--id", "0:=4"], "--id '0:=4': expected ids from 1 to 2147483647"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_mistakes_are_named_in_one_line(domain_id, tmp_path, monkeypatch, capfd, arguments, text):
    from rfly_bringup.cli.main import main

    monkeypatch.setenv("ROS_DOMAIN_ID", str(domain_id))
    file = tmp_path / "flight.mcap"
    written(file).close()
    monkeypatch.setattr(sys, "argv", ["rfly", *(word.format(file=file) for word in arguments)])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 2
    assert text in capfd.readouterr().err


def test_vehicles_get_other_ids_in_a_replay():
    """1 and 2 swap, 3 stays; what is no vehicle stays, too. Every type with ids is listed."""
    from rclpy.serialization import deserialize_message, serialize_message
    from rfly_suite import msg

    from rfly_bringup.ros.play_topics import ID_FIELDS, _with_new_ids
    from rfly_bringup.topic_recording.topics import IdMap

    ids = IdMap(["1:=2", "2:=1", "9:=5"])
    for message, kind, fields in (
        (msg.VehicleStateArray(id=[1, 2, 3]), msg.VehicleStateArray, {"id": [2, 1, 3]}),
        (msg.VehicleState(id=2), msg.VehicleState, {"id": 1}),
        (
            msg.ContactArray(id_a=[1, 3], id_b=[2, -2]),
            msg.ContactArray,
            {"id_a": [2, 3], "id_b": [1, -2]},
        ),
        (msg.UeCrash(id=1, target_id=-1), msg.UeCrash, {"id": 2, "target_id": -1}),
    ):
        data = _with_new_ids(serialize_message(message), f"rfly_suite/msg/{kind.__name__}", ids)
        changed = deserialize_message(data, kind)
        for field, value in fields.items():
            new = getattr(changed, field)
            assert (new if isinstance(new, int) else list(new)) == value
    assert ids.notes() == ["no vehicle 9 in the recording"]
    for kind, names in ID_FIELDS.items():
        types = getattr(msg, kind.rpartition("/")[2]).get_fields_and_field_types()
        assert all(types[name] in ("int32", "sequence<int32>") for name in names)


def test_messages_that_cannot_get_new_ids_are_counted(tmp_path):
    """A VehicleState of 2 bytes is left out; the whole one gets its new id."""
    from rclpy.serialization import deserialize_message, serialize_message
    from rfly_suite.msg import VehicleState

    from rfly_bringup.ros.play_topics import _Messages
    from rfly_bringup.topic_recording.mcap_file import McapWriter
    from rfly_bringup.topic_recording.topics import IdMap
    from rfly_common.untrusted_files.bag_reader import open_bag
    from rfly_common.untrusted_files.mcap_reader import Topic

    path = tmp_path / "a.mcap"
    topic = Topic("/robot/state", "rfly_suite/msg/VehicleState", "")
    writer = McapWriter(path)
    channel = writer.add_topic(topic)
    for data in (b"\0\1", bytes(serialize_message(VehicleState(id=1)))):
        writer.write(channel, data, 1)
    writer.close()
    with open_bag(path) as bag:
        messages = _Messages(bag, dict.fromkeys(bag.topics), IdMap(["1:=7"]))
        (message,) = messages
    assert deserialize_message(message.payload, VehicleState).id == 7
    assert messages.left_out == {"/robot/state": 1}


def test_a_type_with_other_fields_is_left_out_of_a_replay(tmp_path):
    from rfly_bringup.ros.topic_taps import message_definition, same_fields

    pose = message_definition("geometry_msgs/msg/PoseStamped")
    assert same_fields(pose, "\n".join(line.partition("#")[0] for line in pose.splitlines()))
    assert not same_fields(pose, pose.replace("float64 x", "float32 x"))
    assert not same_fields(pose, pose.replace("string frame_id", "string frame"))
    status = message_definition("diagnostic_msgs/msg/DiagnosticStatus")
    assert same_fields(status, status.replace("byte STALE=3", "byte OLD = 4"))
    assert "MSG: diagnostic_msgs/KeyValue" in status


def test_the_node_records_to_a_file_by_its_time_and_says_how_it_is(domain_id, tmp_path):
    from diagnostic_msgs.msg import DiagnosticArray
    from node_harness import NodeProcess, Peer, diagnostic
    from sensor_msgs.msg import Image

    from rfly_common.ros.qos import STATE_OUT

    peer = Peer(domain_id)
    with NodeProcess("recorder_node", domain_id, {"file": str(tmp_path / "{time}.mcap")}) as node:
        statuses = peer.receive(DiagnosticArray, "/diagnostics", STATE_OUT)
        pictures = peer.node.create_publisher(Image, "/camera/image_raw", 1)
        peer.spin_until(lambda: "/camera/image_raw: pictures are left out" in node.output)
        assert pictures.get_subscription_count() == 0
        publish(publishers(peer, 1))
        level, text, values = peer.spin_until(
            lambda: (
                (found := diagnostic(statuses, "recording"))
                and int(found[2].get("messages", 0)) > 60
                and found
            )
        )
        assert (level, text) == (0, "recording")
        assert int(values["topics"]) >= len(TYPES)
        assert node.stop(signal.SIGTERM) == 0
    peer.close()
    (file,) = tmp_path.glob("20*-*-*_*-*-*.mcap")
    found, _ = read_by_rosbags(file)
    assert found["/vehicle_states"] == expected()["/vehicle_states"]


@pytest.mark.parametrize(
    "kind",
    [
        "antigravity/msg/X",
        "../msg/X",
        "x",
        "",
        "std_msgs/msg/String/a",
        "os/msg/path",
        "a b/msg/X",
    ],
)
def test_only_packages_of_messages_are_imported(kind):
    """A recording's types are foreign names: `import antigravity` would open a browser."""
    from rfly_bringup.ros.topic_taps import message_class, message_definition
    from rfly_common.errors import ConfigError

    for find in (message_class, message_definition):
        with pytest.raises(ConfigError, match=r"is not installed|is no message type"):
            find(kind)
    assert "antigravity" not in sys.modules
    assert message_class("std_msgs/msg/String").__name__ == "String"


def test_topics_and_types_that_cannot_be_are_left_out_and_named(domain_id, tmp_path):
    """A topic whose name has a space and an escape sequence is left out, and so is an impossible
    type.

    The recording has nothing else.
    """
    from mcap.writer import Writer

    path = tmp_path / "odd.mcap"
    with path.open("wb") as file:
        writer = Writer(file)
        writer.start(profile="ros2")
        for kind, name in (("std_msgs/msg/String", "/a\x1b]0;x"), ("x", "/b")):
            schema = writer.register_schema(kind, "ros2msg", b"string data")
            channel = writer.register_channel(name, "cdr", schema, {})
            writer.add_message(channel, 1, b"\0\1\0\0\1\0\0\0\0", 1, 0)
        writer.finish()
    done = run_rfly("replay", path)
    assert done.returncode == 2, done.stderr
    (line,) = done.stderr.splitlines()
    assert "no messages on topics to be published" in line
    assert "'x' is no message type" in line
    assert "\x1b" not in line
