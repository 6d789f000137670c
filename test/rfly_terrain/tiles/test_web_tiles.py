# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Tiles on a web server: equal to the local folder, and every way in which a server may fail."""

from __future__ import annotations

import pickle
import shutil
import socket
import ssl
import subprocess
import threading
from contextlib import suppress

import numpy as np
import pytest
from optional_parts import late_module
from range_server import RangeServer, send, send_part
from rasters import write_tif

from rfly_common.errors import ConfigError, TerrainFileNotFound, TerrainFormatError
from rfly_terrain import TiledHeightMap
from rfly_terrain.files import web_files
from rfly_terrain.files.web_files import WebFile, WebPlace
from rfly_terrain.tiles.open_terrain import (
    find_tiles,
    load_terrain,
    open_asked_terrain,
    open_terrain,
)

pytestmark = pytest.mark.needs("rasterio", "pyproj")

affine = late_module("rasterio.transform")

SIDE = 700
TILE = "/Country/tiles/east00000_north00000.tif"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with 3 x 3 files of tiles, and the GeoTIFF that they were made of."""
    from rfly_terrain.tiles.make_tiles import TileOptions, make_tiles

    folder = tmp_path_factory.mktemp("maps")
    raster = np.random.default_rng(4).normal(500.0, 20.0, (SIDE, SIDE)).astype(np.float32)
    corner = (500_000 - SIDE * 5.0, 5_000_000 + SIDE * 5.0)
    write_tif(folder / "one.tif", raster, affine.from_origin(*corner, 10.0, 10.0))
    make_tiles([folder / "one.tif"], folder / "Country", TileOptions(side=256), jobs=1)
    return folder


@pytest.fixture
def server(folder):
    with RangeServer(folder) as server:
        yield server


@pytest.fixture
def soon(monkeypatch):
    """A request that is not answered ends soon."""
    monkeypatch.setattr(web_files, "REQUEST_S", 0.2)


def tiles_of(server):
    return TiledHeightMap.open(WebPlace.allowed(server.url) / "Country")


def test_tiles_by_http_are_those_of_the_folder(server, folder):
    ours = tiles_of(server)
    theirs = TiledHeightMap.open(folder / "Country")
    np.testing.assert_array_equal(ours.part().heights, theirs.part().heights)
    assert ours.bounds == theirs.bounds
    assert (ours.geo_origin, ours.name) == (theirs.geo_origin, "Country")
    assert pickle.loads(pickle.dumps(ours)).altitude(12.0, 34.0) == theirs.altitude(12.0, 34.0)


def test_a_geotiff_by_http(server, folder):
    ours = load_terrain("one.tif", [server.url])
    np.testing.assert_array_equal(
        ours.heights, TiledHeightMap.open(folder / "one.tif").part().heights
    )


def test_only_the_needed_parts_are_read(server, folder):
    """A point costs the manifest, and the head and one block of the file that has its cell."""
    tiled = tiles_of(server)
    tiled.altitude(-3000.0, -3000.0)
    manifest, *parts = (path for path, _ in server.asked)
    assert manifest == "/Country/terrain.json"
    assert len(parts) == 2
    assert parts[0] == parts[1]
    assert tiled.altitude(-2990.0, -2990.0)
    assert len(server.asked) == 3


def test_a_name_is_searched_in_the_order_of_the_folders(server, folder, tmp_path):
    assert str(find_tiles("Country", [server.url, folder])) == f"{server.url}/Country"
    assert find_tiles("Country", [folder, server.url]) == folder / "Country"
    assert find_tiles("Country", [f"{server.url}/", tmp_path]).url == f"{server.url}/Country"
    assert find_tiles("Nowhere", [server.url]) is None
    whole = f"{server.url}/Country"
    assert find_tiles(whole, [server.url]).url == whole


def test_no_server_is_asked_that_is_not_on_the_search_path(server):
    """Loopback is no exception, nor a folder beside the allowed one, nor any way out of it."""
    for name in (
        f"{server.url}/Country",
        f"{server.url}/allowed/../Country",
        f"{server.url}/allowed/%2e%2e/Country",
        f"{server.url}/allowed//Country",
        f"{server.url}/allowedCountry",
    ):
        with pytest.raises(TerrainFileNotFound, match="--search-path"):
            find_tiles(name, [f"{server.url}/allowed"])
    for name in ("../Country", "..\\Country", "Country?x", "//Country", "@host/Country", ""):
        with pytest.raises(TerrainFileNotFound):
            open_asked_terrain(name, [f"{server.url}/allowed"])
    assert {path for path, _ in server.asked} <= {"/allowed/%40host/Country/terrain.json"}


@pytest.mark.parametrize(
    "address",
    [
        "http://me:secret@127.0.0.1/maps",
        "https://host/maps?secret",
        "https://host/maps#secret",
        "https://host:port-secret/maps",
        "https:///secret",
    ],
)
def test_no_password_is_sent_or_told(address):
    with pytest.raises(ConfigError) as caught:
        find_tiles("Country", [address])
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "address",
    [
        "http://a..b/maps",
        f"http://{'a' * 64}.org/maps",
        "http://[:::]/maps",
        "http://[1.2]/maps",
        "http://127.0.0.1:65536/maps",  # else that is port 0
        "http://127.0.0.1:99999/maps",
        "http://127.0.0.1:0/maps",
        "HTTP://127.0.0.1/maps",
    ],
)
def test_an_address_that_no_connection_takes(address):
    with pytest.raises(ConfigError, match="expected http"):
        find_tiles("Country", [address])


def test_an_address_with_escaped_characters(server, tmp_path, folder):
    """A name of a file has them as they are, an address as a browser shows it."""
    server.folder = tmp_path
    shutil.copytree(folder / "Country", tmp_path / "La%20France")
    escaped = f"{server.url}/La%20France"
    for name in ("La France", escaped, f"{server.url}/La France"):
        assert find_tiles(name, [server.url]).url == escaped
    assert find_tiles(escaped, [server.url]).name == "La France"
    with pytest.raises(TerrainFileNotFound):
        find_tiles(f"{server.url}/a/%2E%2E/%2E%2E/La%20France", [f"{server.url}/a"])
    assert {path for path, _ in server.asked} == {"/La%20France/terrain.json"}


def test_a_map_has_the_same_name_on_a_server_and_in_a_folder(server, tmp_path, folder):
    server.folder = tmp_path
    shutil.copytree(folder / "Country", tmp_path / "Alps.v2")
    for place in (tmp_path, server.url):
        assert open_terrain("Alps.v2", [place]).name == "Alps.v2"


def test_what_is_not_found_on_a_server_names_no_folder_of_its_address(server, tmp_path):
    for search_path in ([server.url, tmp_path], [tmp_path, f"{server.url}/"]):
        with pytest.raises(TerrainFileNotFound) as caught:
            load_terrain("Nowhere", search_path)
        text = str(caught.value)
        assert "http" not in text
        assert f"Looked in: {tmp_path}; " in text
        assert "Servers on the search path" in text
    with pytest.raises(TerrainFileNotFound) as caught:
        load_terrain("Nowhere", [tmp_path])
    assert "Servers" not in str(caught.value)


def whole_file(handler):
    send(handler, 200, b"everything")


def redirect(handler):
    send(handler, 302, b"", {"Location": "http://secret.example/Country"})


def forbidden(handler):
    send(handler, 403, b"secret")


def other_part(handler):
    send(handler, 206, b"12345", {"Content-Range": "bytes 5-9/10"})


def no_content_range(handler):
    send(handler, 206, b"12345")


def too_short(handler):
    headers = {"Content-Range": "bytes 0-99/100", "Content-Length": "100", "Connection": "close"}
    send(handler, 206, b"12345", headers)
    handler.close_connection = True


def no_http(handler):
    handler.wfile.write(b"secret\r\n\r\n")
    handler.close_connection = True


def dies(handler):
    handler.connection.shutdown(socket.SHUT_RDWR)
    handler.close_connection = True


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (whole_file, "it must support range requests"),
        (redirect, "redirects .*302.*, which is not followed"),
        (forbidden, "status 403"),
        (other_part, "another part"),
        (no_content_range, "another part"),
        (too_short, "too early"),
        (no_http, "no HTTP"),
        (dies, "no HTTP .RemoteDisconnected"),
    ],
)
@pytest.mark.parametrize("begins", ["/Country/terrain.json", TILE])
def test_a_wrong_answer_is_told(server, answer, reason, begins):
    """The manifest and a tile are asked for anew by a later query."""

    def wrong(handler):
        is_chosen = handler.path == begins
        if is_chosen:
            answer(handler)
        return is_chosen

    server.answer = wrong
    with pytest.raises(TerrainFormatError, match=reason) as caught:
        tiles_of(server).altitude(-3000.0, -3000.0)
    assert f"{server.url}{begins}" in str(caught.value)
    assert "secret" not in str(caught.value)


def test_a_tile_that_failed_is_asked_for_again(server, folder):
    tiled = tiles_of(server)
    server.answer = lambda handler: forbidden(handler) or True
    with pytest.raises(TerrainFormatError):
        tiled.altitude(-3000.0, -3000.0)
    server.answer = lambda handler: False
    expected = TiledHeightMap.open(folder / "Country").altitude(-3000.0, -3000.0)
    assert tiled.altitude(-3000.0, -3000.0) == expected


def test_a_missing_tile(server):
    server.answer = lambda handler: handler.path == TILE and (handler.send_error(404) or True)
    with pytest.raises(TerrainFileNotFound, match="east00000_north00000"):
        tiles_of(server).altitude(-3000.0, -3000.0)


def test_a_server_that_dies_in_a_tile_never_gives_wrong_heights(server, folder):
    """It answers some of the eight requests of a point: those for heads, and those for heights.

    The point itself needs two of them.
    """
    expected = TiledHeightMap.open(folder / "Country").altitude(-3000.0, -3000.0)
    answers = []
    for good in range(9):
        server.answer = lambda handler: False
        tiled = tiles_of(server)
        left = iter(range(good))
        server.answer = lambda handler, left=left: (
            next(left, None) is None and (dies(handler) or True)
        )
        try:
            answers.append(tiled.altitude(-3000.0, -3000.0))
        except TerrainFormatError:
            answers.append(None)

    assert answers[:2] == [None, None]
    assert set(answers[2:]) <= {None, expected}
    assert answers[8] == expected


def test_a_silent_server(server, soon):
    told = threading.Event()
    server.answer = lambda handler: told.wait(30.0)
    with pytest.raises(TerrainFormatError, match="not answered within"):
        tiles_of(server)
    told.set()


def test_a_server_that_drips(server, soon):
    """Each byte comes in time, and all of them do not."""
    ended = threading.Event()

    def drip(handler):
        handler.send_response(206)
        handler.send_header("Content-Range", "bytes 0-999/1000")
        handler.send_header("Content-Length", "1000")
        handler.end_headers()
        while not ended.wait(0.02):
            handler.wfile.write(b" ")
        return True

    server.answer = drip
    with pytest.raises(TerrainFormatError, match="not answered within"):
        tiles_of(server)
    ended.set()


def test_a_server_that_drips_its_head(server, soon):
    """Each byte of the head comes in time, and its end does not."""
    ended = threading.Event()

    def drip(handler):
        handler.wfile.write(b"HTTP/1.1 206 Partial Content\r\nX-Slow: ")
        while not ended.wait(0.02):
            handler.wfile.write(b"x")
        return True

    server.answer = drip
    with pytest.raises(TerrainFormatError, match="not answered within"):
        tiles_of(server)
    ended.set()


def test_a_server_that_drips_its_tls_handshake(soon):
    """Each byte of a record of 16 kB comes in time, and its end does not."""
    ended = threading.Event()

    def drip(listener):
        with listener.accept()[0] as peer, suppress(OSError):
            peer.recv(4096)
            peer.sendall(b"\x16\x03\x03\x3f\x00\x02\x00\x3e\xfc")
            while not ended.wait(0.02):
                peer.sendall(b"\0")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=drip, args=(listener,), daemon=True)
        thread.start()
        url = f"https://127.0.0.1:{listener.getsockname()[1]}"
        with pytest.raises(TerrainFormatError, match="not answered within"):
            find_tiles("Country", [url])
        ended.set()
        thread.join()


def test_a_connection_that_the_server_closed_meanwhile_is_made_anew(server, folder):
    """The server ends each connection after its answer, and does not say so in its head."""

    def hang_up_afterwards(handler):
        send_part(handler, folder)
        handler.close_connection = True
        return True

    server.answer = hang_up_afterwards
    expected = TiledHeightMap.open(folder / "Country").altitude(-3000.0, -3000.0)
    assert tiles_of(server).altitude(-3000.0, -3000.0) == expected


def test_a_server_that_ends_an_open_connection_without_an_answer_is_asked_once_more(server):
    with WebFile(WebPlace.allowed(server.url) / "one.tif") as file:
        file.part(0, 10)
        server.answer = lambda handler: dies(handler) or True
        with pytest.raises(OSError, match="RemoteDisconnected"):
            file.part(1 << 20, 10)
        assert len(server.asked) == 3


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """A certificate of 127.0.0.1 that signs itself, and its key, in a file."""
    if shutil.which("openssl") is None:
        pytest.skip("the program openssl is not installed")
    file = tmp_path_factory.mktemp("tls") / "server.pem"
    made = ("-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1")
    names = ("-addext", "subjectAltName=IP:127.0.0.1")
    files = ("-keyout", file, "-out", file.with_suffix(".crt"))
    subprocess.run(["openssl", "req", *made, *names, *files], check=True, capture_output=True)
    file.write_bytes(file.read_bytes() + file.with_suffix(".crt").read_bytes())
    return file


def test_tiles_by_https_from_a_server_with_a_certificate_of_its_own(
    folder, certificate, monkeypatch
):
    """Unknown, it is refused; SSL_CERT_FILE makes it known."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    with RangeServer(folder, tls=context) as server:
        assert server.url.startswith("https://")
        with pytest.raises(TerrainFormatError, match="certificate"):
            tiles_of(server)
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate.with_suffix(".crt")))
        expected = TiledHeightMap.open(folder / "Country").altitude(-3000.0, -3000.0)
        assert tiles_of(server).altitude(-3000.0, -3000.0) == expected


def test_no_server_at_all():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(TerrainFormatError, match="refused"):
            find_tiles("Country", [url])


def test_sizes_are_limited(server, monkeypatch, tmp_path):
    monkeypatch.setattr(web_files, "MOST_BYTES", 50_000)
    with pytest.raises(TerrainFormatError, match="more than 50,000 bytes"):
        tiles_of(server).altitude(-3000.0, -3000.0)

    server.folder = tmp_path
    (tmp_path / "Country").mkdir()
    (tmp_path / "Country" / "terrain.json").write_text(" " * 65_537)
    monkeypatch.setattr(web_files, "MOST_BYTES", 1 << 20)
    with pytest.raises(TerrainFormatError, match="larger than"):
        tiles_of(server)


def test_a_file_that_changes_while_it_is_read(server, folder):
    """A block of another file than the head is no height."""

    def answer(handler):
        if handler.path != TILE or "bytes=0-" in handler.headers["Range"]:
            return False
        first = handler.headers["Range"][6:].split("-")[0]
        send(handler, 206, b"1", {"Content-Range": f"bytes {first}-{first}/{int(first) + 1}"})
        return True

    server.answer = answer
    with pytest.raises(TerrainFormatError, match="changed while"):
        tiles_of(server).altitude(-3000.0, -3000.0)


def test_a_peer_learns_no_content(server):
    server.answer = lambda handler: (
        send(handler, 206, b"secret", {"Content-Range": "bytes 0-5/6"}) or True
    )
    with pytest.raises(TerrainFormatError) as caught:
        open_asked_terrain("Country", [server.url])
    assert "secret" not in str(caught.value)
    assert "rfly terrain info" in str(caught.value)
