# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Recorded files as MAVLink's logs: listed, downloaded with gaps filled, and kept."""

from __future__ import annotations

import os

import pytest
from mavlink_station import OTHER_STATION, Station, of_type

from rfly_mavlink.stations.log_protocol import PACKET_BYTES, LogFolder

pytestmark = pytest.mark.needs("pymavlink")

YEAR_2020 = 1_577_836_800


@pytest.fixture
def folder(tmp_path):
    """Two logs, the second of four packets and a part, and files that are no logs."""
    for age, (name, size) in enumerate({"first": 7, "second": 4 * PACKET_BYTES + 25}.items()):
        path = tmp_path / f"{name}.mcap"
        path.write_bytes(bytes((7 * k + age) % 256 for k in range(size)))
        os.utime(path, (YEAR_2020 + age, YEAR_2020 + age))
    (tmp_path / "notes.txt").write_text("none")
    (tmp_path / "empty.mcap").touch()
    (tmp_path / "elsewhere.mcap").symlink_to("/etc/hostname")
    return tmp_path


def listed(station, start=0, end=0xFFFF):
    """Return the log entries that a station gets, as tuples."""
    entries = of_type(
        "LOG_ENTRY", station.send(station.d.MAVLink_log_request_list_message(1, 1, start, end))
    )
    return [(e.id, e.num_logs, e.last_log_num, e.time_utc, e.size) for e in entries]


def data(station, log_id, start, count, seconds=0.5):
    """Return the received bytes by offset."""
    before = len(station.heard)
    station.send(station.d.MAVLink_log_request_data_message(1, 1, log_id, start, count))
    station.run(seconds)
    return {
        m.ofs: bytes(m.data[: m.count])
        for m in of_type("LOG_DATA", station.heard[before:])
        if m.id == log_id
    }


def test_listed_and_downloaded_byte_by_byte(folder):
    (folder / "second.mcap").rename(folder / "second.MCAP")
    station = Station(logs=LogFolder(folder / "first.mcap"))  # a file stands for its folder
    assert listed(station) == [(0, 2, 1, YEAR_2020, 7), (1, 2, 1, YEAR_2020 + 1, 385)]
    assert listed(station, 1, 1) == [(1, 2, 1, YEAR_2020 + 1, 385)]

    parts = data(station, 1, 0, 0xFFFFFFFF)
    assert list(parts) == [0, 90, 180, 270, 360]
    assert b"".join(parts.values()) == (folder / "second.MCAP").read_bytes()

    assert data(station, 0, 0, 90) == {0: (folder / "first.mcap").read_bytes()}
    assert data(station, 1, 385, 90) == {385: b""}  # the end
    assert data(station, 9, 0, 90) == {0: b""}  # there is none


def test_gaps_are_filled_one_by_one_and_a_longer_request_replaces_the_last(folder):
    (folder / "second.mcap").write_bytes(bytes(100_000))
    station = Station(logs=LogFolder(folder))
    listed(station)
    request = station.d.MAVLink_log_request_data_message

    # gaps
    for start in (90, 900, 99_990):
        station.send(request(1, 1, 1, start, 90))
    station.run(0.1)
    assert [(m.ofs, m.count) for m in of_type("LOG_DATA", station.heard)] == [
        (90, 90),
        (900, 90),
        (99_990, 10),
    ]

    # a part at a time
    station.send(request(1, 1, 1, 0, 100_000))
    station.run(0.1)
    begun = of_type("LOG_DATA", station.heard)[3:]
    assert 0 < len(begun) < 100_000 // 90  # a part at a time

    # a longer request
    station.send(request(1, 1, 1, 50_000, 180))
    station.run(0.2)
    assert [m.ofs for m in of_type("LOG_DATA", station.heard)[3 + len(begun) :]] == [50_000, 50_090]

    # the end
    station.send(request(1, 1, 1, 0, 100_000))
    station.send(station.d.MAVLink_log_request_end_message(1, 1))
    before = len(of_type("LOG_DATA", station.heard))
    station.run(0.5)
    assert len(of_type("LOG_DATA", station.heard)) == before


def test_each_station_gets_its_own_data_and_a_silent_one_none(folder):
    """Two stations with the same ids ask for different logs at once."""
    (folder / "second.mcap").write_bytes(bytes(4_000_000))
    station = Station(logs=LogFolder(folder))
    request = station.d.MAVLink_log_request_data_message
    station.send(request(1, 1, 1, 0, 4_000_000))
    station.send(request(1, 1, 0, 0, 200), OTHER_STATION)
    station.send(station.d.MAVLink_log_request_end_message(1, 1), OTHER_STATION)
    station.send(request(1, 1, 0, 2, 90), OTHER_STATION)
    station.run(0.2)

    parts = of_type("LOG_DATA", station.other_heard)
    assert [(m.id, m.ofs, m.count) for m in parts] == [(0, 2, 5)]
    assert {m.id for m in of_type("LOG_DATA", station.heard)} == {1}

    # the rest is not sent to nobody
    station.run(16.0)
    before = len(of_type("LOG_DATA", station.heard))
    station.run(0.5)
    assert before < 4_000_000 // PACKET_BYTES
    assert len(of_type("LOG_DATA", station.heard)) == before


@pytest.mark.parametrize(
    ("changed", "shown"), [(-1, 0), (0, 0), (2**32 - 1, 2**32 - 1), (2**32, 0), (1e10, 0)]
)
def test_a_time_that_the_protocol_cannot_express_is_unknown(folder, changed, shown):
    """LOG_ENTRY.time_utc is a uint32 since 1970, "or 0 if not available" (common.xml)."""
    os.utime(folder / "first.mcap", (changed, changed))
    entries = listed(Station(logs=LogFolder(folder)))
    assert sorted(time for _, _, _, time, _ in entries) == sorted([shown, YEAR_2020 + 1])


def test_a_log_that_vanishes_while_it_is_sent_ends_there(folder):
    """A list that is made meanwhile does not matter."""
    (folder / "second.mcap").write_bytes(bytes(100_000))
    station = Station(logs=LogFolder(folder))
    listed(station)
    station.send(station.d.MAVLink_log_request_data_message(1, 1, 1, 0, 100_000))

    for path in folder.glob("*.mcap"):
        path.unlink()
    assert listed(station) == [(0, 0, 0, 0, 0)]

    station.run(0.5)
    assert of_type("LOG_DATA", station.heard)[-1].count == 0
    assert station.texts[-1].startswith("second.mcap: ")


def test_stations_cannot_erase_logs(folder):
    logs = sorted(folder.glob("*.mcap"))
    station = Station(logs=LogFolder(folder))
    station.send(station.d.MAVLink_log_erase_message(1, 1))
    assert station.texts[-1] == "Logs are kept: stations cannot erase them"
    assert sorted(folder.glob("*.mcap")) == logs

    assert listed(Station()) == [(0, 0, 0, 0, 0)]  # without a folder there are no logs
