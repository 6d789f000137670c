# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""MCAP files without ROS: whole ones, cut ones, foreign ones."""

from __future__ import annotations

import struct

import pytest

from rfly_bringup.topic_recording.mcap_file import McapWriter, recover
from rfly_bringup.topic_recording.topics import TopicChoice
from rfly_common.errors import CaptureError, ConfigError, TruncatedCaptureError
from rfly_common.untrusted_files.bag_reader import is_bag
from rfly_common.untrusted_files.mcap_reader import McapReader, Topic

pytestmark = pytest.mark.needs("mcap")

TEXT = Topic("/said", "std_msgs/msg/String", "string data\n")
MAP = Topic("/map", "std_msgs/msg/String", "string data\n", latched=True)
FAST = Topic("/fast", "std_msgs/msg/Byte", "byte data\n", reliable=False)
SECOND = 1_000_000_000


def written(path, seconds):
    """Write a message of each topic each second, flushed after each; {topic: (time, data)}."""
    writer = McapWriter(path)
    channels = {topic.name: writer.add_topic(topic) for topic in (TEXT, MAP, FAST)}
    content = {name: [] for name in channels}
    for second in range(seconds):
        for name, channel in channels.items():
            data = f"{name} {second}".encode() * 40
            writer.write(channel, data, second * SECOND)
            content[name].append((second * SECOND, data))
        writer.flush()
    return writer, content


def read(reader, found=None):
    """{topic: (time, data)}; `found` has what came before an error."""
    found = {} if found is None else found
    found |= {topic.name: [] for topic in reader.topics.values()}
    for message in reader:
        found[reader.topics[message.channel].name].append((message.time_ns, message.data))
    return found


def test_what_was_written_is_read_with_its_topics_twice(tmp_path):
    file = tmp_path / "a.mcap"
    writer, content = written(file, 5)
    writer.close()
    assert is_bag(file)
    assert (writer.messages, writer.topics, writer.size) == (15, 3, file.stat().st_size)
    with McapReader(file) as reader:
        assert sorted(reader.topics.values(), key=lambda topic: topic.name) == [
            FAST,
            MAP,
            TEXT,
        ]
        assert read(reader) == read(reader) == content
        assert reader.position == reader.size == 15


def test_a_message_that_came_later_but_is_older_is_read_in_its_place(tmp_path):
    writer = McapWriter(tmp_path / "a.mcap")
    channel = writer.add_topic(TEXT)
    for time_ns in (3, 1, 2):
        writer.write(channel, bytes([time_ns]), time_ns)
        writer.flush()
    writer.close()
    with McapReader(tmp_path / "a.mcap") as reader:
        assert [message.data for message in reader] == [b"\1", b"\2", b"\3"]


def test_a_file_that_was_cut_anywhere_is_read_as_far_as_it_goes(tmp_path):
    """A file cut at any byte after its header gives its first messages, and an error."""
    file = tmp_path / "a.mcap"
    cut = tmp_path / "cut.mcap"
    writer, content = written(file, 3)
    flushed = file.read_bytes()
    writer.close()
    seen = set()
    for length in range(60, len(flushed) + 1, 7):
        cut.write_bytes(flushed[:length])
        found = {}
        with (
            McapReader(cut) as reader,
            pytest.raises(TruncatedCaptureError, match=r"cut\.mcap"),
        ):
            read(reader, found)
        assert all(found[name] == content[name][: len(found[name])] for name in found)
        seen.add(sum(map(len, found.values())))

    assert seen == {0, 3, 6, 9}


def test_what_was_flushed_is_in_the_file_while_it_is_written(tmp_path):
    writer, content = written(tmp_path / "a.mcap", 4)
    found = {}
    with (
        McapReader(tmp_path / "a.mcap") as reader,
        pytest.raises(TruncatedCaptureError, match="its writer was killed"),
    ):
        read(reader, found)
    writer.close()
    assert found == content


def test_files_that_are_none_are_named(tmp_path):
    other = tmp_path / "other.mcap"
    other.write_bytes(b"\xd4\xc3\xb2\xa1" * 20)
    assert not is_bag(other)
    with pytest.raises(CaptureError, match=r"other\.mcap: no MCAP file"):
        McapReader(other)


def test_a_damaged_chunk_is_an_error_with_its_place(tmp_path):
    file = tmp_path / "a.mcap"
    writer, _ = written(file, 1)
    flushed = len(file.read_bytes())
    writer.close()
    content = bytearray(file.read_bytes())
    content[flushed // 2] ^= 0xFF
    file.write_bytes(content)
    with McapReader(file) as reader, pytest.raises(CaptureError, match=r"a\.mcap"):
        list(reader)


def test_an_existing_file_is_kept_unless_it_may_be_written_over(tmp_path):
    file = tmp_path / "a.mcap"
    file.write_text("mine")
    with pytest.raises(ConfigError, match="exists; choose another name"):
        McapWriter(file)
    assert file.read_text() == "mine"
    McapWriter(file, overwrite=True).close()
    assert is_bag(file)


@pytest.mark.parametrize(
    "names",
    [("keep_last", "transient_local", "best_effort"), (1, 1, 2)],
    ids=["jazzy", "humble"],
)
def test_rosbag2s_files_tell_their_qos(tmp_path, names):
    """rosbag2 writes names from Jazzy on, numbers before (rosbag2_storage/qos.cpp)."""
    from mcap.writer import Writer

    history, durability, reliability = names
    qos = (
        f"- {{history: {history}, depth: 3, reliability: {reliability}, "
        f"durability: {durability}}}\n"
    )
    with (tmp_path / "bag.mcap").open("wb") as file:
        writer = Writer(file)
        writer.start(profile="ros2")
        schema = writer.register_schema(TEXT.type, "ros2msg", TEXT.definition.encode())
        writer.register_channel("/said", "cdr", schema, {"offered_qos_profiles": qos})
        writer.register_channel("/plain", "cdr", schema)
        json = writer.register_schema("thing", "jsonschema", b"{}")
        writer.register_channel("/foreign", "json", json)
        writer.finish()
    with McapReader(tmp_path / "bag.mcap") as reader:
        topics = {topic.name: (topic.latched, topic.reliable) for topic in reader.topics.values()}
    assert topics == {"/said": (True, False), "/plain": (False, True)}


def test_topics_are_chosen_by_whole_names():
    choice = TopicChoice(["/tf.*", "/.*/pose"], ["/hidden/.*"])
    names = ["/tf", "/tf_static", "/lead/pose", "/lead/pose_2", "/hidden/pose", "/a/tf"]
    assert [name for name in names if name in choice] == [
        "/tf",
        "/tf_static",
        "/lead/pose",
    ]
    assert "/any" in TopicChoice()
    with pytest.raises(ConfigError, match=r"topics '\*': .*expected a regular expression"):
        TopicChoice(["*"])


@pytest.mark.parametrize(
    "qos",
    ["{" * 3000, "!!int ''", "2001-99-99", "5", "- 1", "a: *b", "", "[" * 200_000],
)
def test_a_qos_that_is_none_is_that_of_who_knows_nothing(tmp_path, qos):
    from mcap.writer import Writer

    path = tmp_path / "a.mcap"
    with path.open("wb") as file:
        writer = Writer(file)
        writer.start(profile="ros2")
        schema = writer.register_schema("std_msgs/msg/String", "ros2msg", b"string data")
        channel = writer.register_channel("/a", "cdr", schema, {"offered_qos_profiles": qos})
        writer.add_message(channel, 1, b"\0\1\0\0\1\0\0\0\0", 1, 0)
        writer.finish()
    with McapReader(path) as reader:
        (topic,) = reader.topics.values()
        assert (topic.latched, topic.reliable) == (False, True)


def test_damage_anywhere_is_a_typed_error(tmp_path):
    """Each byte of a packed file in turn: what mcap and its packers raise is listed nowhere."""
    path = tmp_path / "a.mcap"
    written(path, 1)[0].close()
    data = bytearray(path.read_bytes())
    outcomes = set()
    for place in range(0, len(data), 7):
        damaged = data.copy()
        damaged[place] ^= 0xFF
        path.write_bytes(damaged)
        try:
            with McapReader(path) as reader:
                outcomes.add(sum(1 for _ in reader))
        except CaptureError as error:
            outcomes.add(type(error).__name__)
    # the chunk holds all three messages; without a sound summary they are read in its order
    assert outcomes == {3, "CaptureError"}


def test_a_chunk_that_says_it_becomes_gigabytes_is_not_unpacked(tmp_path):
    """The chunk's own size in the records of a file without an end, and in the index of a whole
    one.
    """
    import struct

    from mcap.reader import SeekingReader

    path = tmp_path / "a.mcap"
    written(path, 1)[0].close()
    data = path.read_bytes()
    with path.open("rb") as file:
        size = struct.pack(
            "<Q", SeekingReader(file).get_summary().chunk_indexes[0].uncompressed_size
        )
    assert data.count(size) >= 2
    damaged = data.replace(size, struct.pack("<Q", 4_000_000_000))
    for end in (len(damaged), len(damaged) - 100):
        path.write_bytes(damaged[:end])
        with pytest.raises(
            CaptureError,
            match=r"a chunk of 4,000,000,000 bytes, expected at most 256,000,000",
        ):
            McapReader(path)


def test_a_pipe_is_no_recording(tmp_path):
    import os

    os.mkfifo(tmp_path / "pipe")
    for read_it in (is_bag, McapReader):
        with pytest.raises(OSError, match="expected a regular file"):
            read_it(tmp_path / "pipe")


def test_a_cut_file_is_made_whole_with_every_message_that_can_be_read(tmp_path):
    from mcap.reader import SeekingReader

    file = tmp_path / "a.mcap"
    cut = tmp_path / "cut.mcap"
    whole = tmp_path / "whole.mcap"
    writer, content = written(file, 3)
    flushed = file.read_bytes()
    writer.close()
    for length in (60, len(flushed) // 2, len(flushed) - 1, len(flushed)):
        cut.write_bytes(flushed[:length])
        found = {}
        with McapReader(cut) as reader, pytest.raises(TruncatedCaptureError):
            read(reader, found)
        if not found:
            with pytest.raises(CaptureError, match=r"cut\.mcap holds no message: "):
                recover(cut, whole)
            assert not whole.exists()
            continue
        recovery = recover(cut, whole, overwrite=True)
        assert recovery.messages == sum(map(len, found.values()))
        assert recovery.seconds == max(0, max(map(len, found.values()), default=0) - 1)
        # a cut within a record loses the record's bytes; 9 are its kind and length
        lost = recovery.left_out.total()
        assert (lost > 0) is (length < len(flushed))
        begin = length - lost
        if lost > 9:
            assert begin + 9 + int.from_bytes(flushed[begin + 1 : begin + 9], "little") > length
        with McapReader(whole) as reader:
            assert reader.is_whole
            assert read(reader) == found
            assert {topic.name: topic for topic in reader.topics.values()} == {
                topic.name: topic for topic in (TEXT, MAP, FAST)
            }
    assert found == content
    with whole.open("rb") as stream:
        assert SeekingReader(stream).get_summary().statistics.message_count == 9
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.mcap", "cut.mcap", "whole.mcap"]


def test_all_but_a_damaged_chunk_is_recovered(tmp_path):
    """Each flush ends a chunk; that of the first second holds the descriptions of all topics."""
    file = tmp_path / "a.mcap"
    whole = tmp_path / "whole.mcap"
    ends = []
    writer = McapWriter(file)
    channel = writer.add_topic(TEXT)
    for second in range(4):
        writer.write(channel, f"{second}".encode() * 4000, second * SECOND)
        writer.flush()
        ends.append(file.stat().st_size)
    writer.close()

    sound = file.read_bytes()
    for number in range(4):
        begin = ends[number - 1] if number else 60
        middle = (begin + ends[number]) // 2
        file.write_bytes(sound[: middle - 5] + b"\xa5" * 5 + sound[middle:])
        with McapReader(file) as reader, pytest.raises(CaptureError, match="damaged"):
            list(reader)
        recovery = recover(file, whole, overwrite=True)
        assert (recovery.messages, recovery.topics) == (3, 1)
        assert "bytes of damaged chunks" in recovery.left_out.text()
        with McapReader(whole) as reader:
            kept = [message.data[:1].decode() for message in reader]
            assert kept == [str(second) for second in range(4) if second != number]
            assert [topic.name for topic in reader.topics.values()] == [TEXT.name]


def recording(path, compression):
    """Write four chunks; the first describes the topic. Return the ends of the chunks' records."""
    from mcap.writer import Writer

    ends = []
    with path.open("wb") as file:
        writer = Writer(file, compression=compression)
        writer.start(profile="ros2")
        schema = writer.register_schema(TEXT.type, "ros2msg", TEXT.definition.encode())
        channel = writer.register_channel(TEXT.name, "cdr", schema)
        for second in range(4):
            writer.add_message(channel, second * SECOND, f"{second}".encode() * 20, second * SECOND)
            writer.flush()
            ends.append(file.tell())
        writer.finish()
    return ends


@pytest.mark.parametrize("damaged_chunk", [0, 2])
def test_descriptions_in_chunks_come_before_those_of_the_summary(tmp_path, damaged_chunk):
    """The summary is damaged, and has no CRC, which is the footer's last field."""
    from mcap.writer import CompressionType

    file = tmp_path / "a.mcap"
    whole = tmp_path / "whole.mcap"
    ends = recording(file, CompressionType.NONE)
    data = bytearray(file.read_bytes())
    data[-12:-8] = bytes(4)
    data[ends[-1] + data[ends[-1] :].index(b"std_msgs")] ^= 1
    message = data.index(f"{damaged_chunk}".encode() * 20)
    data[message] ^= 0xA5
    file.write_bytes(data)

    assert recover(file, whole).messages == 3
    with McapReader(whole) as reader:
        (topic,) = reader.topics.values()
        assert topic.type == (TEXT.type if damaged_chunk else "rtd_msgs/msg/String")
        kept = [message.data[:1].decode() for message in reader]
        assert kept == [str(second) for second in range(4) if second != damaged_chunk]


def test_a_damaged_summary_counts_as_none(tmp_path):
    """Bytes of it in turn: all messages keep their topic, and none comes to them."""
    from mcap.writer import CompressionType

    file = tmp_path / "a.mcap"
    whole = tmp_path / "whole.mcap"
    ends = recording(file, CompressionType.NONE)
    sound = file.read_bytes()
    # DataEnd's record has 9 + 4 bytes; the last magic 8
    begin = ends[-1] + 13
    # the kinds of a channel and of a message differ in the last bit
    channel = sound.index(b"\4", sound.index(b"string data", begin))
    for place in (channel, *range(begin, len(sound) - 8, 17)):
        damaged = bytearray(sound)
        damaged[place] ^= 1
        file.write_bytes(damaged)
        with McapReader(file) as reader:
            assert not reader.is_whole
            assert reader.size == 4
            assert [(topic.name, topic.type) for topic in reader.topics.values()] == [
                (TEXT.name, TEXT.type)
            ]
            assert b"".join(message.data[:1] for message in reader) == b"0123"

    recovery = recover(file, whole)
    assert (recovery.messages, recovery.topics, recovery.left_out.text()) == (4, 1, "")


def test_metadata_do_not_depend_on_a_damaged_summary(tmp_path):
    """Bytes of the summary in turn; the last one of all is missing where the file is cut."""
    from mcap.writer import Writer

    file = tmp_path / "a.mcap"
    with file.open("wb") as stream:
        writer = Writer(stream)
        writer.start()
        writer.add_metadata("scenario", {"map": "Valley"})
        writer.add_metadata("other", {"map": "Hills"})
        writer.finish()

    sound = file.read_bytes()
    begin = sound.index(b"Hills") + len(b"Hills") + 13
    for place in (None, *range(begin, len(sound) - 8, 5)):
        damaged = bytearray(sound)
        if place is None:
            del damaged[-1]
        else:
            damaged[place] ^= 1
        file.write_bytes(damaged)
        with McapReader(file) as reader:
            assert reader.metadata("scenario") == {"map": "Valley"}, place
            assert reader.metadata("none") == {}


# a chunk's record: kind, length, first and last time, size (8 bytes), CRC (4), compression's length
@pytest.mark.parametrize(
    ("offset", "reason"),
    [(1 + 8 + 8 + 8 + 7, "expected at most"), (1 + 8 + 8 + 8 + 8 + 4 + 4, "utf-8")],
    ids=["size", "compression"],
)
@pytest.mark.parametrize("is_cut", [False, True], ids=["whole", "cut"])
def test_damage_in_a_chunks_header_costs_that_chunk_alone(tmp_path, offset, reason, is_cut):
    from mcap.writer import CompressionType

    file = tmp_path / "a.mcap"
    whole = tmp_path / "whole.mcap"
    ends = recording(file, CompressionType.ZSTD)
    data = bytearray(file.read_bytes()[: ends[-1] if is_cut else None])
    second_chunk = data.index(b"\6", ends[0])
    data[second_chunk + offset] ^= 0xA5
    file.write_bytes(data)

    recovery = recover(file, whole)
    size = 9 + int.from_bytes(data[second_chunk + 1 : second_chunk + 9], "little")
    assert recovery.left_out == {"bytes of damaged chunks": size}
    assert reason in recovery.left_out.text()
    with McapReader(whole) as reader:
        assert b"".join(message.data[:1] for message in reader) == b"023"


def test_messages_without_a_description_are_counted(tmp_path):
    """Of a file that lost its beginning: kind 5 is a message; channel, sequence, two times."""
    from mcap.writer import Writer

    message = struct.pack("<BQHIQQ", 5, 22, 7, 0, 10, 10)
    file = tmp_path / "a.mcap"
    with file.open("wb") as stream:
        Writer(stream).start(profile="ros2")
    file.write_bytes(file.read_bytes() + 3 * message)
    with McapReader(file) as reader:
        assert reader.left_out == {"channel 7": "no record describes its messages"}
    reason = r"left out: messages of channel 7 \(3; the first: no record before them describes it"
    with pytest.raises(CaptureError, match=rf"a\.mcap holds no message: {reason}"):
        recover(file, tmp_path / "whole.mcap")


@pytest.mark.parametrize("length", [0, 8, 30])
def test_of_nothing_nothing_is_recovered(tmp_path, length):
    """An empty file, its first bytes alone, and no message behind them."""
    file = tmp_path / "a.mcap"
    written(file, 1)[0].close()
    file.write_bytes(file.read_bytes()[:length])
    with pytest.raises(CaptureError, match=r"a\.mcap holds no message"):
        recover(file, tmp_path / "whole.mcap")
    assert [path.name for path in tmp_path.iterdir()] == ["a.mcap"]


def test_a_recovery_writes_over_nothing_and_needs_a_cut_file(tmp_path):
    file = tmp_path / "a.mcap"
    whole = tmp_path / "whole.mcap"
    writer, _ = written(file, 1)
    with pytest.raises(ConfigError, match=r"a\.mcap exists"):
        recover(file, file, overwrite=True)

    recover(file, whole)
    with pytest.raises(ConfigError, match=r"whole\.mcap exists"):
        recover(file, whole)

    writer.close()
    with pytest.raises(ConfigError, match=r"a\.mcap is whole"):
        recover(file, whole, overwrite=True)

    other = tmp_path / "other.mcap"
    other.write_bytes(b"\xd4\xc3\xb2\xa1" * 20)
    with pytest.raises(CaptureError, match=r"other\.mcap: no MCAP file"):
        recover(other, tmp_path / "new.mcap")
    assert not (tmp_path / "new.mcap").exists()
