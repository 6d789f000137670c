# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The window for vehicles of this program, drawn by a thread of its own."""

from __future__ import annotations

import threading
import weakref

import numpy as np
from numpy.typing import ArrayLike

from rfly_common.files import Closing
from rfly_common.threads.loop_thread import LoopThread
from rfly_common.vehicle_states import VehicleStates
from rfly_ue_bridge.codec.commands import delete_vehicles_by_parts, encode_command
from rfly_ue_bridge.codec.ned_states import states_to_ned
from rfly_ue_bridge.codec.state_datagrams import datagrams, encode_states, goes_in_fleet
from rfly_viewer.window.server import Settings, Viewer
from rfly_viewer.wire.listener import Feed


class LiveWindow(Closing):
    """Window that shows the vehicles of this program, without a UDP port.

    `show` returns at once, and never waits for a browser. `name`: what is shown, for the user. It
    closes when it is no longer used, and with the program.
    """

    def __init__(self, settings: Settings, name: str) -> None:
        self._feed = Feed(name)
        self.viewer = Viewer(settings, self._feed)
        """The window itself, which the thread draws."""
        self.address = self.viewer.address
        """Address for a browser."""
        self._ids = np.empty(0, np.int32)
        """Ids of the vehicles that are shown."""
        thread = LoopThread(self.viewer.turn, "rfly view: live")
        self._end = weakref.finalize(self, _end, self.viewer, thread)
        thread.start()

    def show(self, states: VehicleStates, anew: ArrayLike = ()) -> None:
        """Show these vehicles, in the frame map, and no others.

        One whose state is not finite is left out. `anew`: ids of those that have not moved to their
        places but begin there, without a trail.
        """
        ned, _ = states_to_ned(states, "enu")
        gone = np.setdiff1d(self._ids, np.setdiff1d(ned.id, anew))
        self._ids = ned.id
        for text in delete_vehicles_by_parts(gone.tolist()):
            self._feed.put(encode_command(text))
        for datagram in datagrams(encode_states(ned, in_fleet=goes_in_fleet(len(ned), "auto"))):
            self._feed.put(datagram)

    def close(self) -> None:
        """Close the page, and end the thread."""
        self._end()


def _end(viewer: Viewer, thread: LoopThread) -> None:
    """End the thread, and close the page."""
    viewer.stop()
    if thread is not threading.current_thread():  # as a collector of garbage may call from any
        thread.join()
        viewer.close()
