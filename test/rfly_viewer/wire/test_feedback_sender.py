# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Datagrams to port 20006, received by a socket and taken apart with `struct`."""

from __future__ import annotations

import socket
import struct
from collections import Counter

import numpy as np
import pytest
from node_harness import PATIENCE

from rfly_common.errors import CommandError
from rfly_viewer.scene.scene_commands import RequestObject
from rfly_viewer.scene.scene_state import SceneState
from rfly_viewer.scene.state_batches import read_batches
from rfly_viewer.scene.viewpoint import Viewpoint
from rfly_viewer.wire.feedback_sender import FeedbackSender


class Host:
    """A host on 20006 (here: a free port), and the viewer's state and sender."""

    def __init__(self):
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.socket.settimeout(PATIENCE)
        self.sender = FeedbackSender(port=self.socket.getsockname()[1])
        self.state = SceneState()

    def pose(self, vehicle_id, x, z, now_s, vehicle_type=9999):
        raw = struct.pack(
            "<3i7f", 1234567890, vehicle_id, vehicle_type, 500.0, x, 0.0, z, 0.0, 0.0, 0.5
        )
        for said in read_batches([raw], Counter()):
            self.state.apply(said, now_s)

    def report(self, now_s, data=True, crashes=False):
        before = self.sender.sent
        poses = self.state.vehicles.world(self.state.terrain)
        self.sender.report(
            self.state.vehicles, poses, self.state.terrain, data=data, crashes=crashes, now_s=now_s
        )
        return [self.socket.recv(4096) for _ in range(self.sender.sent - before)]

    def answer(self, request, camera=None):
        poses = self.state.vehicles.world(self.state.terrain)
        self.sender.answer(request, poses, camera, 12.5)
        return self.socket.recv(4096)

    def close(self):
        self.sender.close()
        self.socket.close()


@pytest.fixture
def host():
    made = Host()
    yield made
    made.close()


def crash_data(datagram):
    checksum, vehicle_id, vehicle_type, crash, seconds, *floats, name = struct.unpack(
        "<4i1d29f20s", datagram
    )
    assert checksum == 1234567897
    return vehicle_id, vehicle_type, crash, seconds, floats, name.rstrip(b"\0")


def test_vehicles_that_changed_are_reported_and_others_not(host):
    host.pose(1, 0.0, -10.0, now_s=1.0)
    host.pose(2, 50.0, -10.0, now_s=1.0)
    assert [crash_data(raw)[0] for raw in host.report(1.0)] == [1, 2]
    host.pose(2, 51.0, -10.0, now_s=1.2)
    [(vehicle_id, vehicle_type, crash, seconds, floats, name)] = map(crash_data, host.report(1.3))
    assert (vehicle_id, vehicle_type, crash, seconds, name) == (2, 9999, 0, 1.3, b"")
    expected = [0, 0, 0, 51, 0, -10, 0, 0, 0, 0, 0, 0]
    assert floats[:12] == expected  # VelE, PosE, CrashPos, targetPos
    assert floats[12:15] == pytest.approx([0, 0, 0.5], abs=1e-6)
    assert floats[15:23] == [500.0] * 8
    assert host.report(1.5) == []


def test_contacts_are_reported_with_both_partners_and_the_ground(host):
    """Boxes 1 m apart touch; a box half a metre high, 0.7 m deep, is in the ground."""
    for vehicle_id, x, z in (
        (21, 0.0, -9.0),
        (22, 1.0, -9.0),
        (23, 90.0, 0.2),
    ):
        host.pose(vehicle_id, x, z, now_s=1.0)
    found = {raw[0]: raw[1:] for raw in map(crash_data, host.report(1.0))}
    expected = {21: 22, 22: 21, 23: -2}
    assert {i: found[i][1] for i in found} == expected
    assert found[21][3][9:12] == [1, 0, -9]  # targetPos: where the other one is
    assert [found[i][4] for i in (21, 23)] == [b"22", b"ground"]


def test_a_crash_is_told_once_for_each_contact_that_begins(host):
    host.pose(21, 0.0, -9.0, now_s=1.0)
    host.pose(22, 1.0, -9.0, now_s=1.0)
    crashes = [struct.unpack("<3i", raw) for raw in host.report(1.0, data=False, crashes=True)]
    assert crashes == [(1234567890, 21, 22), (1234567890, 22, 21)]
    assert host.report(2.0, data=False, crashes=True) == []
    host.pose(22, 9.0, -9.0, now_s=2.5)
    assert host.report(3.0, data=False, crashes=True) == []
    host.pose(22, 1.0, -9.0, now_s=3.5)
    assert len(host.report(4.0, data=False, crashes=True)) == 2


def test_nothing_is_sent_unasked(host):
    host.pose(1, 0.0, 50.0, now_s=1.0)
    assert host.report(1.0, data=False, crashes=False) == []


def test_a_vehicle_request_is_answered_with_pose_and_box(host):
    """A person's box is 1.79 m high, 0.48 x 0.72 m.

    The origin is at the feet; the middle is 0.895 m above it.
    """
    host.pose(30, 5.0, -2.0, now_s=1.0, vehicle_type=30)
    checksum, vehicle_id, *floats, seconds = struct.unpack(
        "<2i16f1d", host.answer(RequestObject(1, "30"))
    )
    assert (checksum, vehicle_id, seconds) == (1234567891, 30, 12.5)
    assert floats[:6] == pytest.approx([5, 0, -2, 0, 0, 0.5], abs=1e-6)
    expected = [np.cos(0.25), 0, 0, np.sin(0.25)]
    assert floats[6:10] == pytest.approx(expected, abs=1e-6)
    assert floats[10:13] == pytest.approx([5, 0, -2.895], abs=1e-6)
    assert floats[13:] == pytest.approx([0.24, 0.36, 0.895], abs=1e-6)


def test_a_camera_request_is_answered_with_the_view(host):
    camera = Viewpoint(np.array([1.0, 2.0, -3.0]), np.array([0.0, -0.5, 1.0]))
    answer = host.answer(RequestObject(0, "4"), (camera, 90.0, 1280, 720))
    checksum, seq_id, type_id, height, width, *floats, _ = struct.unpack("<5i11f1d", answer)
    assert (checksum, seq_id, type_id, height, width) == (1234567891, 4, 1, 720, 1280)
    assert floats[:7] == pytest.approx([90, 1, 2, -3, 0, -0.5, 1], abs=1e-6)


@pytest.mark.parametrize(
    "request_",
    [
        RequestObject(0, "0"),
        RequestObject(1, "77"),
        RequestObject(2, "Tree"),
    ],
)
def test_what_there_is_no_answer_to_is_said(host, request_):
    with pytest.raises(CommandError, match=f"RflyReqObjData {request_.kind}"):
        host.answer(request_)
    assert host.sender.sent == 0
