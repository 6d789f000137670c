# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Files are opened in one way: at once, regular ones only, and none above its limit."""

import errno
import os
import resource
import socket
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

from rfly_collision.shapes.vehicle_xml import read_vehicle_xml
from rfly_common import files
from rfly_common.config.documents import read_config
from rfly_common.errors import ConfigError, RflyError, TerrainFileNotFound
from rfly_common.files import (
    encoded_picture,
    open_regular,
    open_whole,
    read_regular,
    write_array,
    write_text,
)
from rfly_missions.mission.files import read_mission
from rfly_terrain.exports.geotiff import write_geotiff
from rfly_terrain.files.arrays import import_array, write_npy, write_npz
from rfly_terrain.files.points import write_cloud
from rfly_terrain.files.writer import write_map
from rfly_terrain.height_map.height_map import HeightMap
from rfly_terrain.map_files.png_txt import MapFiles, read_header, read_map
from rfly_terrain.occupancy.files import load_map
from rfly_terrain.plots.relief import picture
from rfly_trajectory.paths.point_files import read_points
from rfly_ue_bridge import encode_image
from rfly_ue_bridge.datagram_recording.pcap import RecordingReader


def test_content_of_a_regular_file_up_to_its_limit(tmp_path):
    """A link is followed; one byte more is refused, by its size and before it is read."""
    file = tmp_path / "ten.bin"
    file.write_bytes(b"0123456789")
    (tmp_path / "link").symlink_to(file)
    assert read_regular(file, 10) == read_regular(tmp_path / "link", 10) == b"0123456789"
    with open_regular(file) as opened:
        assert opened.read(3) == b"012"
    with pytest.raises(OSError, match="larger than 9 bytes"):
        read_regular(file, 9)
    with pytest.raises(FileNotFoundError):
        read_regular(tmp_path / "none", 9)


def test_what_is_no_regular_file_is_refused_at_once(tmp_path):
    """A pipe without a writer is not waited for."""
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(os.path.relpath(tmp_path / "socket"))
        for name, reason in (
            ("pipe", "a pipe"),
            ("socket", ""),
            ("/dev/zero", "a device"),
            (".", "Is a directory"),
            ("a\0b", "no name of a file"),
        ):
            with pytest.raises(OSError, match=reason) as caught:
                open_regular(tmp_path / name)
            assert caught.value.strerror


def read_map_of(path):
    """Read a map with a file that is no regular one."""
    files = MapFiles(path.with_suffix(".png"), path.with_suffix(".txt"))
    if path.suffix == ".png":
        files.txt.write_text("1,2,3", encoding="utf-8")
    return read_map(files)


@pytest.mark.parametrize(
    ("read", "name"),
    [
        (lambda path: read_config("fleet", "rfly_trajectory", "fleets", path, 1000), "fleet.yaml"),
        (read_mission, "mission.plan"),
        (read_points, "points.csv"),
        (read_map_of, "map.txt"),
        (read_header, "map.png"),
        (read_map_of, "map.png"),
        (load_map, "map.yaml"),
        (read_vehicle_xml, "vehicle.xml"),
        (RecordingReader, "wire.pcap"),
        (import_array, "heights.npz"),
    ],
)
def test_no_reader_waits_for_a_pipe(read, name, tmp_path):
    os.mkfifo(tmp_path / name)
    with pytest.raises((RflyError, OSError), match="a pipe"):
        read(tmp_path / name)


def test_a_text_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    target = tmp_path / "a.yaml"
    link = tmp_path / "link.yaml"
    link.symlink_to(target)
    write_text(target, "old")
    write_text(link, "new")
    assert link.is_symlink()
    assert target.read_text() == "new"

    # nothing is left of a write that fails, and the old content stays
    monkeypatch.setattr(files.os, "replace", lambda *_: (_ for _ in ()).throw(OSError(28, "full")))
    with pytest.raises(OSError, match="full"):
        write_text(target, "newer")
    assert target.read_text() == "new"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.yaml", "link.yaml"]
    write_text("/dev/null", "text")


@pytest.fixture
def disk_of_1000_bytes():
    """Let no file of this process grow beyond 1,000 bytes, as on a disk that is full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def write_with_open_whole(path):
    with open_whole(path) as file:
        for _ in range(100):
            file.write(bytes(100))
            file.flush()


def write_plot(path):
    with picture(path, (3, 2)) as figure:
        figure.subplots().plot([0, 1])


FLAT = HeightMap(
    np.random.default_rng(1).random((20, 30)), origin_x=0, origin_y=0, step_x=1, step_y=1
)


def write_points(path):
    write_cloud(np.zeros((20, 30, 3), np.float32), path)


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("run.csv", write_with_open_whole),
        pytest.param("plot.png", write_plot, marks=pytest.mark.needs("matplotlib")),
        ("cloud.ply", write_points),
        ("cloud.xyz", write_points),
        ("cloud.npy", write_points),
        ("heights.npy", lambda path: write_npy(FLAT, path)),
        ("heights.npz", lambda path: write_npz(FLAT, path)),
        pytest.param(
            "heights.tif",
            lambda path: write_geotiff(FLAT, path),
            marks=pytest.mark.needs("rasterio"),
        ),
    ],
)
def test_a_full_disk_leaves_the_old_file_and_no_part(name, write, tmp_path, disk_of_1000_bytes):
    target = tmp_path / name
    target.write_bytes(b"old")
    with pytest.raises(OSError, match=name) as caught:
        write(target)
    assert caught.value.filename == str(target)
    assert [file.name for file in tmp_path.iterdir()] == [name]
    assert target.read_bytes() == b"old"


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6.0).reshape(2, 3),
        np.asfortranarray(np.arange(6, dtype=np.int16).reshape(2, 3)),
        np.arange(12, dtype=np.uint8).reshape(2, 6)[:, ::2],
        np.zeros((0, 3)),
        np.array(3.0),
    ],
)
def test_numpy_reads_a_written_array(array, tmp_path):
    write_array(tmp_path / "a.npy", array)
    found = np.load(tmp_path / "a.npy")
    assert found.dtype == array.dtype
    assert found.shape == array.shape
    np.testing.assert_array_equal(found, array)


def test_an_error_while_writing_leaves_no_file(tmp_path):
    """The error is the writer's own; a file that it failed to read is still the one it names."""
    with pytest.raises(FileNotFoundError) as caught, open_whole(tmp_path / "out.csv"):
        (tmp_path / "absent.txt").read_text()
    assert caught.value.filename == str(tmp_path / "absent.txt")
    assert not list(tmp_path.iterdir())


def test_an_error_of_the_suite_keeps_its_type_and_names_no_target(tmp_path):
    with (
        pytest.raises(TerrainFileNotFound, match=r"^no map Site$"),
        open_whole(tmp_path / "out.csv"),
    ):
        raise TerrainFileNotFound("no map Site")


def test_a_reason_without_a_number_stays(tmp_path):
    """Pillow raises an OSError that is only a text."""
    with pytest.raises(OSError, match="cannot write mode F"), open_whole(tmp_path / "a.png"):
        raise OSError("cannot write mode F as PNG")
    assert not list(tmp_path.iterdir())


def test_a_replaced_file_keeps_its_permissions_and_a_new_one_has_the_usual(tmp_path):
    plain = tmp_path / "plain.csv"
    plain.write_bytes(b"")
    for mode in (0o600, 0o664):
        private = tmp_path / f"{mode:o}.csv"
        private.write_text("old")
        private.chmod(mode)
        with open_whole(private) as file:
            (part,) = tmp_path.glob(".*.part")
            assert stat.S_IMODE(part.stat().st_mode) == mode  # before there is any content
            file.write(b"new")
        assert stat.S_IMODE(private.stat().st_mode) == mode
        assert private.read_text() == "new"
    write_text(tmp_path / "new.csv", "new")
    assert (tmp_path / "new.csv").stat().st_mode == plain.stat().st_mode


@pytest.fixture
def folder_of_nobody():
    """A folder that anybody may write, for a user who is not root: root may write every file."""
    user = os.geteuid()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o777)
        if user == 0:
            os.seteuid(65534)
        yield folder
        os.seteuid(user)


def test_a_file_that_may_not_be_written_is_not_replaced(folder_of_nobody):
    target = folder_of_nobody / "kept.csv"
    target.write_text("old")
    target.chmod(0o444)
    with pytest.raises(PermissionError, match=r"kept\.csv"):
        write_text(target, "new")
    assert target.read_text() == "old"


def test_a_pipe_is_written_and_stays(tmp_path):
    """The pipe of `command | other` counts, which has no path, and `>(other)` of a shell."""
    named = tmp_path / "pipe"
    os.mkfifo(named)
    with pytest.raises(OSError, match="pipe") as caught:
        write_text(named, "nobody reads this, and nobody waits")
    assert caught.value.errno == errno.ENXIO
    reader = os.open(named, os.O_RDONLY | os.O_NONBLOCK)
    write_text(named, "heights")
    assert os.read(reader, 100) == b"heights"
    os.close(reader)
    assert stat.S_ISFIFO(named.stat().st_mode)

    script = "from rfly_common.files import write_text; write_text('/dev/stdout', 'heights')"
    ended = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert (ended.stdout, ended.stderr) == ("heights", "")


def test_a_folder_is_refused_before_anything_is_written(tmp_path):
    with pytest.raises(IsADirectoryError), open_whole(tmp_path):
        pytest.fail("it was opened")


def test_a_picture_that_a_form_cannot_hold_is_refused_by_its_size(tmp_path):
    """OpenCV only says that it failed, and returns no bytes."""
    row = np.zeros((2, 65_501), np.uint8)
    with pytest.raises(
        ConfigError, match=r"2 rows x 65501 columns, expected at most 65,500 .* jpg"
    ):
        encode_image(row)
    assert encode_image(row, "png").startswith(b"\x89PNG")

    with pytest.raises(ConfigError, match=r"1000001 columns, expected at most 1,000,000 .* png"):
        encoded_picture("png", np.zeros((2, 1_000_001), np.uint8))
    assert encoded_picture("pgm", np.zeros((2, 1_000_001), np.uint8)).startswith(b"P5")
    with pytest.raises(ConfigError, match=r"shape \(0, 3\), expected at least one in a png"):
        encoded_picture("png", np.zeros((0, 3), np.uint8))

    long = np.zeros((1_000_001, 2))
    with pytest.raises(ConfigError, match="1000001 rows x 2 columns"):
        write_map(long, tmp_path / "long.png", origin_x=0, origin_y=0, step_x=1, step_y=1)
    assert not list(tmp_path.iterdir())
