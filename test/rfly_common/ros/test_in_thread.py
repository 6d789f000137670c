"""Work in a thread of its own: whoever waits for it is answered, whatever becomes of it."""

from __future__ import annotations

import threading

import pytest
from node_harness import Peer

from rfly_common.errors import WorkError


@pytest.mark.ros
def test_work_that_breaks_off_is_told(domain_id):
    from rfly_common.ros.run_loop import in_thread

    peer, told = Peer(domain_id), []

    async def ask(work):
        try:
            told.append((await in_thread(peer.node, work), threading.get_ident()))
        except WorkError as error:
            told.append((str(error), threading.get_ident()))

    try:
        for work in (lambda: 6 * 7, lambda: 1 // 0, lambda: "again"):
            peer.node.executor.create_task(ask, work)
            count = len(told)
            peer.spin_until(lambda count=count: len(told) > count)
    finally:
        peer.close()
    (whole, broke_off, again) = (answer for answer, _ in told)
    assert (whole, again) == (42, "again")
    assert "test_in_thread.py" in broke_off
    assert "told in the node's log" in broke_off
    assert {where for _, where in told} == {threading.get_ident()}
