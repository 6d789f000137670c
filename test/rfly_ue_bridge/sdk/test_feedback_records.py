# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Which record a packet renews."""

from __future__ import annotations

import pytest
from feedback_datagrams import DATAGRAMS

from rfly_ue_bridge.codec.from_rflysim3d import (
    CAMERA_DATA_OLD,
    COPT_REQ_DATA,
    COPTER_SIM_CRASH,
    FROM_RFLYSIM3D,
    OBJ_REQ_DATA,
    OBJ_REQ_DATA_OLD,
)
from rfly_ue_bridge.sdk.listener import FeedbackRecords


def packet(wire_name, /, **changes):
    """The hand-written datagram of a packet, with other values in some fields."""
    decoded = FROM_RFLYSIM3D.decode(bytes.fromhex(DATAGRAMS[wire_name][0]))
    return decoded.type.make(**{**decoded.values, **changes})


LOOK_UPS = {
    "CopterSimCrash": lambda records: records.crash(5),
    "PX4SILIntFloat": lambda records: records.sil(7),
    "reqVeCrashData": lambda records: records.vehicle_crash(1001),
    "CameraData (old)": lambda records: records.camera(11),
    "CameraData": lambda records: records.camera(11),
    "CoptReqData (old)": lambda records: records.vehicle(12),
    "CoptReqData": lambda records: records.vehicle(12),
    "ObjReqData (old)": lambda records: records.object("Ziel_ä"),
    "ObjReqData": lambda records: records.object("Ziel_ä"),
}


@pytest.mark.parametrize("name", LOOK_UPS)
def test_each_packet_is_kept_in_its_list(name):
    records = FeedbackRecords()
    assert all(look_up(records) is None for look_up in LOOK_UPS.values())
    record = records.update(packet(name))
    found = {other for other, look_up in LOOK_UPS.items() if look_up(records) is record}
    assert {other.removesuffix(" (old)") for other in found} == {name.removesuffix(" (old)")}
    for field, value in DATAGRAMS[name][2].items():
        assert getattr(record, field) == value


def test_a_gimbal_has_no_record():
    assert FeedbackRecords().update(packet("VisionSensorReqNew")) is None


def test_a_repeated_key_renews_its_record_in_place():
    records = FeedbackRecords()
    first = records.update(packet("CoptReqData"))
    other = records.update(packet("CoptReqData", copterID=13))
    assert other is not first
    assert records.update(packet("CoptReqData", PosUE=(1.0, 1.0, 1.0))) is first
    assert first.PosUE == (1.0, 1.0, 1.0)
    assert other.PosUE == (9.0, 10.0, -11.0)


@pytest.mark.parametrize("name", ["CameraData", "CoptReqData", "ObjReqData"])
def test_old_and_new_layout_share_a_record_and_the_old_leaves_the_quaternion(name):
    records = FeedbackRecords()
    record = records.update(packet(f"{name} (old)"))
    assert record.angQuat == (0.0, 0.0, 0.0, 0.0)
    assert records.update(packet(name)) is record
    assert record.angQuat == (4.0, 5.0, 6.0, 7.0)
    assert records.update(packet(f"{name} (old)", timestamp=99.0)) is record
    assert (record.timestamp, record.angQuat) == (99.0, (4.0, 5.0, 6.0, 7.0))


def test_objects_are_kept_by_number_and_found_by_their_present_name():
    records = FeedbackRecords()
    record = records.update(packet(OBJ_REQ_DATA.name, seqID=1, name="Baum"))
    records.update(packet(OBJ_REQ_DATA_OLD.name, seqID=2, name="Haus"))
    assert records.object("Haus").seqID == 2
    records.update(packet(OBJ_REQ_DATA.name, seqID=1, name="Turm"))
    assert records.object("Baum") is None
    assert records.object("Turm") is record


def test_of_two_objects_of_one_name_the_newest_answers():
    records = FeedbackRecords()
    records.update(packet(OBJ_REQ_DATA.name, seqID=1, name="Baum"))
    records.update(packet(OBJ_REQ_DATA.name, seqID=2, name="Baum"))
    records.update(packet(OBJ_REQ_DATA.name, seqID=1, name="Baum"))
    assert records.object("Baum").seqID == 1


def test_the_least_recently_renewed_record_is_forgotten_first():
    records = FeedbackRecords(max_records=2)
    for copter_id in (1, 2, 1, 3):
        records.update(packet(COPTER_SIM_CRASH.name, copterID=copter_id))
        records.update(packet(CAMERA_DATA_OLD.name, SeqID=copter_id))
        records.update(packet(COPT_REQ_DATA.name, copterID=copter_id))
    for look_up in (records.crash, records.camera, records.vehicle):
        assert [look_up(copter_id) is not None for copter_id in (1, 2, 3)] == [True, False, True]
