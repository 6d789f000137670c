# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""`rfly view` as a process, drawn by a real Chromium, fed with bytes that are written here.

Where a vehicle must appear is worked out here, from the camera command alone, with a pinhole of 90
degrees.
"""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request

import numpy as np
import pytest
from chromium_harness import Chromium
from marks import exhaustively
from node_harness import PATIENCE, wait_until

from rfly_viewer.window.chromium import chromium_program

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(chromium_program() is None, reason="the program chromium is not installed"),
]

WIDTH = 900
HEIGHT = 450

# A box (vehicleType 9999) of 1 m; the viewer draws ids 34, 55, 76 in red and 48, 69 in blue.
# checksum copterID vehicleT MotorRPM PosE: x  y        z        roll     pitch    yaw
RED_34 = bytes.fromhex(
    "d2029649 22000000 0f270000 00000000 0000a041 00000000 000000bf 00000000 00000000 00000000"
)
RED_34_AT = (20.0, 0.0, -0.5)
MOVED_34 = bytes.fromhex(
    "d2029649 22000000 0f270000 00000000 0000c041 0000c040 000000bf 00000000 00000000 00000000"
)
MOVED_34_AT = (24.0, 6.0, -0.5)
BLUE_48 = bytes.fromhex(
    "d2029649 30000000 0f270000 00000000 00008041 0000a0c0 000000bf 00000000 00000000 00000000"
)
BLUE_48_AT = (16.0, -5.0, -0.5)
# 1234567891: keep on the ground, so z = -500 m does not count
GROUND_76 = bytes.fromhex(
    "d3029649 4c000000 0f270000 00000000 0000a041 0000c0c0 0000fac3 00000000 00000000 00000000"
)
GROUND_76_AT = (20.0, -6.0, -0.5)
# SOut2SimulatorSimple1, stretched to 12 m along its own x, y or z, and turned by a quarter so that
# it points elsewhere
LONG_55 = "d2029649 37000000 0f270000 00000000 0000a041 00000000 000000c1"  # at 20, 0, -8
QUARTER = "db0fc93f"
ZERO = "00000000"
ONE = "0000803f"
TWELVE = "00004041"

CAMERA = bytes.fromhex(  # RflyCameraPosAng 0 0 -20 0 -45 0
    "d2029649 52666c79 43616d65 7261506f 73416e67 20302030 202d3230 2030202d 34352030"
).ljust(56, b"\0")
FROM_SOUTH = ((0.0, 0.0, -20.0), -45.0, 0.0)  # NED, degrees of pitch and yaw
ASIDE = bytes.fromhex(  # RflyCameraPosAng 2 -18 -20 0 -25 45
    "d2029649 52666c79 43616d65 7261506f 73416e67 2032202d 3138202d 32302030 202d3235 203435"
).ljust(56, b"\0")
FROM_ASIDE = ((2.0, -18.0, -20.0), -25.0, 45.0)
FOV = bytes.fromhex("d2029649 52666c79 43616d65 7261466f 76446567 72656573 203930").ljust(
    56, b"\0"
)  # … Degrees 90


def pixel(point_ned, camera=FROM_SOUTH):
    """Return where a level camera with the angle of FOV sees a point: x right, y down."""
    at, pitch, yaw = camera
    (cp, sp), (cy, sy) = ((np.cos(np.radians(a)), np.sin(np.radians(a))) for a in (pitch, yaw))
    forward = np.array([cp * cy, cp * sy, -sp])
    right = np.array([-sy, cy, 0])
    down = np.array([sp * cy, sp * sy, cp])
    ray = np.subtract(point_ned, at)
    focal = WIDTH / 2 / np.tan(np.radians(90) / 2)
    depth = ray @ forward
    return WIDTH / 2 + focal * (ray @ right) / depth, HEIGHT / 2 + focal * (ray @ down) / depth


def test_the_projection_itself():
    """The place is worked out by hand.

    20 m north of a camera 20 m up that looks 45 degrees down is the middle of the picture.
    """
    assert pixel((20, 0, 0)) == pytest.approx((450, 225))
    expected = (450 + 450 * 10 / np.sqrt(800), 225)
    assert pixel((20, 10, 0)) == pytest.approx(expected)


def colour_at(picture, point_ned, camera=FROM_SOUTH):
    """Mean colour of 5 x 5 pixels where a point must be."""
    x, y = (round(value) for value in pixel(point_ned, camera))
    return picture[y - 2 : y + 3, x - 2 : x + 3].reshape(-1, 3).mean(axis=0)


def is_red(rgb):
    return rgb[0] > 90 and rgb[0] > 2 * rgb[1] and rgb[0] > 2 * rgb[2]


def is_blue(rgb):
    return rgb[2] > 90 and rgb[2] > 1.8 * rgb[0] and rgb[2] > 1.8 * rgb[1]


class View:
    """The running viewer, its UDP port, and the page that shows it."""

    def __init__(self, folder):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]

        self.feedback = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.feedback.bind(("127.0.0.1", 0))
        self.feedback.settimeout(PATIENCE)

        program = "import sys; from rfly_bringup.cli.main import main; sys.argv[0] = 'rfly'; main()"
        options = [
            "--map",
            "",
            "--no-shadows",
            "--port",
            "0",
            "--udp-port",
            str(self.port),
            "--scan-folder",
            str(folder),
            "--feedback-port",
            str(self.feedback.getsockname()[1]),
        ]
        self.process = subprocess.Popen(
            [sys.executable, "-c", program, "view", *options], stdout=subprocess.PIPE, text=True
        )
        self.line = self.process.stdout.readline()
        self.address = re.search(r"http://\S+", self.line)[0]
        self._sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)

    def send(self, *datagrams):
        for datagram in datagrams:
            self._sender.sendto(datagram, ("127.0.0.1", self.port))

    def command(self, text):
        self.send(
            bytes.fromhex("d2029649") + text.encode().ljust(252 if len(text) > 51 else 52, b"\0")
        )

    def close(self):
        self._sender.close()
        self.feedback.close()
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(PATIENCE)


@pytest.fixture(scope="module")
def view(tmp_path_factory):
    running = View(tmp_path_factory.mktemp("scans"))
    yield running
    assert running.close() == 0


@pytest.fixture(scope="module")
def page(view):
    with Chromium(WIDTH, HEIGHT) as browser:
        browser.open(view.address)
        wait_until(
            lambda: browser.evaluate("document.querySelector('canvas') !== null"), "the scene"
        )
        unfold(browser)
        wait_until(
            lambda: "flat ground" in browser.evaluate("document.body.innerText"), "the panel"
        )
        yield browser


def unfold(browser):
    """Click the + of the panel, which is folded at the start."""
    middle = """(() => {
        const plus = document.querySelector('[aria-label="Expand panel"]')?.getBoundingClientRect();
        return plus ? [plus.x + plus.width / 2, plus.y + plus.height / 2] : null;
    })()"""
    at = wait_until(lambda: browser.evaluate(middle), "the folded panel")
    assert "flat ground" not in browser.evaluate("document.body.innerText")
    browser.click(*at)


@pytest.fixture
def scene(view, page):
    """Show no vehicle but blue 48 to the known camera: once it is drawn, the picture is current."""
    if not is_empty(page):
        page.evaluate(
            "[...document.querySelectorAll('button')]"
            ".find(b => b.innerText == 'Remove all').click()"
        )
        wait_until(lambda: is_empty(page), "an empty scene")
    view.send(CAMERA, FOV, BLUE_48)
    wait_for(is_blue, page, BLUE_48_AT)
    return page


def is_empty(page):
    return "\n0 vehicles" in page.evaluate("document.body.innerText")


def wait_for(is_colour, page, point_ned, camera=FROM_SOUTH):
    """The first picture that has the colour where that point must be."""

    def look():
        picture = page.picture()
        return is_colour(colour_at(picture, point_ned, camera)) and [picture]

    return wait_until(look, f"{is_colour.__name__} at {point_ned}")[0]


def test_a_vehicle_is_where_its_bytes_say_and_then_no_more(view, scene):
    """The same look finds nothing while the vehicle's packet is withheld."""
    withheld = wait_for(is_blue, scene, BLUE_48_AT)
    assert not is_red(colour_at(withheld, RED_34_AT))
    view.send(RED_34)
    first = wait_for(is_red, scene, RED_34_AT)
    assert not is_red(colour_at(first, MOVED_34_AT))
    view.send(MOVED_34)
    second = wait_for(is_red, scene, MOVED_34_AT)
    assert not is_red(colour_at(second, RED_34_AT))


NORTH_SOUTH = [(25.5, 0, -8), (14.5, 0, -8)]
EAST_WEST = [(20, 5.5, -8), (20, -5.5, -8)]
UP_DOWN = [(20, 0, -13.5), (20, 0, -2.5)]


@pytest.mark.parametrize(
    ("scale", "euler", "ends"),
    [
        exhaustively((TWELVE, ONE, ONE), (ZERO, ZERO, ZERO), NORTH_SOUTH, id="level"),
        pytest.param((TWELVE, ONE, ONE), (ZERO, ZERO, QUARTER), EAST_WEST, id="yaw"),
        exhaustively((TWELVE, ONE, ONE), (ZERO, QUARTER, ZERO), UP_DOWN, id="pitch"),
        pytest.param((ONE, TWELVE, ONE), (QUARTER, ZERO, ZERO), UP_DOWN, id="roll"),
    ],
)
def test_scale_and_attitude(view, scene, scale, euler, ends):
    """A box of 12 m shows at both ends, and not where another attitude would put them."""
    view.send(ASIDE, bytes.fromhex(" ".join([LONG_55, *euler, *scale])))

    def red_points():
        picture = scene.picture()
        return [
            point
            for point in NORTH_SOUTH + EAST_WEST + UP_DOWN
            if is_red(colour_at(picture, point, FROM_ASIDE))
        ]

    wait_until(lambda: red_points() == ends, f"red at {ends} and nowhere else")


def test_kept_on_the_ground(view, scene):
    """A box 500 m up stands on the ground with checksum 1234567891."""
    view.send(GROUND_76)
    wait_for(is_red, scene, GROUND_76_AT)


def test_fog_hides_what_is_far_and_night_what_is_near(view, scene):
    """Fog hides a box 28 m away.

    At a visibility of 20 m no colour of it is left, and clear air leaves all of it.
    """
    view.send(RED_34)
    day = colour_at(wait_for(is_red, scene, RED_34_AT), RED_34_AT)

    def is_grey(rgb):
        return rgb.min() > 120 and np.ptp(rgb) < 30

    def is_night(rgb):
        return rgb.max() < 0.5 * day.max()

    view.command("RflySuiteWeather 1 20 0 0")
    wait_for(is_grey, scene, RED_34_AT)
    view.command("RflySuiteWeather 0.1 0 0 0")
    wait_for(is_night, scene, RED_34_AT)
    view.command("RflySuiteWeather 1 0 0 0")
    wait_for(is_red, scene, RED_34_AT)


def test_a_double_click_shows_click_point_and_object(view, scene):
    """The ray of a pixel meets the ground, or the vehicle.

    The offset of a box of 1 m is half its height.
    """
    view.send(RED_34)
    wait_for(is_red, scene, RED_34_AT)

    def double_click(point, pattern):
        """Repeat the double click until it is noticed.

        On a busy machine the clicks may reach the page too far apart.
        """
        scene.click(*pixel(point), times=2)
        return re.search(pattern, scene.evaluate("document.body.innerText"))

    point = r"click point: (\S+) (\S+) (\S+)"
    found = wait_until(lambda: double_click((20, 4, 0), point), "the click point")
    assert [float(part) for part in found.groups()] == pytest.approx([20, 4, 0], abs=0.07)
    position = r"object pos: 20.000 0.000 -0.500 \(vehicle 34\)\s+offset above the ground: 0.500 m"
    wait_until(lambda: double_click(RED_34_AT, position), "the object's position and offset")


def test_key_and_click_put_a_target(view, scene):
    """Key T, then a click: a target stands there, centre 1.2 m over the ground."""
    scene.press("T")
    last_box = "[...document.querySelectorAll('input[type=checkbox]')].at(-1).checked"
    wait_until(lambda: scene.evaluate(last_box), "the tick at 'Click puts a target'")
    scene.click(*pixel((18, 4, 0)))
    found = wait_until(
        lambda: re.search(
            r"target 151\s+(\S+)\s+(\S+)\s+(\S+)", scene.evaluate("document.body.innerText")
        ),
        "the target in the list",
    )
    assert [float(part) for part in found.groups()] == pytest.approx([18, 4, -1.2], abs=0.11)


def test_an_object_request_is_answered(view, scene):
    """RflyReqObjData 1 34 is answered by CoptReqData (80 bytes).

    It has checksum 1234567891, id, origin, and a box of 1 x 1 x 1 m.
    """
    view.send(RED_34)
    wait_for(is_red, scene, RED_34_AT)
    view.command("RflyReqObjData 1 34 0")
    answer = view.feedback.recv(4096)
    assert len(answer) == 80
    assert answer[:8].hex() == "d302964922000000"
    assert np.frombuffer(answer, "<f4", 3, 8) == pytest.approx([20, 0, -0.5])
    assert np.frombuffer(answer, "<f4", 3, 8 + 4 * 13) == pytest.approx([0.5, 0.5, 0.5])


def test_the_page_says_that_it_is_drawn_without_a_graphics_card(page):
    """Chromium draws by SwiftShader here; viser's page looks for that."""
    assert "Software WebGL rendering detected" in page.evaluate("document.body.innerText")


def test_nothing_comes_from_other_hosts(view, page):
    hosts = {re.match(r"(?:https?|wss?)://([^/]+)", url) for url in page.requested}
    assert {found[1] for found in hosts if found} == {view.address.removeprefix("http://")}


def test_the_page_answers_on_loopback(view):
    assert view.address.startswith("http://127.0.0.1:")
    with urllib.request.urlopen(view.address, timeout=PATIENCE) as answer:
        assert answer.status == 200


@pytest.mark.parametrize(
    "headers", [{"Origin": "http://evil.example"}, {"Host": "evil.example:8080"}]
)
def test_other_pages_of_the_browser_are_refused(view, headers):
    """A page from elsewhere, and a foreign name that leads here."""
    request = urllib.request.Request(view.address, headers=headers)
    with pytest.raises(urllib.error.HTTPError, match="403"):
        urllib.request.urlopen(request, timeout=PATIENCE)
