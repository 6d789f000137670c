# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Work in a thread of its own: its caller is answered, however it ends."""

from __future__ import annotations

import threading

import pytest
from node_harness import Peer

from rfly_common.errors import PlanError, RflyError, WorkError


@pytest.mark.ros
def test_work_that_breaks_off_is_told(domain_id):
    from rfly_common.ros.run_loop import in_thread

    peer = Peer(domain_id)
    told = []

    async def ask(work):
        try:
            told.append((await in_thread(peer.node, work), threading.get_ident()))
        except RflyError as error:
            told.append((error, threading.get_ident()))

    def refuse():
        raise PlanError("too_steep", "no way")

    try:
        for work in (lambda: 6 * 7, lambda: 1 // 0, refuse, lambda: "again"):
            peer.node.executor.create_task(ask, work)
            count = len(told)
            peer.spin_until(lambda count=count: len(told) > count)
    finally:
        peer.close()
    (whole, broke_off, refused, again) = (answer for answer, _ in told)
    assert (whole, again) == (42, "again")
    assert isinstance(broke_off, WorkError)
    assert "test_in_thread.py" in str(broke_off)
    assert "logged by the node" in str(broke_off)
    assert (type(refused), refused.reason, str(refused)) == (PlanError, "too_steep", "no way")
    assert {where for _, where in told} == {threading.get_ident()}
