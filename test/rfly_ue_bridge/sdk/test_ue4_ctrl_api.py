# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""UE4CtrlAPI's datagrams, byte by byte on real sockets.

RflySim3D's three windows have a loopback address of their own. The bytes were put together by hand
from the wire table; `F` and `D` are the IEEE 754 forms of small numbers.
"""

from __future__ import annotations

import copy
import inspect
import socket
import struct
import time

import numpy as np
import pytest
from node_harness import PATIENCE

from rfly_ue_bridge.sdk import ue4_ctrl_api
from rfly_ue_bridge.sdk.ue4_ctrl_api import UE4CtrlAPI

BROADCAST = "127.255.255.255"

F = {
    0: "00000000",
    1: "0000803f",
    2: "00000040",
    3: "00004040",
    4: "00008040",
    5: "0000a040",
    6: "0000c040",
    7: "0000e040",
    8: "00000041",
    9: "00001041",
    10: "00002041",
    11: "00003041",
    12: "00004041",
    13: "00005041",
    14: "00006041",
    15: "00007041",
    16: "00008041",
    30: "0000f041",
    1000: "00007a44",
    -1: "000080bf",
    -2: "000000c0",
    0.5: "0000003f",
    0.25: "0000803e",
    -0.125: "000000be",
    2.5: "00002040",
}
D = {
    0: "0000000000000000",
    1: "000000000000f03f",
    2: "0000000000000040",
    3: "0000000000000840",
    4: "0000000000001040",
    16: "0000000000003040",
    -1: "000000000000f0bf",
    -2: "00000000000000c0",
    1.5: "000000000000f83f",
    -2.5: "00000000000004c0",
    3.5: "0000000000000c40",
    12.5: "0000000000002940",
}


def floats(*numbers):
    return "".join(F[number] for number in numbers)


def doubles(*numbers):
    return "".join(D[number] for number in numbers)


ID_100_TYPE_30 = "640000001e000000"
ID_1_TYPE_3 = "0100000003000000"


class Windows:
    """Three UDP sinks at ports 20010, 20011, 20012."""

    def __init__(self, host):
        self.sockets = []
        for k in range(3):
            sink = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            sink.bind((host, 20010 + k))
            sink.settimeout(PATIENCE)
            self.sockets.append(sink)

    def take(self, window=0):
        return self.sockets[window].recv(65536)

    def waiting(self):
        """Return the number of datagrams that wait at each window.

        On loopback they have arrived when `sendto` returns.
        """
        counts = []
        for sink in self.sockets:
            sink.setblocking(False)
            count = 0
            while True:
                try:
                    sink.recv(65536)
                except BlockingIOError:
                    break
                count += 1
            sink.settimeout(PATIENCE)
            counts.append(count)
        return counts

    def close(self):
        for sink in self.sockets:
            sink.close()


@pytest.fixture
def windows(rflysim_host):
    opened = Windows(rflysim_host)
    yield opened
    opened.close()


@pytest.fixture
def ue(rflysim_host):
    return UE4CtrlAPI(rflysim_host)


@pytest.fixture
def waits(monkeypatch):
    """Waiting times of the calls, s; they are recorded, not slept."""
    waited = []
    monkeypatch.setattr(ue4_ctrl_api.time, "sleep", waited.append)
    return waited


CALLS = [
    pytest.param(
        "sendUE4Cmd",
        ("RflyChangeMapbyName Grasslands",),
        "d2029649" + b"RflyChangeMapbyName Grasslands".hex() + "00" * 22,
        id="Cmd",
    ),
    pytest.param(
        "sendUE4Cmd",
        (b"r.setres 720x405w",),
        "d2029649" + b"r.setres 720x405w".hex() + "00" * 35,
        id="b",
    ),
    pytest.param(
        "sendUE4Destroy",
        (1000,),
        "d2029649" + b"RflyDelVehicles 1000".hex() + "00" * 32,
        id="Destroy",
    ),
    pytest.param("sendUE4Cmd", ("x" * 249,), "d2029649" + "78" * 249 + "000000", id="long-Cmd"),
    pytest.param(
        "sendUE4Pos",
        (100, 30, 1000, [1.5, -2.5, 3.5], [0.5, 0.25, -0.125]),
        "d3029649"
        + ID_100_TYPE_30
        + "00000000" * 3
        + floats(*[1000] * 8, 0, 0, 0, 0.5, 0.25, -0.125)
        + doubles(1.5, -2.5, 3.5, -1),
        id="Pos",
    ),
    pytest.param(
        "sendUE4PosNew",
        (
            100,
            30,
            [1.5, -2.5, 3.5],
            [0.5, 0.25, -0.125],
            [9, 10, 11],
            [1, 2, 3, 4, 5, 6, 7, 8],
            12.5,
        ),
        "d3029649"
        + ID_100_TYPE_30
        + "00000000" * 3
        + floats(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 0.5, 0.25, -0.125)
        + doubles(1.5, -2.5, 3.5, 12.5),
        id="PosNew",
    ),
    pytest.param(
        "sendUE4Pos2Ground",
        (100, 30, 1000, [1, -2, 3], [0.5, 0.25, -0.125]),
        "d3029649" + ID_100_TYPE_30 + floats(1000, 1, -2, 3, 0.5, 0.25, -0.125),
        id="Pos2Ground",
    ),
    pytest.param(
        "sendUE4PosScale",
        (
            100,
            30,
            1000,
            [1, -2, 3],
            [0.5, 0.25, -0.125],
            [4, 5, 6],
        ),
        "d2029649" + ID_100_TYPE_30 + floats(1000, 1, -2, 3, 0.5, 0.25, -0.125, 4, 5, 6),
        id="PosScale",
    ),
    pytest.param(
        "sendUE4PosScale2Ground",
        (
            100,
            30,
            1000,
            [1, -2, 3],
            [0.5, 0.25, -0.125],
            [4, 5, 6],
        ),
        "d3029649" + ID_100_TYPE_30 + floats(1000, 1, -2, 3, 0.5, 0.25, -0.125, 4, 5, 6),
        id="PosScale2Ground",
    ),
    pytest.param(  # velocity before position in the call, after it in the packet
        "sendUE4PosSimple",
        (
            100,
            30,
            [1, 2, 3, 4, 5, 6, 7, 8],
            [9, 10, 11],
            [12, 13, 14],
            [0.5, 0.25, -0.125],
            12.5,
        ),
        "d2029649"
        + ID_100_TYPE_30
        + floats(1, 2, 3, 4, 5, 6, 7, 8, 12, 13, 14, 9, 10, 11, 0.5, 0.25, -0.125)
        + doubles(12.5),
        id="PosSimple",
    ),
    pytest.param(
        "sendUE4PosFull",
        (
            100,
            30,
            [1, 2, 3, 4, 5, 6, 7, 8],
            [9, 10, 11],
            [1.5, -2.5, 3.5],
            [14, 15, 16],
            [0.5, 0.25, -0.125],
        ),
        "15cd5b07"
        + ID_100_TYPE_30
        + "00000000"
        + floats(
            9, 10, 11, 0.5, 0.25, -0.125, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 14, 15, 16
        )
        + doubles(-1, 1.5, -2.5, 3.5, 0, 0, 0),
        id="PosFull",
    ),
    pytest.param(
        "sendUE4PosScale100",
        (
            [1, 65535],
            [3, 30],
            [1, 2, 3, 4, 5, 6],
            [0.5, 0.25, -0.125],
            [1000, 30],
            [100, 101, 65535],
        ),
        "d2029649"
        + "0100ffff"
        + "0000" * 98
        + "03001e00"
        + "0000" * 98
        + floats(1, 2, 3, 4, 5, 6, *[0] * 294)
        + floats(0.5, 0.25, -0.125, *[0] * 297)
        + "64006500ffff"
        + "0000" * 297
        + floats(1000, 30, *[0] * 98),
        id="PosScale100",
    ),
    pytest.param(
        "sendUE4PosScalePwm20",
        (
            [1, 65535],
            [3, 30],
            [1, 2, 3, 4, 5, 6],
            [0.5, 0.25, -0.125],
            [100, 101, 65535],
            [7, 8, 9, 10, 11],
            True,
        ),
        "d3029649"
        + "0100ffff"
        + "0000" * 18
        + "03001e00"
        + "0000" * 18
        + floats(1, 2, 3, 4, 5, 6, *[0] * 54)
        + floats(0.5, 0.25, -0.125, *[0] * 57)
        + "64006500ffff"
        + "0000" * 57
        + floats(7, 8, 9, 10, 11, *[0] * 155),
        id="PosScalePwm20",
    ),
    pytest.param(
        "sendUE4Attatch",
        ([1, 2, 1001], [100, 101], 3),
        "d4029649" + "01000000"
        "02000000"
        "e9030000" + "00000000" * 22 + "64000000"
        "65000000" + "00000000" * 23 + "03000000" + "00000000" * 24,
        id="Attatch",
    ),
    pytest.param(
        "sendUE4LabelID",
        (7, "größer", 16, [1, 2, 3]),
        "db029649"
        "07000000"
        "00000000"
        "01000000"
        "02000000"
        "03000000" + floats(1, 16) + "6772c3b6c39f6572" + "00" * 112,
        id="LabelID",
    ),
    pytest.param(
        "sendUE4LabelMsg",
        (7, "ab", 16, [-1, 256, 3], 2.5, 4),
        "db0296490700000004000000ffffffff0001000003000000" + floats(2.5, 16) + "6162" + "00" * 118,
        id="LabelMsg",
    ),
    pytest.param(
        "sendUE4SetStencilValueByCopterID",
        (5, 255),
        "d2029649" + b"RflySetStencilValueByCopterID 5 255".hex() + "00" * 17,
        id="stencil-id",
    ),
    pytest.param(
        "sendUE4SetStencilValueByActorName",
        ("Floor", 9),
        "d2029649" + b"RflySetStencilValueByActorName Floor 9 False".hex() + "00" * 8,
        id="stencil-actor",
    ),
    pytest.param(
        "sendUE4SetStencilValueByMeshComponentName",
        ("Ro.*", 9, True),
        "d2029649" + b"RflySetStencilValueByMeshComponentName Ro.* 9 True".hex() + "00" * 2,
        id="stencil-mesh",
    ),
]


@pytest.mark.parametrize(("call", "arguments", "expected"), CALLS)
def test_bytes_of_each_call_at_each_window(ue, windows, waits, call, arguments, expected):
    """Window -1 gets one datagram at each of three ports, another number one at its port.

    The calls return None.
    """
    method = getattr(ue, call)
    assert method(*arguments) is None
    assert [windows.take(k).hex() for k in range(3)] == [expected] * 3
    for k in range(3):
        assert method(*arguments, windowID=k) is None
        assert windows.take(k).hex() == expected
        assert windows.waiting() == [0, 0, 0]


def test_infrared_brightness_of_the_objects_of_the_callers_table(ue, windows, waits):
    """Brightness is by Planck's law from 8 to 14 µm.

    By scipy.integrate.quad it is 255 for the brightest, 197.6 and 149.7 for the others.
    """
    by_actor = b"RflySetStencilValueByActorName "
    by_mesh = b"RflySetStencilValueByMeshComponentName "

    with pytest.raises(ValueError, match=r"'Car' is not in radiation\.tempEmissivity"):
        ue.SetUE4RadianceValue("Car")

    ue.radiation.tempEmissivity = np.array(
        [
            ["Car", 310, 0.95, False],
            ["tree", 293, 0.952, True],
            ["Floor", 276, 0.96, True],
        ]
    )
    ue.SetUE4RadianceValue("tree", 1)
    assert windows.take(1)[4:].rstrip(b"\0") == by_actor + rb"[\w]*tree[\w]* 197 True"
    assert windows.waiting() == [0, 0, 0]

    ue.SetUE4RadianceValue__All(0)
    sent = [windows.take(0)[4:].rstrip(b"\0") for _ in range(3)]
    assert sent == [
        by_mesh + rb"[\w]*Car[\w]* 255 True",
        by_actor + rb"[\w]*tree[\w]* 197 True",
        by_actor + rb"[\w]*Floor[\w]* 149 True",
    ]

    ue.radiation.tempEmissivity = [["Car", -3.0, 0.95, False]]
    with pytest.raises(ValueError, match="expected temperatures above 0 K"):
        ue.SetUE4RadianceValue("Car")


DEFAULTS = [
    ("sendUE4Pos", (), "d3029649" + ID_1_TYPE_3 + "00" * 12 + "00" * 56 + doubles(0, 0, 0, -1)),
    ("sendUE4PosNew", (), "d3029649" + ID_1_TYPE_3 + "00" * 12 + "00" * 56 + doubles(0, 0, 0, -1)),
    ("sendUE4Pos2Ground", (), "d3029649" + ID_1_TYPE_3 + "00" * 28),
    ("sendUE4PosScale", (), "d2029649" + ID_1_TYPE_3 + "00" * 28 + floats(1, 1, 1)),
    ("sendUE4PosScale2Ground", (), "d3029649" + ID_1_TYPE_3 + "00" * 28 + floats(1, 1, 1)),
    ("sendUE4PosSimple", (1, 3, 0, 0, 0, 0), "d2029649" + ID_1_TYPE_3 + "00" * 68 + doubles(-1)),
    (
        "sendUE4PosFull",
        (1, 3),
        "15cd5b07" + ID_1_TYPE_3 + "00" * 100 + doubles(-1, 0, 0, 0, 0, 0, 0),
    ),
    (
        "sendUE4LabelID",
        (),
        "db029649" + "00" * 8 + "ff000000" + "00" * 8 + floats(1, 30) + "00" * 120,
    ),
    (
        "sendUE4LabelMsg",
        (),
        "db02964900000000ffffffffff000000" + "00" * 8 + floats(0, 30) + "00" * 120,
    ),
]


@pytest.mark.parametrize(
    ("call", "arguments", "expected"), DEFAULTS, ids=[row[0] for row in DEFAULTS]
)
def test_defaults(ue, windows, call, arguments, expected):
    getattr(ue, call)(*arguments)
    assert [windows.take(k).hex() for k in range(3)] == [expected] * 3


SIGNATURES = {
    "sendUE4Cmd": "cmd windowID=-1",
    "sendUE4CmdNet": "cmd",
    "sendUE4Pos": (
        "copterID=1 vehicleType=3 MotorRPMSMean=0 PosE=[0,0,0] AngEuler=[0,0,0] windowID=-1"
    ),
    "sendUE4PosNew": (
        "copterID=1 vehicleType=3 PosE=[0,0,0] AngEuler=[0,0,0] VelE=[0,0,0] "
        "PWMs=[0,0,0,0,0,0,0,0] runnedTime=-1 windowID=-1"
    ),
    "sendUE4Pos2Ground": (
        "copterID=1 vehicleType=3 MotorRPMSMean=0 PosE=[0,0,0] AngEuler=[0,0,0] windowID=-1"
    ),
    "sendUE4PosScale": (
        "copterID=1 vehicleType=3 MotorRPMSMean=0 PosE=[0,0,0] AngEuler=[0,0,0] "
        "Scale=[1,1,1] windowID=-1"
    ),
    "sendUE4PosScale2Ground": (
        "copterID=1 vehicleType=3 MotorRPMSMean=0 PosE=[0,0,0] AngEuler=[0,0,0] "
        "Scale=[1,1,1] windowID=-1"
    ),
    "sendUE4PosSimple": "copterID vehicleType PWMs VelE PosE AngEuler runnedTime=-1 windowID=-1",
    "sendUE4PosFull": (
        "copterID vehicleType MotorRPMS=[0,0,0,0,0,0,0,0] VelE=[0,0,0] PosE=[0,0,0] "
        "RateB=[0,0,0] AngEuler=[0,0,0] windowID=-1"
    ),
    "sendUE4PosScale100": (
        "copterID vehicleType PosE AngEuler MotorRPMSMean Scale isFitGround=False windowID=-1"
    ),
    "sendUE4PosScalePwm20": (
        "copterID vehicleType PosE AngEuler Scale PWMs isFitGround=False windowID=-1"
    ),
    "sendUE4ExtAct": "copterID=1 ActExt=[0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0] windowID=-1",
    "sendUE4Attatch": "CopterIDs AttatchIDs AttatchTypes windowID=-1",
    "sendUE4LabelID": "CopterID=0 Txt='' fontSize=30 RGB=[255,0,0] windowID=-1",
    "sendUE4LabelMsg": (
        "CopterID=0 Txt='' fontSize=30 RGB=[255,0,0] dispTime=0 dispFlag=-1 windowID=-1"
    ),
    "reqCamCoptObj": "type_id=1 objName=1 windowID=0 type=None",
    "reqCam": "SeqIDList=[0] windowID=0",
    "reqCopt": "CopterIDList=[0] windowID=0",
    "reqObj": "ObjNameList=[''] windowID=0",
    "sendUE4SetStencilValueByCopterID": "CopterID StencilValue windowID=-1",
    "sendUE4SetStencilValueByActorName": "Actorname StencilValue is_name_regex=False windowID=-1",
    "sendUE4SetStencilValueByMeshComponentName": (
        "Meshname StencilValue is_name_regex=False windowID=-1"
    ),
    "initUE4MsgRec": "",
    "endUE4MsgRec": "",
    "getUE4Pos": "CopterID=1",
    "getUE4Data": "CopterID=1",
    "getCamCoptObj": "type_id=1 objName=1 type=None",
    "waitForMapLoaded": "mapName='' timeout=inf",
    "circle_traj": "t center radius period",
}


@pytest.mark.parametrize("call", SIGNATURES)
def test_names_order_and_defaults_are_the_sdks(ue, call):
    shown = [
        p.name if p.default is p.empty else f"{p.name}={p.default!r}".replace(" ", "")
        for p in inspect.signature(getattr(ue, call)).parameters.values()
    ]
    assert " ".join(shown) == SIGNATURES[call]


def test_action_bears_the_time_since_the_object_was_made(ue, windows):
    before = time.time()
    ue.sendUE4ExtAct(5, [1, 2, 3], 1)
    datagram = windows.take(1)
    assert datagram[:8].hex() == "d602964905000000"
    seconds = struct.unpack("<d", datagram[8:16])[0]
    assert before - ue.startTime <= seconds <= time.time() - ue.startTime
    assert datagram[16:].hex() == doubles(1, 2, 3, *[0] * 13)


def test_command_to_the_lan_goes_to_the_group_alone(windows, ue, rflysim_ports):
    """Multicast kept on the loopback interface; the object's own address plays no part."""
    group = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    group.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    group.bind(("224.0.0.10", 20009))
    loopback = socket.inet_aton("127.0.0.1")
    group.setsockopt(
        socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, socket.inet_aton("224.0.0.10") + loopback
    )
    group.settimeout(PATIENCE)
    ue.udp_socket.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, loopback)
    assert ue.sendUE4CmdNet("x" * 91) is None
    assert group.recv(65536).hex() == "d9029649" + "78" * 91 + "00"
    assert windows.waiting() == [0, 0, 0]
    group.close()


def test_broadcast_address_of_the_caller_is_allowed(rflysim_ports):
    windows = Windows(BROADCAST)
    try:
        UE4CtrlAPI(BROADCAST).sendUE4Pos2Ground(windowID=2)
        assert windows.take(2).hex() == DEFAULTS[2][2]
    finally:
        windows.close()


def test_a_window_beyond_the_third_is_its_port(ue, rflysim_host):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sink:
        sink.bind((rflysim_host, 20010 + 1234))
        sink.settimeout(PATIENCE)
        ue.sendUE4Pos2Ground(windowID=1234)
        assert len(sink.recv(100)) == 40


@pytest.mark.parametrize(("call", "length"), [("sendUE4Cmd", 250), ("sendUE4CmdNet", 92)])
def test_too_long_command_is_told_and_not_sent(ue, windows, capsys, call, length):
    assert getattr(ue, call)("x" * length) is None
    assert (
        getattr(ue, call)(("ö" * (length // 2 + 1)).encode()) is None
    )  # bytes count, not characters
    assert capsys.readouterr().out == "Error: Cmd is too long\n" * 2
    assert windows.waiting() == [0, 0, 0]


def test_length_of_a_command_counts_bytes(ue, windows):
    ue.sendUE4Cmd("ö" * 25, 0)
    ue.sendUE4Cmd("ö" * 26, 0)
    assert [len(windows.take()), len(windows.take())] == [56, 256]


# ---- vectors


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        pytest.param([1], (1, 0, 0), id="short"),
        pytest.param([], (0, 0, 0), id="empty"),
        pytest.param([1, 2, 3, 4], (1, 2, 3), id="long"),
        pytest.param(2, (2, 0, 0), id="number"),
        pytest.param(np.float32(2), (2, 0, 0), id="numpy-number"),
        pytest.param(np.array(2.0), (2, 0, 0), id="array-without-axes"),
        pytest.param(np.array([1, 2]), (1, 2, 0), id="short-array"),
        pytest.param(np.arange(1.0, 6.0), (1, 2, 3), id="long-array"),
        pytest.param([np.float64(1), np.int32(2), True], (1, 2, 1), id="mixed"),
    ],
)
def test_vectors_are_filled_cut_and_numbers_are_the_first(ue, windows, given, sent):
    before = copy.deepcopy(given)
    ue.sendUE4PosScale(100, 30, 0, given, given, given, 0)
    assert windows.take().hex() == "d2029649" + ID_100_TYPE_30 + floats(0, *sent, *sent, *sent)
    np.testing.assert_array_equal(given, before)
    assert type(given) is type(before)


@pytest.mark.parametrize(
    "given",
    [
        pytest.param((1, 2, 3), id="tuple"),
        pytest.param(range(3), id="range"),
        pytest.param(np.zeros((3, 3)), id="n-by-3"),
        pytest.param([[1, 2, 3]], id="nested"),
        pytest.param("1", id="text"),
        pytest.param(None, id="none"),
    ],
)
@pytest.mark.parametrize(
    "call", ["sendUE4Pos", "sendUE4Pos2Ground", "sendUE4PosScale", "sendUE4PosFull"]
)
def test_other_vectors_fail_and_nothing_is_sent(ue, windows, call, given):
    with pytest.raises(struct.error):
        getattr(ue, call)(1, 3, PosE=given)
    assert windows.waiting() == [0, 0, 0]


def test_fleet_arrays_are_not_flattened(ue, windows):
    with pytest.raises(struct.error):
        ue.sendUE4PosScale100(1, 3, np.zeros((100, 3)), 0, 0, 100)
    with pytest.raises(struct.error):
        ue.sendUE4PosScalePwm20(1, 3, np.zeros((20, 3)), 0, 100, 0)
    assert windows.waiting() == [0, 0, 0]


def test_mean_motor_speed_is_one_number(ue, windows):
    for call in ("sendUE4Pos", "sendUE4Pos2Ground", "sendUE4PosScale"):
        with pytest.raises(struct.error):
            getattr(ue, call)(1, 3, [1, 2])
    assert windows.waiting() == [0, 0, 0]


def test_colour_is_exactly_three_integers(ue, windows):
    for colour in (
        [1, 2],
        [1, 2, 3, 4],
        [1.0, 2, 3],
        "FF0000",
    ):
        with pytest.raises(struct.error):
            ue.sendUE4LabelMsg(1, "x", 30, colour)
    ue.sendUE4LabelMsg(1, "x", 30, (1, 2, 3), windowID=0)  # any three, a tuple too
    assert windows.waiting() == [1, 0, 0]


def test_label_is_cut_at_byte_120_inside_a_character(ue, windows):
    ue.sendUE4LabelMsg(1, "a" * 119 + "ö", windowID=0)
    assert windows.take()[32:].hex() == "61" * 119 + "c3"
    ue.sendUE4LabelMsg(1, "b" * 120, windowID=0)
    assert windows.take()[32:].hex() == "62" * 120


# ---- numbers


@pytest.mark.parametrize("number", [1.0, 2**31, -(2**31) - 1, "1", None, np.float64(1)])
def test_ids_and_types_are_int32(ue, windows, number):
    for call in ("sendUE4Pos", "sendUE4Pos2Ground", "sendUE4PosScale", "sendUE4PosFull"):
        with pytest.raises(struct.error):
            getattr(ue, call)(number, 3)
        with pytest.raises(struct.error):
            getattr(ue, call)(1, number)
    with pytest.raises(struct.error):
        ue.sendUE4ExtAct(number)
    with pytest.raises(struct.error):
        ue.sendUE4Attatch([number], [1], [0])
    with pytest.raises(struct.error):
        ue.sendUE4LabelMsg(1, dispFlag=number)
    assert windows.waiting() == [0, 0, 0]


@pytest.mark.parametrize("number", [1.0, -1, 65536])
def test_ids_types_and_scales_of_fleets_are_uint16(ue, windows, number):
    for ids, types, scales in (
        ([number], [3], [100]),
        ([1], [number], [100]),
        ([1], [3], [number]),
    ):
        with pytest.raises(struct.error):
            ue.sendUE4PosScale100(ids, types, [0], [0], [0], scales)
        with pytest.raises(struct.error):
            ue.sendUE4PosScalePwm20(ids, types, [0], [0], scales, [0])
    assert windows.waiting() == [0, 0, 0]


def test_numpy_integers_are_integers(ue, windows):
    ue.sendUE4Pos2Ground(np.int64(100), np.uint8(30), windowID=0)
    assert windows.take()[:12].hex() == "d3029649" + ID_100_TYPE_30


def test_what_is_no_finite_float_goes_out(ue, windows):
    """Large floats become infinity, others are rounded; NaN and infinity stay.

    1e39 is above the largest float, 16777217 lies half-way between two.
    """
    ue.sendUE4Pos2Ground(1, 3, 1e39, [-1e39, float("inf"), 16777217.0], [float("nan"), 0, 0], 0)
    mean, x, y, z, roll = struct.unpack("<5f", windows.take()[12:32])
    expected = (float("inf"), float("-inf"), float("inf"), 16777216.0)
    assert (mean, x, y, z) == expected
    assert roll != roll


@pytest.mark.parametrize("ground", [1, "no", np.True_, [0]])
def test_any_true_value_keeps_fleets_on_the_ground(ue, windows, ground):
    ue.sendUE4PosScale100(1, 3, 0, 0, 0, 100, ground, 0)
    ue.sendUE4PosScalePwm20(1, 3, 0, 0, 100, 0, ground, 0)
    assert windows.take()[:4].hex() == windows.take()[:4].hex() == "d3029649"
    ue.sendUE4PosScale100(1, 3, 0, 0, 0, 100, 0, 0)
    assert windows.take()[:4].hex() == "d2029649"


# ---- waiting


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("RflyChangeMapbyName Grasslands", [0.5, 0.5]),
        ("say RflyChangeMapping", [0.5, 0.5]),
        (b"RflyChangeMapbyID 1\xff", [0.5, 0.5]),
        ("rflychangemapbyname x", []),
        ("RflyShowText hello", []),
    ],
)
def test_only_map_changes_wait(ue, windows, rflysim_host, waits, monkeypatch, command, expected):
    ue.sendUE4Cmd(command)
    assert waits == expected
    waits.clear()
    monkeypatch.setattr(ue4_ctrl_api, "LAN_GROUP", (rflysim_host, 20012))
    ue.sendUE4CmdNet(command)
    assert waits == expected
    assert windows.waiting() == [1, 1, 2]


def test_a_map_change_takes_a_second_and_others_nothing(ue, windows):
    """The latter is counted in test_only_map_changes_wait."""
    start = time.monotonic()
    ue.sendUE4Cmd("RflyChangeMapbyID 1", 0)
    assert time.monotonic() - start >= 1.0


def test_stencil_calls_wait_a_tenth(ue, windows, waits):
    ue.sendUE4SetStencilValueByCopterID(1, 2)
    ue.sendUE4SetStencilValueByActorName("a", 2)
    ue.sendUE4SetStencilValueByMeshComponentName("a", 2)
    assert waits == [0.1] * 3


# ---- requests


def text_of(datagram):
    return datagram[4:].rstrip(b"\0").decode()


def test_requests_of_lists_are_one_command_each_to_window_0(ue, windows, waits, capsys):
    ue.reqCam([0, 3])
    ue.reqCopt([7])
    ue.reqObj(["Tree_1", "Rock"])
    texts = [text_of(windows.take()) for _ in range(5)]
    assert texts == [
        "RflyReqObjData 0 0 0",
        "RflyReqObjData 0 3 0",
        "RflyReqObjData 1 7 0",
        "RflyReqObjData 2 Tree_1 0",
        "RflyReqObjData 2 Rock 0",
    ]
    assert windows.waiting() == [0, 0, 0]
    assert waits == [0.1] * 5
    assert capsys.readouterr().out == ""


def test_defaults_of_requests(ue, windows, waits):
    ue.reqCamCoptObj()
    ue.reqCam()
    ue.reqCopt()
    ue.reqObj()
    texts = [windows.take()[4:].rstrip(b"\0").decode() for _ in range(4)]
    assert texts == [
        "RflyReqObjData 1 1 0",
        "RflyReqObjData 0 0 0",
        "RflyReqObjData 1 0 0",
        "RflyReqObjData 2  0",
    ]
    assert windows.waiting() == [0, 0, 0]


def test_single_request_prints_its_command_and_does_not_wait(ue, windows, waits, capsys):
    ue.reqCamCoptObj(2, "Tree_1", 1)
    assert text_of(windows.take(1)) == "RflyReqObjData 2 Tree_1 0"
    assert capsys.readouterr().out == "RflyReqObjData 2 Tree_1 0\n"
    assert waits == []


def test_request_to_all_windows(ue, windows, waits):
    ue.reqCamCoptObj(1, [4], -1)
    assert windows.waiting() == [1, 1, 1]


@pytest.mark.parametrize(
    ("type_id", "name"),
    [
        (1, "7"),
        (1, True),
        (1, np.float64(7)),
        (1, 7.0),
        (2, 7),
        (2, np.int64(7)),
        (2, b"Tree"),
    ],
)
def test_names_of_a_wrong_type_are_told_and_left_out(ue, windows, waits, capsys, type_id, name):
    good = "Tree" if type_id == 2 else 8
    ue.reqCamCoptObj(type_id, [name, good])
    assert text_of(windows.take()) == f"RflyReqObjData {type_id} {good} 0"
    assert repr(name) in capsys.readouterr().out
    assert waits == [0.1]
    ue.reqCamCoptObj(type_id, name)  # a single one: the same line, no error
    told = capsys.readouterr().out
    assert repr(name) in told
    assert told.count("\n") == 1
    assert windows.waiting() == [0, 0, 0]


@pytest.mark.parametrize("integer", [int, np.int8, np.uint16, np.int32, np.int64, np.uint64])
def test_ids_of_numpy_are_asked_for(ue, windows, waits, integer):
    """An id from an array is an id."""
    for ask in (
        lambda: ue.reqCamCoptObj(integer(1), integer(7)),
        lambda: ue.reqCamCoptObj(1, [integer(7)], integer(0)),
        lambda: ue.reqCamCoptObj(1, np.array([7], integer)),
        lambda: ue.reqCamCoptObj(type=1, objName=7),
        lambda: ue.reqCamCoptObj(objName=7, type=integer(1)),
        lambda: ue.reqCopt([integer(7)]),
    ):
        ask()
        assert text_of(windows.take()) == "RflyReqObjData 1 7 0"
    ue.reqCamCoptObj(type=0, objName=integer(3))
    assert text_of(windows.take()) == "RflyReqObjData 0 3 0"
    ue.reqCamCoptObj(type=2, objName=np.array(["Tree"]))
    assert text_of(windows.take()) == "RflyReqObjData 2 Tree 0"
    ue.sendUE4Destroy(integer(7), integer(0))
    assert text_of(windows.take()) == "RflyDelVehicles 7"
    ue.sendUE4SetStencilValueByCopterID(integer(7), integer(5), 0)
    assert text_of(windows.take()) == "RflySetStencilValueByCopterID 7 5"
    for send in (ue.sendUE4Pos, ue.sendUE4PosNew, ue.sendUE4PosScale, ue.sendUE4PosFull):
        send(integer(7), integer(3), windowID=integer(0))
        assert struct.unpack_from("<2i", windows.take(), 4) == (7, 3)
    assert ue.getCamCoptObj(type=1, objName=integer(7)) == 0
    assert windows.waiting() == [0, 0, 0]


def test_a_circle_begins_ahead_and_turns_to_the_right(ue):
    """A turn of 10 s about (1, 2): after a quarter 3 m along +y, which is east of NED's x."""
    points = [ue.circle_traj(t, (1, 2), 3, 10) for t in (0.0, 2.5, 5.0, 10.0)]
    np.testing.assert_allclose(points, [[4, 2], [1, 5], [-2, 2], [4, 2]], atol=1e-12)
    assert points[0] + [-2] == [4.0, 2.0, -2]


def test_waiting_for_a_map_takes_the_rest_of_the_time_that_it_needs(ue, waits, monkeypatch):
    clock = [100.0]
    monkeypatch.setattr(ue4_ctrl_api.time, "monotonic", lambda: clock[0])
    assert ue.waitForMapLoaded("Grasslands")
    ue.sendUE4Cmd("RflyChangeMapbyName Grasslands", 0)
    waits.clear()
    clock[0] += 0.75
    assert not ue.waitForMapLoaded("Grasslands", timeout=0.125)
    assert ue.waitForMapLoaded("Grasslands", timeout=30)
    clock[0] += 5.0
    assert ue.waitForMapLoaded()
    assert waits == [0.125, 0.25, 0.0]


def test_cameras_and_unknown_types_are_not_checked(ue, windows, waits):
    ue.reqCamCoptObj(0, ["a", 1.5])
    ue.reqCamCoptObj(9, ["b"])
    assert [text_of(windows.take()) for _ in range(3)] == [
        "RflyReqObjData 0 a 0", "RflyReqObjData 0 1.5 0", "RflyReqObjData 9 b 0",
    ]  # fmt: skip


@pytest.mark.parametrize("type_id", ["1", None, [1]])
def test_a_type_that_is_no_number_is_an_error_and_sends_nothing(ue, windows, type_id):
    """The calls behave as recorded.

    `reqCamCoptObj("1", 1)` raises TypeError; a fraction is cut off.
    """
    with pytest.raises(TypeError):
        ue.reqCamCoptObj(type_id, 1)
    assert windows.waiting() == [0, 0, 0]
    ue.reqCamCoptObj(0.9, 1)
    assert text_of(windows.take()) == "RflyReqObjData 0 1 0"


def test_no_call_changes_its_arguments(ue, windows, waits):
    vector = [1, 2, 3, 4, 5, 6, 7, 8, 9]
    ids = [1, 2]
    ue.sendUE4PosNew(1, 3, vector, vector, vector, vector)
    ue.sendUE4PosScale100(ids, ids, vector, vector, vector, vector)
    ue.sendUE4Attatch(ids, ids, ids)
    ue.reqCopt(ids)
    expected = [1, 2, 3, 4, 5, 6, 7, 8, 9]
    assert vector == expected
    assert ids == [1, 2]
    for call in (ue.sendUE4Pos, ue.sendUE4PosScale, ue.sendUE4ExtAct, ue.sendUE4LabelMsg):
        before = copy.deepcopy(inspect.signature(call))
        call()
        assert inspect.signature(call) == before
