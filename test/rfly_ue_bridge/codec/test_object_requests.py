# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Questions about cameras, vehicles and objects, and which packets answer them."""

from __future__ import annotations

import pytest
from feedback_datagrams import DATAGRAMS

from rfly_common.errors import CommandError
from rfly_ue_bridge.codec.commands import request_object
from rfly_ue_bridge.codec.from_rflysim3d import FROM_RFLYSIM3D, OBJ_REQ_DATA, is_answer


def packet(wire_name, /, **changes):
    decoded = FROM_RFLYSIM3D.decode(bytes.fromhex(DATAGRAMS[wire_name][0]))
    return decoded.type.make(**{**decoded.values, **changes})


@pytest.mark.parametrize(
    ("kind", "name", "command"),
    [
        (0, 3, "RflyReqObjData 0 3 0"),
        (1, 1001, "RflyReqObjData 1 1001 0"),
        (2, "Ziel_ä", "RflyReqObjData 2 Ziel_ä 0"),
    ],
)
def test_command_by_kind(kind, name, command):
    assert request_object(kind, name) == command


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (3, "x"),
        (2, ""),
        (2, "two words"),
        (2, " led"),
        (2, "tail\n"),
    ],
)
def test_what_cannot_be_asked_is_refused(kind, name):
    with pytest.raises(CommandError, match=r"^(kind|name): "):
        request_object(kind, name)


@pytest.mark.parametrize(
    ("asked", "answers"),
    [
        ((0, 11), {"CameraData (old)", "CameraData"}),
        ((0, 12), set()),
        ((1, 12), {"CoptReqData (old)", "CoptReqData"}),
        ((1, 5), set()),  # the crash of vehicle 5 is no answer
        ((2, "Ziel_ä"), {"ObjReqData (old)", "ObjReqData"}),
        ((2, "Ziel"), set()),
    ],
)
def test_which_packets_answer(asked, answers):
    assert {name for name in DATAGRAMS if is_answer(packet(name), asked)} == answers


@pytest.mark.parametrize(
    ("name", "comes_back", "is_it"),
    [
        ("a" * 40, "a" * 32, True),
        ("a" * 40, "a" * 31, True),
        ("a" * 40, "a" * 20, False),
        ("a" * 31, "a" * 30, False),
        ("a" * 31 + "ä", "a" * 31, True),
        ("a" * 40, "b" * 32, False),
    ],
)
def test_a_long_name_comes_back_cut(name, comes_back, is_it):
    assert is_answer(packet(OBJ_REQ_DATA.name, name=comes_back), (2, name)) is is_it
