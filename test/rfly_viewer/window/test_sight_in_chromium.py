# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The area in sight of a place, tinted on the ground: behind a wall nothing is."""

from __future__ import annotations

import socket
from types import SimpleNamespace

import numpy as np
import pytest
from optional_parts import late_module

from rfly_terrain import HeightMap
from rfly_terrain.files.writer import write_height_map
from rfly_viewer.window.chromium import chromium_program

pytestmark = [pytest.mark.needs("viser", "cv2")]

server = late_module("rfly_viewer.window.server")
sight = late_module("rfly_viewer.drawing.sight")

SIDE = 200.0
WALL_X = 20.0


@pytest.fixture(scope="module")
def wall():
    """A plain of 200 m with a wall of 20 m from south to north, 20 m east of the middle."""
    heights = np.zeros((101, 101))
    heights[60] = 20.0
    return HeightMap(heights, origin_x=-100.0, origin_y=-100.0, step_x=2.0, step_y=2.0, name="wall")


def tints(picture, x, y):
    """Return the colour of a place in a picture of a region of the map."""
    row = round((100.0 - y) / SIDE * (picture.shape[0] - 1))
    return picture[row, round((x + 100.0) / SIDE * (picture.shape[1] - 1))].astype(int)


@pytest.mark.parametrize("place", [(0.0, 0.0), (60.0, -30.0)])
def test_the_far_side_of_a_wall_is_tinted_as_hidden(wall, place):
    """Above a white photo with a hole, and above the heights' own colours."""
    found = sight.sight_from(wall, place)
    is_west = place[0] < WALL_X
    photo = np.full((64, 64, 4), 255, np.uint8)
    photo[:8] = 0
    picture = SimpleNamespace(pixel=5.0, texture=lambda region, width, height: photo)
    alone = found.over(None).texture(wall.bounds, 64, 64)
    above = found.over(picture).texture(wall.bounds, 64, 64)
    for x, is_near in ((-80.0, is_west), (0.0, is_west), (40.0, not is_west), (90.0, not is_west)):
        colour = sight.SEEN if is_near else sight.HIDDEN
        share = sight.SEEN_SHARE if is_near else sight.HIDDEN_SHARE
        white = np.array(colour) * share + 255.0 * (1.0 - share)
        np.testing.assert_allclose(tints(alone, x, 20.0), [*colour, 255.0 * share], atol=1.0)
        np.testing.assert_allclose(tints(above, x, 20.0), [*white, 255.0], atol=1.0)
        np.testing.assert_allclose(tints(above, x, 95.0), tints(alone, x, 95.0), atol=1.0)

    assert found.over(picture).pixel == pytest.approx(2.0)
    assert f"{found.seen.mean():.0%}" in found.legend()


def test_of_several_requests_the_newest_counts(wall):
    """A request that comes while another is at work replaces it; None takes the tint away."""
    places = []

    def slow(terrain, place):
        places.append(place)
        if len(places) == 1:
            finder.ask(wall, (5.0, 5.0))
        return place

    finder = sight.PlaceFinder(slow, "sight")
    finder.ask(wall, (1.0, 1.0))
    thread = finder._thread
    while thread is not None and thread.is_alive():
        thread.join()
    assert finder.take() == (True, (5.0, 5.0))
    assert finder.take() == (False, (5.0, 5.0))
    finder.ask(wall, None)
    assert finder.take() == (True, None)


def test_the_ground_is_tinted_where_it_is_asked_for(wall, tmp_path, monkeypatch):
    """West of the wall at first, east of it after a double click, and nowhere once unticked."""
    from node_harness import wait_until

    write_height_map(wall, tmp_path / "wall")
    settings = server.Settings(
        map=str(tmp_path / "wall"),
        http_port=0,
        udp_port=0,
        shadows=False,
        sight_from=(0.0, 0.0),
    )
    viewer = server.Viewer(settings)
    shown = []
    monkeypatch.setattr(viewer._terrain, "show", lambda terrain, picture: shown.append(picture))

    def drawn(count):
        """Draw until the ground has changed that many times; return its picture."""
        wait_until(lambda: viewer.draw(0.0) or len(shown) == count, "the ground")
        return shown[-1]

    def greener_in_the_west(picture):
        colours = picture.texture(viewer.state.terrain.bounds, 64, 64)
        return (tints(colours, 0.0, 20.0) - tints(colours, 60.0, 20.0))[1] > 0

    try:
        assert greener_in_the_west(drawn(1))
        assert "in sight" in viewer._sight.legend()
        ray = {"ray_origin": (70.0, 10.0, 100.0), "ray_direction": (0.0, 0.0, -1.0)}
        viewer._double_click(SimpleNamespace(**ray))
        assert not greener_in_the_west(drawn(2))
        viewer.panel.show("sight", 0)
        assert drawn(3) is None
    finally:
        viewer.close()


@pytest.mark.exhaustive
@pytest.mark.slow
@pytest.mark.skipif(chromium_program() is None, reason="the program chromium is not installed")
def test_the_window_shows_it_where_it_is_asked_for(wall, tmp_path):
    """The plain beside the antenna is greener; a double click moves it to the other side."""
    from chromium_harness import Chromium
    from node_harness import wait_until

    write_height_map(wall, tmp_path / "wall")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = server.Settings(
        map=str(tmp_path / "wall"),
        http_port=0,
        udp_port=port,
        shadows=False,
        feedback_port=9,
        sight_from=(0.0, 0.0),
    )
    viewer = server.Viewer(settings)
    now = [0.0]

    def greener_in_the_west(page):
        """Return the difference of green to blue, west less east of the wall."""
        now[0] += 0.1
        viewer.draw(now[0])
        picture = page.picture().astype(float)
        green = picture[..., 1] - picture[..., 2]
        return green[150:220, 300:420].mean() - green[150:220, 600:700].mean()

    try:
        with Chromium(900, 450) as page:
            page.open(viewer.address)
            wait_until(
                lambda: page.evaluate("document.querySelector('canvas') !== null"), "the scene"
            )
            viewer.state.run_command("RflyCameraPosAng 0 0 -100 0 -90 0", 0.0)
            viewer.state.run_command("RflyCameraFovDegrees 90", 0.0)
            wait_until(lambda: greener_in_the_west(page) > 10.0, "the tint")
            wait_until(
                lambda: (
                    greener_in_the_west(page)
                    and "in sight" in page.evaluate("document.body.innerText")
                ),
                "the legend",
            )

            ray = {"ray_origin": (70.0, 10.0, 100.0), "ray_direction": (0.0, 0.0, -1.0)}
            viewer._double_click(SimpleNamespace(**ray))
            wait_until(lambda: greener_in_the_west(page) < -10.0, "the tint of the other side")
            viewer.panel.show("sight", 0)
            wait_until(lambda: abs(greener_in_the_west(page)) < 5.0, "the ground as it was")
    finally:
        viewer.close()
