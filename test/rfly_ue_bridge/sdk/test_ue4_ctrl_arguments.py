# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Arguments of UE4CtrlAPI's calls: vectors, texts, numbers and ids of any kind, and its waits."""

from __future__ import annotations

import copy
import inspect
import struct
import time

import numpy as np
import pytest
from rflysim_windows import ID_100_TYPE_30, floats

from rfly_ue_bridge.sdk import ue4_ctrl_api


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
