# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Recordings as people have them: every part that MCAP may lack, folders, packed files, .db3."""

from __future__ import annotations

import sqlite3
import struct
from pathlib import Path

import pytest

from rfly_common.errors import CaptureError, TruncatedCaptureError
from rfly_common.untrusted_files.bag_reader import is_bag, open_bag
from rfly_common.untrusted_files.message_log import open_log

pytestmark = pytest.mark.needs("mcap", "mcap_ros2")

KIND = "std_msgs/msg/String"
S = 1_000_000_000


def cdr(text):
    """A std_msgs/String in CDR, little-endian, by hand."""
    data = text.encode() + b"\0"
    return b"\0\1\0\0" + struct.pack("<I", len(data)) + data


def write_mcap(path, texts=("a", "b", "c"), start=100, **options):
    """Write a text a second on /said; `options` are those of the writer."""
    from mcap.writer import Writer

    with Path(path).open("wb") as file:
        writer = Writer(file, **options)
        writer.start(profile="ros2")
        schema = writer.register_schema(KIND, "ros2msg", b"string data")
        channel = writer.register_channel("/said", "cdr", schema)
        for k, text in enumerate(texts):
            writer.add_message(channel, (start + k) * S, cdr(text), (start + k) * S, k)
        writer.finish()


def said(path):
    """[(second, text)] as `rfly replay` gets it and as a log's readers get it, which agree."""
    with open_bag(path) as bag:
        raw = [(message.time_ns // S, message.data) for message in bag]
        assert bag.size == len(raw) == bag.position
        assert {topic.name for topic in bag.topics.values()} <= {"/said"}
    with open_log(path) as log:
        assert log.topics == {"/said": "std_msgs/String"}
        found = [(round(each.time), each.message.data) for each in log.messages(["/said"])]
    assert raw == [(second, cdr(text)) for second, text in found]
    return found


ABC = [(100, "a"), (101, "b"), (102, "c")]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"repeat_channels": False},
        {"repeat_schemas": False},
        {"repeat_channels": False, "repeat_schemas": False, "use_summary_offsets": False},
        {"use_statistics": False},
        {"use_chunking": False},
        {"use_chunking": False, "repeat_channels": False, "use_statistics": False},
        {"index": "none"},
        {"index": "none", "repeat_channels": False, "repeat_schemas": False},
    ],
    ids=lambda options: " ".join(options) or "all",
)
def test_each_part_of_a_summary_may_be_missing(tmp_path, options):
    """mcap.dev/spec: the summary section and each kind of record in it is optional."""
    from mcap.writer import IndexType

    options = dict(options)
    if options.pop("index", None):
        options["index_types"] = IndexType.NONE
    write_mcap(tmp_path / "a.mcap", **options)
    assert said(tmp_path / "a.mcap") == ABC


def test_a_file_without_a_summary_is_read(tmp_path):
    """Data end, and a footer that names no summary."""
    write_mcap(tmp_path / "a.mcap")
    content = (tmp_path / "a.mcap").read_bytes()
    footer = content[-8 - 29 : -8]
    (summary_start,) = struct.unpack_from("<Q", footer, 9)
    bare = footer[:9] + bytes(20)
    (tmp_path / "a.mcap").write_bytes(content[:summary_start] + bare + content[-8:])
    assert said(tmp_path / "a.mcap") == ABC


def test_messages_that_are_none_of_ros_2_are_left_out_with_the_reason(tmp_path):
    from mcap.writer import Writer

    with (tmp_path / "a.mcap").open("wb") as file:
        writer = Writer(file)
        writer.start()
        json = writer.register_schema("thing", "jsonschema", b"{}")
        proto = writer.register_schema("thing", "protobuf", b"")
        string = writer.register_schema(KIND, "ros2msg", b"string data")
        for topic, encoding, schema in (
            ("/json", "json", json),
            ("/bare", "cdr", 0),
            ("/ros1", "ros1", string),
            ("/proto", "cdr", proto),
            ("/said", "cdr", string),
        ):
            channel = writer.register_channel(topic, encoding, schema)
            writer.add_message(channel, 100 * S, cdr("a"), 100 * S)
        writer.finish()
    with open_bag(tmp_path / "a.mcap") as bag:
        assert [bag.topics[message.channel].name for message in bag] == ["/said"]
        assert bag.left_out == {
            "/json": "its messages are 'json', expected 'cdr', ROS 2's",
            "/bare": "it has no schema, so the type of its messages is unknown",
            "/ros1": "its messages are 'ros1', expected 'cdr', ROS 2's",
            "/proto": "its schema is 'protobuf', expected 'ros2msg'",
        }


def metadata(folder, *names):
    listed = "".join(f"    - {name}\n" for name in names)
    (folder / "metadata.yaml").write_text(
        f"rosbag2_bagfile_information:\n  version: 5\n  relative_file_paths:\n{listed}"
    )


def test_a_folder_of_many_files_is_read_in_their_order(tmp_path):
    """File 10 comes after 9 without the metadata.yaml a killed recorder lacks; the last is cut."""
    for k in range(11):
        write_mcap(tmp_path / f"bag_{k}.mcap", [str(k)], 100 + k)
    expected = [(100 + k, str(k)) for k in range(11)]
    assert is_bag(tmp_path)
    assert said(tmp_path) == expected

    content = (tmp_path / "bag_10.mcap").read_bytes()
    (tmp_path / "bag_10.mcap").write_bytes(content[:-10])
    with open_bag(tmp_path) as bag:
        seconds = []
        with pytest.raises(TruncatedCaptureError, match=r"bag_10\.mcap has no end"):
            seconds.extend(message.time_ns // S for message in bag)
    assert seconds == [second for second, _ in expected]

    # Windows' programs may write endings in capitals
    (tmp_path / "bag_10.mcap").unlink()
    (tmp_path / "bag_9.mcap").rename(tmp_path / "bag_9.MCAP")
    assert said(tmp_path) == expected[:10]

    # metadata.yaml names fewer, as older versions did with the folder's name
    metadata(tmp_path, "bag_2.mcap", "folder/bag_1.mcap")
    assert said(tmp_path) == [expected[2], expected[1]]


@pytest.mark.needs("rosbags")
@pytest.mark.parametrize("mode", ["", "FILE", "MESSAGE"])
@pytest.mark.parametrize("plugin", ["MCAP", "SQLITE3"])
def test_folders_that_rosbags_writes(tmp_path, plugin, mode):
    from rosbags.rosbag2 import CompressionFormat, CompressionMode, StoragePlugin, Writer
    from rosbags.typesys import Stores, get_typestore

    store = get_typestore(Stores.ROS2_HUMBLE)
    folder = tmp_path / "bag"
    writer = Writer(folder, version=9, storage_plugin=StoragePlugin[plugin])
    if mode:
        writer.set_compression(CompressionMode[mode], CompressionFormat.ZSTD)
    with writer:
        connection = writer.add_connection("/said", KIND, typestore=store)
        for second, text in ABC:
            writer.write(connection, second * S, cdr(text))
    assert said(folder) == ABC
    if mode != "FILE":
        (file,) = (each for each in folder.iterdir() if each.suffix != ".yaml")
        assert is_bag(file)
        assert said(file) == ABC


@pytest.mark.needs("rosbags")
def test_a_db3_of_humble_has_no_definitions(tmp_path):
    """Types of ROS's own packages are known; others are left out of logs, with the reason.

    The tables are those of rosbag2_storage_sqlite3 of Humble.
    """
    file = tmp_path / "humble.db3"
    database = sqlite3.connect(file)
    database.executescript(
        "CREATE TABLE topics(id INTEGER PRIMARY KEY, name TEXT NOT NULL, type TEXT NOT NULL,"
        " serialization_format TEXT NOT NULL, offered_qos_profiles TEXT NOT NULL);"
        "CREATE TABLE messages(id INTEGER PRIMARY KEY, topic_id INTEGER NOT NULL,"
        " timestamp INTEGER NOT NULL, data BLOB NOT NULL);"
        f"INSERT INTO topics VALUES (1, '/said', '{KIND}', 'cdr', '');"
        "INSERT INTO topics VALUES (2, '/own', 'own_msgs/msg/Own', 'cdr', '');"
    )
    for second, text in ABC:
        database.execute(
            "INSERT INTO messages(topic_id, timestamp, data) VALUES (1, ?, ?)",
            (second * S, cdr(text)),
        )
    database.commit()
    database.close()
    with open_log(file) as log:
        assert [each.message.data for each in log.messages(log.topics)] == ["a", "b", "c"]
        assert log.left_out == {"/own": "own_msgs/msg/Own was recorded without its definition"}


@pytest.mark.needs("rosbags")
def test_a_definition_in_idl_is_read(tmp_path):
    """The text that rosbag2 writes for a type of which only the .idl is installed."""
    from mcap.writer import Writer

    idl = (
        "=" * 80 + "\nIDL: own_msgs/msg/Own\nmodule own_msgs {\n  module msg {\n    struct Own {\n"
        "      string data;\n    };\n  };\n};\n"
    )
    with (tmp_path / "a.mcap").open("wb") as file:
        writer = Writer(file)
        writer.start(profile="ros2")
        schema = writer.register_schema("own_msgs/msg/Own", "ros2idl", idl.encode())
        channel = writer.register_channel("/own", "cdr", schema)
        writer.add_message(channel, S, cdr("a"), S)
        writer.finish()
    with open_log(tmp_path / "a.mcap") as log:
        assert [each.message.data for each in log.messages(["/own"])] == ["a"]


@pytest.mark.parametrize(
    ("name", "is_one"), [("a.mcap", True), ("A.MCAP", True), ("a.db3", True), ("a.pcap", False)]
)
def test_an_empty_file_of_a_killed_recorder_goes_by_its_ending(tmp_path, name, is_one):
    (tmp_path / name).touch()
    assert is_bag(tmp_path / name) is is_one


def empty(_):
    pass


def two_recordings(folder):
    write_mcap(folder / "one_0.mcap")
    write_mcap(folder / "two_0.mcap")


def missing_file(folder):
    write_mcap(folder / "a_0.mcap")
    metadata(folder, "a_0.mcap", "a_1.mcap")


def other_yaml(folder):
    (folder / "metadata.yaml").write_text("image: map.pgm\n")


def bad_zstd(folder):
    write_mcap(folder / "a_0.mcap")
    (folder / "a_1.mcap.zstd").write_bytes(b"\x28\xb5\x2f\xfd" + b"x" * 100)


def ros1(folder):
    (folder / "a_0.mcap").write_bytes(b"#ROSBAG V2.0\n" + b"x" * 100)


def broken_database(folder):
    (folder / "a_0.db3").write_bytes(b"SQLite format 3\0" + b"x" * 1000)


@pytest.mark.parametrize(
    ("make", "told"),
    [
        pytest.param(empty, "neither metadata.yaml nor an .mcap or .db3 file", id="empty"),
        pytest.param(two_recordings, "several recordings .one, two.; choose one", id="two"),
        pytest.param(missing_file, r"names a_1\.mcap, which is not there", id="missing-file"),
        pytest.param(other_yaml, r"metadata\.yaml: .*expected that of ros2 bag", id="other-yaml"),
        pytest.param(bad_zstd, r"a_1\.mcap\.zstd: .*expected zstd", id="bad-zstd"),
        pytest.param(ros1, "bag of ROS 1; convert it: rosbags-convert --src", id="ros1"),
        pytest.param(
            broken_database,
            r"a_0\.db3: .*expected a \.db3 file",
            id="broken-database",
            marks=pytest.mark.needs("rosbags"),
        ),
    ],
)
def test_folders_that_are_no_bag(tmp_path, make, told):
    folder = tmp_path / "bag"
    folder.mkdir()
    make(folder)
    with pytest.raises(CaptureError, match=told), open_bag(folder):
        pass
