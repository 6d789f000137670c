# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""UE4CtrlAPI and RflySim3D's windows at a loopback address of the test's own."""

from __future__ import annotations

import pytest
from rflysim_windows import Windows

from rfly_ue_bridge.sdk import ue4_ctrl_api
from rfly_ue_bridge.sdk.ue4_ctrl_api import UE4CtrlAPI


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
