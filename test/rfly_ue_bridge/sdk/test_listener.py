# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""UE4CtrlAPI's listening half, on a port of its own.

Records have the SDK's names; the SDK's weak spots are healed.
"""

from __future__ import annotations

import copy
import socket
import struct
import time

import numpy as np
import pytest
from node_harness import PATIENCE

from rfly_ue_bridge.sdk import listener
from rfly_ue_bridge.sdk.listener import (
    CameraData,
    CoptReqData,
    ObjReqData,
    PX4SILIntFloat,
    reqVeCrashData,
)
from rfly_ue_bridge.sdk.ue4_ctrl_api import UE4CtrlAPI

HOST = "127.83.17.6"
NEW = 1234567891
REPORT = 1234567897


def crash_data(copter_id, x=1.0, name=b"Tree_7"):
    numbers = [*range(10, 13), x, 2.0, -3.0, *range(16, 39)]  # VelE, PosE, then the others
    return struct.pack("<4i1d29f20s", REPORT, copter_id, 30, -1, 12.5, *numbers, name)


def camera(seq_id, fov=90.0):
    return struct.pack("<5i11f1d", NEW, seq_id, 2, 480, 640, fov, *range(1, 11), 1.5)


def camera_old(seq_id):
    return struct.pack("<5i7f1d", NEW, seq_id, 3, 48, 64, 45.0, *range(21, 27), 2.5)


def vehicle(copter_id):
    return struct.pack("<2i16f1d", NEW, copter_id, *range(1, 17), 3.5)


def vehicle_old(copter_id):
    return struct.pack("<2i12f1d", NEW, copter_id, *range(1, 13), 4.5)


def scene_object(seq_id, name):
    return struct.pack("<2i16f1d32s", NEW, seq_id, *range(1, 17), 5.5, name)


def scene_object_old(seq_id, name):
    return struct.pack("<2i12f1d32s", NEW, seq_id, *range(1, 13), 6.5, name)


def sil(copter_id):
    return struct.pack("<10i20f", REPORT, copter_id, *range(8), *range(20))


def gimbal(seq_id):
    return struct.pack("<2H1I14H28f", 12346, seq_id, 7, *range(14), *range(28))


class Listening:
    """A listening UE4CtrlAPI and a RflySim3D that speaks to it."""

    def __init__(self, port):
        self.ue = UE4CtrlAPI(HOST)
        self.sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.address = (HOST, port)
        self.marks = 1_000_000

    def say(self, *datagrams):
        """Send them, then wait until a last one has arrived behind them."""
        for datagram in datagrams:
            self.sender.sendto(datagram, self.address)
        self.marks += 1
        mark = self.marks
        self.sender.sendto(sil(mark), self.address)
        until = time.monotonic() + PATIENCE
        while not any(record.CopterID == mark for record in self.ue.inSilVect):
            assert time.monotonic() < until, "nothing arrived"
            assert self.ue.trueMsgEvent.wait(PATIENCE)
            self.ue.trueMsgEvent.clear()


@pytest.fixture
def listening(monkeypatch):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind((HOST, 0))
        port = free.getsockname()[1]
    monkeypatch.setattr(listener, "ANY", HOST)
    monkeypatch.setattr(listener, "FEEDBACK_PORT", port)
    monkeypatch.setattr(listener, "INTERFACE", "127.0.0.1")
    opened = Listening(port)
    yield opened
    opened.ue._listener.end()
    opened.sender.close()


def test_vehicle_position_and_data(listening):
    ue = listening.ue
    ue.initUE4MsgRec()
    listening.say(crash_data(7), crash_data(8, 5.0))

    assert ue.getUE4Pos(7) == [1.0, 2.0, -3.0, 1]
    assert ue.getUE4Pos(8) == [5.0, 2.0, -3.0, 1]
    assert ue.getUE4Pos(9) == [0, 0, 0, 0]
    assert ue.getUE4Data(9) == 0

    record = ue.getUE4Data(7)
    assert isinstance(record, reqVeCrashData)
    head = (record.checksum, record.copterID, record.vehicleType, record.CrashType)
    assert head == (REPORT, 7, 30, -1)

    assert record.runnedTime == 12.5
    assert record.VelE == (10, 11, 12)
    assert record.PosE == (1, 2, -3)
    assert record.CrashPos == (16, 17, 18)
    assert record.targetPos == (19, 20, 21)
    assert record.AngEuler == (22, 23, 24)
    assert record.MotorRPMS == tuple(range(25, 33))
    assert record.ray == tuple(range(33, 39))
    assert record.CrashedName == "Tree_7"


def test_first_question_starts_the_listener_and_waits_a_second(listening, waits):
    assert listening.ue.stopFlagUE4
    assert listening.ue.getUE4Pos() == [0, 0, 0, 0]
    assert waits == [1.0]
    assert not listening.ue.stopFlagUE4
    assert listening.ue.getUE4Data() == 0
    assert waits == [1.0]


def test_camera_vehicle_and_object_by_their_names(listening):
    ue = listening.ue
    ue.initUE4MsgRec()
    listening.say(
        camera(3),
        vehicle(5),
        scene_object(9, "Größe".encode()),
        gimbal(4),
    )

    seen = ue.getCamCoptObj(0, 3)
    assert isinstance(seen, CameraData)
    picture = (seen.TypeID, seen.DataHeight, seen.DataWidth, seen.CameraFOV)
    assert (seen.SeqID, *picture) == (3, 2, 480, 640, 90)
    expected = (
        (1, 2, 3),
        (4, 5, 6),
        (7, 8, 9, 10),
    )
    assert (seen.PosUE, seen.angEuler, seen.angQuat) == expected
    assert seen.timestmp == seen.timestamp == 1.5

    seen = ue.getCamCoptObj(1, 5)
    assert isinstance(seen, CoptReqData)
    assert seen.CopterID == seen.copterID == 5
    expected = (
        (1, 2, 3),
        (4, 5, 6),
        (7, 8, 9, 10),
    )
    assert (seen.PosUE, seen.angEuler, seen.angQuat) == expected
    assert seen.boxOrigin == (11, 12, 13)
    assert seen.BoxExtent == seen.boxExtent == (14, 15, 16)
    assert ue.getCamCoptObj(1, 6) == 0

    seen = ue.getCamCoptObj(2, "Größe")
    assert isinstance(seen, ObjReqData)
    assert (seen.seqID, seen.ObjName, seen.name) == (9, "Größe", "Größe")
    assert seen.timestmp == 5.5
    assert ue.getCamCoptObj(2, "Tree") == 0

    assert ue.getCamCoptObj(0) == ue.getCamCoptObj(7, 3) == 0
    assert [record.SensorPosXYZ for record in ue.CamDataVect1] == [(1, 2, 3)]
    assert ue.CamDataVect1[0].otherParams == tuple(range(12, 28))


@pytest.mark.parametrize(("type_id", "name"), [(1, "5"), (2, 9)])
def test_wrong_kinds_of_names_are_told(listening, capsys, type_id, name):
    assert listening.ue.getCamCoptObj(type_id, name) == 0
    told = capsys.readouterr().out
    assert repr(name) in told
    assert told.count("\n") == 1


def test_old_layouts_renew_the_same_record_and_leave_the_quaternion(listening):
    ue = listening.ue
    ue.initUE4MsgRec()
    listening.say(
        camera(3),
        vehicle(5),
        scene_object(9, b"Tree"),
        camera_old(4),
    )
    records = ue.getCamCoptObj(0, 3), ue.getCamCoptObj(1, 5), ue.getCamCoptObj(2, "Tree")
    listening.say(
        camera_old(3),
        vehicle_old(5),
        scene_object_old(9, b"Rock"),
    )
    assert records == (
        ue.getCamCoptObj(0, 3),
        ue.getCamCoptObj(1, 5),
        ue.getCamCoptObj(2, "Rock"),
    )
    assert [record.timestmp for record in records] == [2.5, 4.5, 6.5]

    expected = [(7, 8, 9, 10)] * 3
    assert [record.angQuat for record in records] == expected
    assert records[1].boxOrigin == (7, 8, 9)
    assert ue.getCamCoptObj(0, 4).angQuat == (0, 0, 0, 0)
    assert len(ue.CamDataVect) == 2
    assert len(ue.CoptDataVect) == len(ue.ObjDataVect) == 1


def test_a_repeated_key_renews_its_record_and_its_flags(listening):
    ue = listening.ue
    ue.initUE4MsgRec()
    listening.say(crash_data(7), crash_data(8))
    first = ue.getUE4Data(7)
    first.hasUpdate = False
    ue.inReqUpdateVect[:] = [False, False]
    listening.say(crash_data(8, 6.0))
    assert not first.hasUpdate
    assert ue.inReqUpdateVect == [False, True]
    listening.say(crash_data(7, 7.0))
    assert first.hasUpdate
    assert first.PosE[0] == 7.0
    assert ue.inReqUpdateVect == [True, True]
    assert [record.copterID for record in ue.inReqVect] == [7, 8]


def test_what_ends_the_sdks_listening_does_not_end_ours(listening, capsys):
    """A name that is not UTF-8, a crash with another vehicle, a datagram of nothing."""
    ue = listening.ue
    ue.initUE4MsgRec()
    crash = struct.pack("<3i", 1234567890, 7, 8)
    wrong = struct.pack("<3i", 1234567891, 7, 9)
    listening.say(
        crash_data(6, name=b"\xff\xfe"), crash, crash, wrong, b"", bytes(160), crash_data(7)
    )
    assert ue.getUE4Pos(7)[3] == 1
    assert ue.getUE4Pos(6)[3] == 0
    told = capsys.readouterr().out
    assert "7" in told
    assert "8" in told
    assert told.count("\n") == 1  # the same crash once


def test_a_crash_of_the_scripts_vehicle_sets_its_flags(listening):
    """The listener reads what the SDK's does: only its CopterID, and a target of 0 or more."""
    ue = listening.ue
    assert (ue.CopterID, ue.isVehicleCrash, ue.isVehicleCrashID) == (1, False, -10)
    ue.CopterID = np.int64(7)
    ue.initUE4MsgRec()

    def crash(copter_id, target_id):
        listening.say(struct.pack("<3i", 1234567890, copter_id, target_id))
        return ue.isVehicleCrash, ue.isVehicleCrashID

    assert crash(1, 2) == (False, -10)
    assert crash(7, -1) == (False, -10)
    assert crash(7, 0) == (True, 0)
    ue.isVehicleCrash = False
    assert crash(7, 8) == (True, 8)
    ue.isVehicleCrash = False
    assert crash(7, 8) == (True, 8)  # printed once, told again
    assert ue.hasMsgEvent.is_set()


def test_records_are_bounded(listening, monkeypatch):
    monkeypatch.setattr(listener, "MAX_RECORDS", 3)
    ue = listening.ue
    ue.initUE4MsgRec()
    listening.say(*(crash_data(k) for k in range(1, 6)))
    ue.inReqUpdateVect[:] = [False] * 3
    listening.say(crash_data(4, 9.0), crash_data(1))
    assert [record.copterID for record in ue.inReqVect] == [4, 5, 1]
    assert ue.getUE4Pos(4)[0] == 9.0
    assert ue.inReqUpdateVect == [True, False, True]


def test_ending_needs_no_datagram_and_is_for_good(listening, waits):
    ue = listening.ue
    ue.initUE4MsgRec()
    ue.endUE4MsgRec()
    assert waits == [0.5]
    assert ue.stopFlagUE4
    with pytest.raises(OSError, match="make a new UE4CtrlAPI"):
        ue.initUE4MsgRec()
    with pytest.raises(OSError, match="make a new UE4CtrlAPI"):
        ue.getUE4Pos()


def test_starting_twice_keeps_the_records(listening):
    ue = listening.ue
    ue.initUE4MsgRec()
    listening.say(crash_data(7))
    ue.initUE4MsgRec()
    assert ue.getUE4Pos(7)[3] == 1


def test_two_objects_share_the_port_and_all_addresses_hear(monkeypatch, rflysim_ports):
    """The SDK's own address 0.0.0.0:20006 is shared; datagrams to the group reach both."""
    monkeypatch.setattr(listener, "INTERFACE", "127.0.0.1")

    one = UE4CtrlAPI()
    two = UE4CtrlAPI()
    one.initUE4MsgRec()
    two.initUE4MsgRec()

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton("127.0.0.1"))
        sender.sendto(vehicle(501), ("224.0.0.10", 20006))
        sender.sendto(vehicle(502), ("127.83.17.7", 20006))

    until = time.monotonic() + PATIENCE
    while not (two.getCamCoptObj(1, 501) and one.getCamCoptObj(1, 501)):
        assert time.monotonic() < until
        one.trueMsgEvent.wait(0.01)

    while not (two.getCamCoptObj(1, 502) or one.getCamCoptObj(1, 502)):
        assert time.monotonic() < until
        one.trueMsgEvent.wait(0.01)

    one._listener.end()
    two._listener.end()


def test_records_can_be_made_from_flat_numbers_copied_and_printed():
    record = CoptReqData(struct.unpack("<2i16f1d", vehicle(5)))
    assert record.CopterID == 5
    assert record.angQuat == (7, 8, 9, 10)
    record.CopyDataOld(struct.unpack("<2i12f1d", vehicle_old(6)))
    assert (record.CopterID, record.angQuat, record.timestmp) == (6, (7, 8, 9, 10), 4.5)
    again = copy.deepcopy(record)
    assert again is not record
    assert repr(again) == repr(record)
    assert "CopterID=6" in repr(record)
    assert PX4SILIntFloat(struct.unpack("<10i20f", sil(3))).inSILFLoats == tuple(range(20))
    assert CameraData().SeqID == 0
    assert ObjReqData(struct.unpack("<2i16f1d32s", scene_object(1, b"Tree"))).ObjName == "Tree"
    with pytest.raises(AttributeError, match="Wings"):
        record.Wings  # noqa: B018
