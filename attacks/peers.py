# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Peers that misbehave: they stall, dribble, send garbage, close halfway, come in crowds, flood
with malformed packets.

They are those of the nodes for controllers outside, of the bridge, of `rfly view` and its page, of
`rfly listen` and `rfly record`. The attacked process has to go on and answer
meanwhile, to stay small, and to serve a sensible peer afterwards.
"""

from __future__ import annotations

import random
import socket
import struct
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil

from attacks.pulse import Pulse
from attacks.running import (
    Running,
    free_port,
    node_command,
    own_graph,
    rfly,
    wait_until,
)
from attacks.table import Result
from attacks.traffic import Traffic
from rfly_common.files import Closing

CAMERA = {
    "type": "ViewerCameraMessage",
    "wxyz": [1, 0, 0, 0],
    "position": [0, 0, 1],
    "fov": 0.9,
    "near": 0.1,
    "far": 1e3,
    "image_height": 480,
    "image_width": 640,
    "look_at": [0, 0, 0],
    "up_direction": [0, 0, 1],
}
"""First message of viser's page; the scene follows it."""
TRIES = 500
SHORT_TRIES = 20
"""Peers of each kind in a short run; a flood has FLOOD times as many datagrams."""
FLOOD = 200
CROWD = 20
"""Peers at the same time."""
LASTS_S = 1.0
"""Longest life of one peer, s."""
MOST_STALL_S = 2.0
MOST_MEMORY_MB = {"rfly view": 1000.0}
OTHERS_MEMORY_MB = 400.0
PATIENCE_S = 20.0

Behaviour = Callable[[socket.socket, random.Random, Sequence[bytes]], None]
"""What a connected peer does; the last are sensible messages"""


# --- peers on a stream


def stall(peer: socket.socket, rng: random.Random, sensible: Sequence[bytes]) -> None:
    """Neither read nor write, perhaps after a first word."""
    if rng.random() < 0.5:
        peer.sendall(rng.choice(sensible))
    time.sleep(rng.uniform(0.0, LASTS_S))


def dribble(peer: socket.socket, rng: random.Random, sensible: Sequence[bytes]) -> None:
    """Send a byte at a time, and not to the end."""
    for byte in rng.choice(sensible)[: rng.randrange(1, 60)]:
        peer.sendall(bytes((byte,)))
        time.sleep(LASTS_S / 60)


def garbage(peer: socket.socket, rng: random.Random, sensible: Sequence[bytes]) -> None:
    """Send random bytes and mutated messages, up to a megabyte."""
    from fuzz.fuzz_packets import mutated

    until = time.monotonic() + LASTS_S
    for _ in range(rng.choice((1, 10, 1000))):
        if time.monotonic() > until:
            return
        message = rng.choice(sensible)
        donor = rng.choice(sensible)
        noise = rng.randbytes(rng.randrange(1, 1000))
        peer.sendall(rng.choice((noise, mutated(rng, message, donor))))


def close_halfway(peer: socket.socket, rng: random.Random, sensible: Sequence[bytes]) -> None:
    """Send half a message and still listen; or stop reading and still send."""
    message = rng.choice(sensible)
    peer.sendall(message[: rng.randrange(len(message))])
    if rng.random() < 0.5:
        peer.shutdown(socket.SHUT_WR)
        while peer.recv(4096):
            pass
    else:
        peer.shutdown(socket.SHUT_RD)
        peer.sendall(message)


def reset(peer: socket.socket, rng: random.Random, sensible: Sequence[bytes]) -> None:
    """Leave without closing the connection properly."""
    peer.sendall(rng.choice(sensible))
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


BEHAVIOURS: tuple[Behaviour, ...] = (stall, dribble, garbage, close_halfway, reset)


def streams(rng: random.Random, tries: int, port: int, sensible: Sequence[bytes]) -> None:
    """Send `tries` peers to a TCP port, CROWD at a time."""

    def peer_of(seed: int) -> None:
        own = random.Random(seed)
        with (
            suppress(OSError),
            socket.create_connection(("127.0.0.1", port), LASTS_S) as peer,
        ):
            peer.settimeout(LASTS_S)  # who is refused or not read is cut, and that is well
            own.choice(BEHAVIOURS)(peer, own, sensible)

    with ThreadPoolExecutor(CROWD) as pool:
        list(pool.map(peer_of, [rng.getrandbits(32) for _ in range(tries)]))


def flood(port: int, datagrams: Iterable[bytes]) -> int:
    """Send all datagrams to a UDP port as fast as the system allows; return their number."""
    sent = 0
    datagrams = list(datagrams)  # made before, which takes longer
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        for datagram in datagrams:
            with suppress(ConnectionRefusedError):
                sender.sendto(datagram, ("127.0.0.1", port))
                sent += 1
    return sent


# --- what is attacked


class PagePulse(Closing):
    """A thread that asks for the viewer's page again and again, and measures the longest wait."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._longest = 0.0
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def longest_stall(self) -> float:
        return self._longest

    def close(self) -> None:
        self._done.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._done.wait(0.1):
            start = time.monotonic()
            with suppress(OSError):
                urllib.request.urlopen(self._address, timeout=PATIENCE_S).read()
            self._longest = max(self._longest, time.monotonic() - start)


def judged(
    name: str,
    tried: int,
    running: Running,
    stall_s: float | None,
    more: Iterable[str] = (),
) -> Result:
    """Return the result of an attack on a process that should go on."""
    failures = list(more)
    if running.process.poll() is not None:
        code = running.process.returncode
        failures.append(f"it ended with exit code {code}: {running.output[-300:]}")
    elif running.first_threads - running.threads():
        ended = len(running.first_threads - running.threads())
        failures.append(f"{ended} of its threads ended: {running.output[-300:]}")
    if "Traceback" in running.output:
        trace = running.output.partition("Traceback")[2].splitlines()
        failures.append("a trace: " + " | ".join(trace[:8]))

    limit = next((mb for part, mb in MOST_MEMORY_MB.items() if part in name), OTHERS_MEMORY_MB)
    if (running.peak_mb or 0.0) > limit:
        failures.append(f"it swelled to {running.peak_mb:.0f} MB")
    return Result(
        name, tried, len(failures), running.peak_mb, stall_s, tuple(failures), MOST_STALL_S
    )


@contextmanager
def node_at_work(
    name: str, parameters: Mapping[str, object], *, traffic: bool
) -> Iterator[tuple[Running, Pulse]]:
    """Run a node until it answers, in a graph of its own."""
    with ExitStack() as opened:
        graph = opened.enter_context(own_graph())
        if traffic:
            opened.enter_context(Traffic(graph))
        running = opened.enter_context(Running(node_command(name, parameters), graph))
        pulse = opened.enter_context(Pulse(graph, f"/{name}"))
        wait_until(
            lambda: pulse.answers(f"/{name}"),
            f"{name} to answer: {running.output}",
            120.0,
        )
        running.first_threads = running.threads()
        yield running, pulse


def listening_port(running: Running, kind: str) -> int:
    """Return the port on which a node of an external controller says that it listens."""
    running.wait_for(f"{kind} 127.0.0.1:", timeout_s=60.0)
    return int(running.output.partition(f"{kind} 127.0.0.1:")[2].split()[0])


def listens(running: Running, port: int) -> bool:
    """Return whether the process has bound this UDP port."""
    own = psutil.Process(running.process.pid)
    return any(connection.laddr.port == port for connection in own.net_connections("udp"))


def is_served(kind: int, port: int, greeting: bytes) -> bool:
    """Return whether a sensible peer gets an answer within PATIENCE_S."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        with suppress(OSError), socket.socket(socket.AF_INET, kind) as peer:
            peer.settimeout(1.0)
            peer.connect(("127.0.0.1", port))
            for _ in range(5):
                peer.send(greeting)
                if peer.recv(4096):
                    return True
    return False


def link_over(transport: str, rng: random.Random, tries: int) -> Result:
    """Attack as external controllers, over UDP or TCP, while the vehicle's states go out."""
    from fuzz.fuzz_link import WHOLE, datagrams

    kind = {"tcp": socket.SOCK_STREAM, "udp": socket.SOCK_DGRAM}[transport]
    parameters = {"transport": transport, "port": 0, "controller_port": 0}
    with node_at_work("link_node", parameters, traffic=True) as (running, pulse):
        port = listening_port(running, transport)

        if transport == "tcp":
            tried = tries
            streams(rng, tries, port, WHOLE)
        else:
            tried = flood(port, datagrams(FLOOD * tries, rng.getrandbits(32)))

        # a sensible controller afterwards
        served = is_served(kind, port, WHOLE[4])
        failures = [] if served else [f"a heartbeat over {transport} got no answer afterwards"]
        return judged(
            f"controllers outside, {transport}",
            tried,
            running,
            pulse.longest_stall(),
            failures,
        )


def autopilots(rng: random.Random, tries: int) -> Result:
    """Attack as autopilots that speak MAVLink over TCP."""
    from rfly_mavlink.dialect.wire import load_dialect

    dialect = load_dialect()
    sender = dialect.MAVLink(None)
    heartbeat = dialect.MAVLink_heartbeat_message(2, 12, 0, 0, 3, 3).pack(sender)
    controls = dialect.MAVLink_hil_actuator_controls_message(0, [0.1] * 16, 128, 0).pack(sender)
    with node_at_work("mavlink_hil_node", {"port": 0}, traffic=True) as (
        running,
        pulse,
    ):
        port = listening_port(running, "tcp")
        streams(rng, tries, port, (heartbeat, controls))
        served = is_served(socket.SOCK_STREAM, port, heartbeat)
        failures = [] if served else ["a heartbeat got no answer afterwards"]
        return judged("autopilots", tries, running, pulse.longest_stall(), failures)


def ground_stations(rng: random.Random, tries: int) -> Result:
    """Attack as ground stations that send mutated MAVLink messages; then be one that reads."""
    from fuzz.fuzz_terrain import mutate_bytes

    from rfly_mavlink.dialect.wire import load_dialect

    dialect = load_dialect()
    sender = dialect.MAVLink(None, 245, 190)
    heartbeat = bytes(dialect.MAVLink_heartbeat_message(6, 8, 0, 0, 4, 3).pack(sender))
    fields = (0, 6, 16, 0, 1, 0.0, 2.0, 0.0, 0.0, 470000000, 80000000, 10.0, 0)
    sensible = [
        bytes(message.pack(sender))
        for message in (
            dialect.MAVLink_command_long_message(1, 1, 400, 0, 1.0, *[0.0] * 6),
            dialect.MAVLink_param_request_list_message(1, 1),
            dialect.MAVLink_param_set_message(1, 1, b"MIS_TAKEOFF_ALT", 5.0, 9),
            dialect.MAVLink_mission_count_message(1, 1, 3, 0),
            dialect.MAVLink_mission_item_int_message(1, 1, *fields),
            dialect.MAVLink_set_position_target_local_ned_message(0, 1, 1, 1, 0xDF8, *[1.0] * 11),
        )
    ]

    chosen = (rng.choice(sensible) for _ in range(FLOOD * tries))
    datagrams = [data if rng.random() < 0.3 else mutate_bytes(rng, data) for data in chosen]
    parameters = {
        "vehicles": ["uav"],
        "port": 0,
        "targets": [f"127.0.0.1:{free_port()}"],
    }
    with node_at_work("mavlink_node", parameters, traffic=True) as (running, pulse):
        port = listening_port(running, "udp")
        tried = flood(port, datagrams)
        served = is_served(socket.SOCK_DGRAM, port, heartbeat)
        failures = [] if served else ["a heartbeat got no answer afterwards"]
        return judged("ground stations", tried, running, pulse.longest_stall(), failures)


def answers_of_rflysim3d(rng: random.Random, tries: int) -> Result:
    """Malformed answers of RflySim3D flood the bridge; each is accounted for."""
    from fuzz.fuzz_feedback import datagrams

    port = free_port()
    with node_at_work(
        "ue_bridge_node", {"port": free_port(), "feedback_port": port}, traffic=False
    ) as (
        running,
        pulse,
    ):
        sent = flood(port, datagrams(FLOOD * tries, rng.getrandbits(32)))

        # wait until every datagram is accounted for
        def accounted() -> bool:
            """Return whether the bridge has counted as many datagrams as were sent."""
            values = pulse.diagnostics.get("/ue_bridge_node: feedback", ("", "", {}))[2]
            return sent == int(values.get("received", 0)) + int(values.get("system_dropped", 0))

        failures = []
        try:
            wait_until(accounted, "", PATIENCE_S)
        except TimeoutError:
            failures.append(f"of {sent} datagrams not all are counted: {pulse.diagnostics}")

        return judged("answers of RflySim3D", sent, running, pulse.longest_stall(), failures)


def extreme_numbers(datagram: bytes) -> Iterator[bytes]:
    """Yield the datagram with each of its words of eight and four bytes at the edges of numbers."""
    nan, infinite = float("nan"), float("inf")
    words = [struct.pack("<d", x) for x in (nan, infinite, -infinite, 1e300, -1e300, 2.0**62)]
    words += [struct.pack("<f", x) for x in (nan, infinite, 3e38)]
    words += [struct.pack("<q", x) for x in (2**63 - 1, -(2**63))]
    for word in words:
        for place in range(4, len(datagram) - len(word) + 1, 4):
            yield datagram[:place] + word + datagram[place + len(word) :]


def states_of_coptersim(rng: random.Random, tries: int) -> Result:
    """Send states and heart-beats with extreme numbers and spoilt ones, stamped by their time."""
    import coptersim_datagrams as coptersim
    from fuzz.fuzz_packets import mutated

    ports = {"truth_port": free_port(), "state_port": free_port(), "time_port": free_port()}
    parameters = {**ports, "stamp": "simulation", "clock": "heartbeat", "vehicles": "[1]"}
    now_ms = time.time_ns() // 1_000_000
    beat = struct.pack("<2i3q", 123456789, 1, now_ms - 20_000, now_ms, 1)
    truths = (coptersim.TRUTH_168, coptersim.TRUTH_112, coptersim.TRUTH_200, coptersim.ORIGIN)
    sensible = {
        "truth_port": truths,
        "state_port": (coptersim.STATE_52, coptersim.STATE_120),
        "time_port": (beat,),
    }

    with node_at_work("coptersim_node", parameters, traffic=False) as (running, pulse):

        def received() -> int:
            values = pulse.diagnostics.get("/coptersim_node: copter1", ("", "", {}))[2]
            return int(values.get("truth_received", 0))

        tried = 0
        for name, datagrams in sensible.items():
            for datagram in datagrams:
                tried += flood(ports[name], extreme_numbers(datagram))
            spoilt = [
                mutated(rng, rng.choice(datagrams), rng.choice(datagrams)) for _ in range(tries)
            ]
            tried += flood(ports[name], spoilt)

        failures = []
        before = received()
        try:
            wait_until(
                lambda: flood(ports["truth_port"], truths[:1]) and received() > before + 1,
                "good states",
                PATIENCE_S,
            )
        except TimeoutError:
            failures.append(f"no state is received afterwards: {pulse.diagnostics}")
        return judged("states of CopterSim", tried, running, pulse.longest_stall(), failures)


def data_of_sensors(rng: random.Random, tries: int) -> Result:
    """Send bombs, frames without an end, and more pictures than can be decoded, with an IMU."""
    import numpy as np
    from fuzz.fuzz_packets import mutated

    from rfly_ue_bridge import encode_fragments, encode_image

    port = free_port()
    parameters = {
        "sensors": "[camera]",
        "camera.data_port": port,
        "port": free_port(),
        "imu_vehicles": "[7]",
        "stamp": "simulation",
    }
    picture = encode_image(rng_pixels(rng, np), "jpeg")
    with node_at_work("ue_sensors_node", parameters, traffic=False) as (running, pulse):

        def frames() -> int:
            values = pulse.diagnostics.get("/ue_sensors_node: sensor0", ("", "", {}))[2]
            return int(values.get("frames", 0))

        sample = struct.pack("<iid6f", 1234567898, 7, 12.5, *[0.0] * 6)
        tried = flood(31006, extreme_numbers(sample))
        for number in range(tries):
            whole = encode_fragments(bytes(60_000 * 20), 1.0 + number, number)
            tried += flood(port, whole[:-1])
            tried += flood(port, encode_fragments(picture, 1e3 + number, number))
            tried += flood(port, [mutated(rng, whole[0][:200], whole[-1][:200])])

        failures = []
        before = frames()
        try:
            wait_until(
                lambda: (
                    flood(port, encode_fragments(picture, time.monotonic(), rng.getrandbits(30)))
                    and frames() > before + 1
                ),
                "good pictures",
                PATIENCE_S,
            )
        except TimeoutError:
            failures.append(f"no picture is received afterwards: {pulse.diagnostics}")
        return judged("data of sensors", tried, running, pulse.longest_stall(), failures)


def rng_pixels(rng: random.Random, np: Any) -> Any:
    """Return a noisy picture of 640 x 480."""
    return np.random.default_rng(rng.getrandbits(32)).integers(0, 255, (480, 640, 3), np.uint8)


# --- commands


@contextmanager
def viewer_at_work() -> Iterator[tuple[Running, PagePulse, str, int]]:
    """Run `rfly view` and yield it, its polled page, the page's host and port, and the UDP port."""
    port = free_port()
    command = rfly(
        "view",
        "--port",
        "0",
        "--udp-port",
        str(port),
        "--feedback-port",
        str(free_port()),
    )

    with Running(command) as running:
        running.wait_for("rfly view: http", timeout_s=60.0)
        address = running.output.partition("rfly view: ")[2].split()[0]
        with PagePulse(address) as pulse:
            yield running, pulse, address.removeprefix("http://"), port


def packets_to_the_viewer(rng: random.Random, tries: int) -> Result:
    """Malformed packets to RflySim3D flood the viewer, with a browser at its page."""
    from fuzz.fuzz_packets import datagrams

    with viewer_at_work() as (running, pulse, host, port):
        with _browser(host):
            sent = flood(port, datagrams(FLOOD * tries, rng.getrandbits(32)))
        return judged("packets to rfly view", sent, running, pulse.longest_stall())


def browsers(rng: random.Random, tries: int) -> Result:
    """Idle, slow and senseless web clients of the viewer; then one that reads."""
    import viser

    with viewer_at_work() as (running, pulse, host, _):
        # the page, its web socket, and frames of odd messages
        hello = handshake(host, f"viser-v{viser.__version__}")
        frames = [
            frame(rng, text) for text in (b"", b"\x80", b"\x81\xa4type\xa4nope", rng.randbytes(300))
        ]
        sensible = [
            f"GET / HTTP/1.1\r\nHost: {host}\r\n\r\n".encode(),
            hello,
            *(hello + each for each in frames),
        ]

        streams(rng, tries, int(host.rpartition(":")[2]), sensible)

        # a browser afterwards
        failures = []
        try:
            with _browser(host) as heard:
                wait_until(lambda: heard[0] > 100_000, "the scene", PATIENCE_S)
        except (TimeoutError, OSError) as error:
            failures.append(f"a browser is not served afterwards: {error}")

        return judged("web clients of rfly view", tries, running, pulse.longest_stall(), failures)


def handshake(host: str, protocol: str, more: str = "") -> bytes:
    """Return the request of a WebSocket client, with more lines of its header."""
    lines = (
        *("GET / HTTP/1.1", f"Host: {host}", "Upgrade: websocket", "Connection: Upgrade"),
        *("Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="),
        *(f"Sec-WebSocket-Protocol: {protocol}", *([more] if more else [])),
    )
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def frame(rng: random.Random, payload: bytes, kind: int = 0x82) -> bytes:
    """Return a masked message of a WebSocket client (RFC 6455, section 5.2), binary by default."""
    mask = rng.randbytes(4)
    if len(payload) < 126:
        head = bytes((kind, 0x80 | len(payload)))
    elif len(payload) < 65536:
        head = struct.pack(">BBH", kind, 0xFE, len(payload))
    else:
        head = struct.pack(">BBQ", kind, 0xFF, len(payload))
    return head + mask + bytes(byte ^ mask[i % 4] for i, byte in enumerate(payload))


@contextmanager
def _browser(host: str) -> Iterator[list[int]]:
    """Run a browser's end of the viewer's page, which reads; yield the number of bytes received."""
    import msgspec
    import viser
    from websockets.exceptions import ConnectionClosed
    from websockets.sync.client import connect

    received = [0]
    protocols = [f"viser-v{viser.__version__}"]
    with connect(f"ws://{host}", subprotocols=protocols, max_size=None) as page:  # type: ignore[list-item]

        def read() -> None:
            with suppress(ConnectionClosed):
                for message in page:
                    received[0] += len(message)

        thread = threading.Thread(target=read, daemon=True)
        thread.start()
        page.send(msgspec.msgpack.encode(CAMERA))
        yield received
    thread.join()


OWN = "{host}"
"""The page's own host and port, in an origin of FOREIGN_ORIGINS."""
FOREIGN_ORIGINS = (
    "http://elsewhere.example",
    "https://elsewhere.example:443",
    "null",
    "file://",
    "http://",
    "http://[",
    "http://" + OWN + ".elsewhere.example",
    "http://" + OWN + "@elsewhere.example",
    "http://elsewhere.example#" + OWN,
    "http://elsewhere.example/" + OWN,
    "http://127.0.0.1.elsewhere.example",
    "http://localhost.elsewhere.example",
    "http://0x7f000001.example",
    "chrome-extension://abcdefgh",
    "moz-extension://abcdefgh",
    "data:text/html,x",
    "\t",
    "a" * 5000,
)
"""Origins of pages that browsers name and that are no page of this machine."""
FOREIGN_HOSTS = ("elsewhere.example", "elsewhere.example:{port}", "127.0.0.1.nip.example", "[::1")
"""Hosts by which a foreign page may ask, after its name was made to lead here."""


FOREIGN_PAGES = 4 * (len(FOREIGN_ORIGINS) + len(FOREIGN_HOSTS) + 1)
"""Requests: of each page, by web socket and without, of both servers."""


def served_pages(host: str, protocol: str, allowed: Sequence[str] = ()) -> Iterator[str]:
    """Ask as foreign pages, for the page and by web socket; yield what is served to them."""
    address, _, port = host.rpartition(":")
    foreign = [origin for origin in FOREIGN_ORIGINS if origin not in allowed]
    asked = [(host, f"Origin: {origin.replace(OWN, host)}") for origin in foreign]
    asked += [(name.format(port=port), "") for name in FOREIGN_HOSTS]
    asked += [(host, f"Origin: http://{host}\r\nOrigin: http://elsewhere.example")]
    for name, origin in asked:
        lines = f"GET / HTTP/1.1\r\nHost: {name}\r\n{origin}\r\n\r\n".encode()
        for request in (lines, handshake(name, protocol, origin)):
            with socket.create_connection((address, int(port)), PATIENCE_S) as peer:
                peer.sendall(request)
                with suppress(ConnectionError):
                    status = peer.recv(4096).split(b"\r\n")[0]
                    if b" 101 " in status or b" 200 " in status:
                        yield f"Host {name}, {origin[:100]}: {status.decode('ascii', 'replace')}"


def foreign_pages(rng: random.Random, tries: int) -> Result:
    """Ask the viewer's page and Foxglove's server as pages from elsewhere."""
    import viser

    from rfly_bringup.topic_recording.foxglove_server import APP_ORIGINS

    failures = []
    with ExitStack() as opened:
        running, _, page, _ = opened.enter_context(viewer_at_work())
        graph = opened.enter_context(own_graph())
        foxglove = opened.enter_context(Running(rfly("view", "--foxglove", "--port", "0"), graph))
        foxglove.wait_for("ws://127.0.0.1:", timeout_s=60.0)
        server = foxglove.output.partition("ws://")[2].split(";")[0].strip()
        failures += [
            f"the viewer serves {each}"
            for each in served_pages(page, f"viser-v{viser.__version__}")
        ]
        failures += [
            f"the server for Foxglove serves {each}"
            for each in served_pages(server, "foxglove.sdk.v1", APP_ORIGINS)
        ]

        result = judged("foreign pages of rfly view", FOREIGN_PAGES, running, None, failures)
        other = judged("foreign pages of rfly view", FOREIGN_PAGES, foxglove, None)
        failures = [*result.failures, *other.failures]
        return replace(result, failed=len(failures), failures=tuple(failures))


def packets_to_monitors(rng: random.Random, tries: int) -> Result:
    """Flood `rfly listen` and `rfly record` with malformed packets.

    The next good packet has to be shown and recorded all the same.
    """
    from fuzz.fuzz_packets import datagrams

    from rfly_ue_bridge.codec.state_datagrams import encode_pose
    from rfly_ue_bridge.datagram_recording.pcap import RecordingReader

    good = encode_pose(31337, 3, (1.0, 2.0, -3.0), (0.0, 0.0, 0.0))
    failures = []
    results = []
    sent = 0

    with tempfile.TemporaryDirectory(prefix="attack_") as folder:
        file = Path(folder) / "out.pcap"
        for command in (("listen", "--json"), ("record", str(file), "--windows", "1")):
            port = free_port()
            with Running(rfly(*command, "--port", str(port))) as running:
                wait_until(
                    lambda running=running, port=port: listens(running, port),
                    f"UDP {port}",
                )

                # a flood, then a good packet
                sent += flood(port, datagrams(FLOOD * tries, rng.getrandbits(32)))
                time.sleep(1.0)
                sent += flood(port, [good] * 100)

                if command[0] == "listen" and not _appears(running, "31337"):
                    failures.append("rfly listen does not show a good packet after the flood")
                results.append(judged(command[0], sent, running, None))
                running.end(2, PATIENCE_S)

        # the recording has the good packet
        with RecordingReader(file) as reader:
            if good not in [datagram.payload for datagram in reader]:
                failures.append("rfly record has not kept a good packet after the flood")

    failures += [failure for result in results for failure in result.failures]
    peak = max(result.largest_memory_mb or 0.0 for result in results)
    return Result(
        "packets to rfly listen, record",
        sent,
        len(failures),
        peak,
        None,
        tuple(failures),
    )


def _appears(running: Running, text: str) -> bool:
    """Return whether a command prints this text in time."""
    with suppress(TimeoutError):
        running.wait_for(text, timeout_s=PATIENCE_S)
        return True
    return False


ATTACKS: dict[str, Callable[[random.Random, int], Result]] = {
    "link tcp": lambda rng, tries: link_over("tcp", rng, tries),
    "link udp": lambda rng, tries: link_over("udp", rng, tries),
    "autopilots": autopilots,
    "ground stations": ground_stations,
    "answers of RflySim3D": answers_of_rflysim3d,
    "states of CopterSim": states_of_coptersim,
    "data of sensors": data_of_sensors,
    "packets to rfly view": packets_to_the_viewer,
    "foreign pages": foreign_pages,
    "browsers": browsers,
    "packets to monitors": packets_to_monitors,
}
