# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Files of map_server and nav_msgs/OccupancyGrid: round trips and refusals."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import cv2
import numpy as np
import pytest
import yaml

from rfly_common.errors import ConfigError, TerrainFileNotFound, TerrainFormatError
from rfly_terrain import (
    BinaryOccupancyMap,
    HeightMap,
    cells_to_image,
    image_to_cells,
    write_height_map,
)
from rfly_terrain.occupancy.files import load_map

MATRIX = np.array([[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0, 1]], bool)


def write_map(folder: Path, image: bytes, name: str = "office.pgm", **changes: object) -> Path:
    keys = {"image": name, "resolution": 0.05, "origin": [-1.0, 2.5, 0.0], "negate": 0}
    keys |= {"occupied_thresh": 0.65, "free_thresh": 0.196, **changes}
    (folder / name).write_bytes(image)
    path = folder / "office.yaml"
    path.write_text(
        yaml.safe_dump({key: value for key, value in keys.items() if value is not None}),
        encoding="utf-8",
    )
    return path


def pgm(pixels: list[list[int]]) -> bytes:
    array = np.array(pixels, np.uint8)
    return b"P5\n%d %d\n255\n" % array.shape[::-1] + array.tobytes()


def png(pixels: np.ndarray) -> bytes:
    return cv2.imencode(".png", pixels)[1].tobytes()


@pytest.mark.parametrize("image_format", ["pgm", "png"])
def test_there_and_back(tmp_path, image_format):
    m = BinaryOccupancyMap.from_matrix(
        MATRIX, 20, grid_origin_in_local=(1, 1), local_origin_in_world=(-3.3, 7)
    )
    m.save(tmp_path / "office.yaml", image_format)
    again = BinaryOccupancyMap.load(tmp_path / "office.yaml")

    assert np.array_equal(again.occupancy_matrix(), MATRIX)
    assert again.resolution == 20.0
    assert again.grid_location_in_world.tolist() == m.grid_location_in_world.tolist()

    keys = yaml.safe_load((tmp_path / "office.yaml").read_text(encoding="utf-8"))
    assert keys == {
        "image": f"office.{image_format}",
        "mode": "trinary",
        "resolution": 0.05,
        "origin": [pytest.approx(-2.3), 8.0, 0.0],
        "negate": 0,
        "occupied_thresh": 0.65,
        "free_thresh": 0.25,
    }


def test_the_saved_image_is_what_map_saver_writes(tmp_path):
    BinaryOccupancyMap.from_matrix(MATRIX).save(tmp_path / "office")
    assert (tmp_path / "office.pgm").read_bytes() == (
        b"P5\n4 3\n255\n" + bytes([0, 254, 254, 254, 254, 0, 254, 254, 254, 254, 254, 0])
    )


@pytest.mark.parametrize(
    ("name", "files"),
    [
        ("site.v2", {"site.v2.yaml", "site.v2.png"}),
        ("site", {"site.yaml", "site.png"}),
        ("site.yml", {"site.yml", "site.yml.png"}),
        ("site.v2.YAML", {"site.v2.YAML", "site.v2.YAML.png"}),
    ],
)
def test_a_dot_in_a_name_is_part_of_it(tmp_path, name, files):
    """site.v2 and site.v3 are two maps."""
    BinaryOccupancyMap.from_matrix(MATRIX).save(tmp_path / name, "png")
    assert {file.name for file in tmp_path.iterdir()} == files
    (table,) = (file for file in tmp_path.iterdir() if file.suffix != ".png")
    np.testing.assert_array_equal(BinaryOccupancyMap.load(table).occupancy_matrix(), MATRIX)


@pytest.mark.parametrize("image_format", ["pgm", "png"])
def test_maps_of_two_names_share_no_image(tmp_path, image_format):
    names = ("site.yaml", "site.yml")
    maps = [BinaryOccupancyMap.from_matrix(np.eye(3, k=k, dtype=bool)) for k in range(2)]
    for name, each in zip(names, maps, strict=True):
        each.save(tmp_path / name, image_format)
    for k, name in enumerate(names):
        again = BinaryOccupancyMap.load(tmp_path / name)
        np.testing.assert_array_equal(again.occupancy_matrix(), np.eye(3, k=k, dtype=bool))


def test_an_occupancy_map_and_a_terrain_do_not_replace_each_others_image(tmp_path):
    heights = [[0.0, 1.0], [2.0, 3.0]]
    terrain = HeightMap(heights, origin_x=0.0, origin_y=0.0, step_x=1.0, step_y=1.0)
    costs = BinaryOccupancyMap.from_matrix(MATRIX)
    for _ in range(2):  # their own may be replaced
        write_height_map(terrain, tmp_path / "hill", overwrite=True)
        costs.save(tmp_path / "plain.yaml", "png")

    with pytest.raises(ConfigError, match=r"hill\.png would replace the heights of hill\.txt"):
        costs.save(tmp_path / "hill.yaml", "png")
    with pytest.raises(FileExistsError, match=r"plain\.png is the image of .* plain\.yaml"):
        write_height_map(terrain, tmp_path / "plain", overwrite=True)

    # of another yaml, such as a world's, the png is no image
    (tmp_path / "town.yaml").write_text("map: town\nimage: old_town.png")
    (tmp_path / "town.png").write_bytes(b"a plot")
    write_height_map(terrain, tmp_path / "town", overwrite=True)

    costs.save(tmp_path / "hill.yaml")  # a pgm
    with pytest.raises(ConfigError, match=r"hill\.png would replace the heights of hill\.txt"):
        costs.save(tmp_path / "hill.yaml", "png")
    np.testing.assert_allclose(HeightMap.load(tmp_path / "hill").heights, terrain.heights)
    again = BinaryOccupancyMap.load(tmp_path / "plain.yaml")
    np.testing.assert_array_equal(again.occupancy_matrix(), MATRIX)


@pytest.mark.parametrize("name", ["site.csv", "site.png"])
def test_no_map_is_written_under_the_name_of_another_kind(tmp_path, name):
    with pytest.raises(ConfigError, match=r"expected a name that ends in \.yaml or \.yml"):
        BinaryOccupancyMap.from_matrix(MATRIX).save(tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_a_map_of_map_saver(tmp_path):
    """The image's first row is the top row, and a comment is no size.

    Grey 205 is unknown with the threshold 0.196.
    """
    image = b"P5\n# CREATOR: map_saver.cpp 0.050 m/pix\n3 2\n255\n" + bytes(
        [0, 205, 254, 254, 0, 205]
    )
    path = write_map(tmp_path, image)
    m = BinaryOccupancyMap.load(path)

    assert m.occupancy_matrix().tolist() == [[True, False, False], [False, True, False]]
    assert BinaryOccupancyMap.load(path, unknown=True).occupancy_matrix().tolist() == [
        [1, 1, 0],
        [0, 1, 1],
    ]
    assert (m.resolution, m.grid_location_in_world.tolist()) == (20.0, [-1.0, 2.5])
    assert m.get_occupancy([[-0.975, 2.575], [-0.975, 2.525]]).tolist() == [True, False]


@pytest.mark.parametrize(
    ("image", "name"),
    [
        (b"P2\n3 2\n255\n0 254 254\n254 0 254\n", "ascii.pgm"),
        (b"P5\n3 2\n65535\n" + struct.pack(">6H", 0, 65000, 65000, 65000, 0, 65000), "deep.pgm"),
        (png(np.array([[0, 254, 254], [254, 0, 254]], np.uint8)), "grey.png"),
        (png(np.array([[0, 65000, 65000], [65000, 0, 65000]], np.uint16)), "deep.png"),
        (
            png(
                np.array(
                    [[[0, 0, 0], [255, 255, 240], [255] * 3], [[255] * 3, [0, 9, 0], [255] * 3]],
                    np.uint8,
                )
            ),
            "c.png",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_images_of_all_kinds(tmp_path, image, name):
    m = BinaryOccupancyMap.load(write_map(tmp_path, image, name))
    assert m.occupancy_matrix().tolist() == [[True, False, False], [False, True, False]]


def test_defaults_and_other_keys_of_the_yaml(tmp_path):
    """Only image, resolution and origin are needed; origin may lack its yaw.

    Keys of other programs do no harm.
    """
    path = write_map(
        tmp_path,
        pgm([[0, 254]]),
        negate=None,
        occupied_thresh=None,
        origin=[1, 2],
        free_thresh=None,
        cost=3,
    )

    assert BinaryOccupancyMap.load(path).occupancy_matrix().tolist() == [[True, False]]

    path = write_map(tmp_path, pgm([[0, 254]]), negate=True)
    assert BinaryOccupancyMap.load(path).occupancy_matrix().tolist() == [[False, True]]

    path = write_map(tmp_path, pgm([[49, 50, 101]]), mode="raw")
    assert BinaryOccupancyMap.load(path).occupancy_matrix().tolist() == [[False, True, False]]

    path = write_map(tmp_path, pgm([[0, 120, 180, 254]]), mode="scale")
    assert BinaryOccupancyMap.load(path).occupancy_matrix().tolist() == [[True, True, False, False]]


def test_colours_and_alpha():
    assert image_to_cells([[[0, 0, 0], [255, 255, 255], [30, 60, 90]]]).tolist() == [[100, 0, 100]]
    see_through = [[[0, 0, 0, 255], [0, 0, 0, 254], [255, 255, 255, 0]]]
    assert image_to_cells(see_through, mode="scale").tolist() == [[100, -1, -1]]
    # Humble's map_server: the mean of red, green, blue and alpha; (0 + 0 + 0 + 255) / 4 is 25 %
    assert image_to_cells(see_through).tolist() == [[100, 100, -1]]
    assert image_to_cells([[[90, 90, 90, 255], [90, 90, 90, 9]]]).tolist() == [[-1, 100]]
    assert image_to_cells([[[90, 255], [90, 9]]]).tolist() == [[-1, 100]]
    assert image_to_cells([[[0, 255], [128, 255], [128, 0]]], mode="scale").tolist() == [
        [100, 62, -1]
    ]


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def transparent_png(depth: int, colour_type: int, row: bytes, *chunks: bytes) -> bytes:
    """Return a png of two pixels."""
    header = struct.pack(">IIBBBBB", 2, 1, depth, colour_type, 0, 0, 0)
    parts = [chunk(b"IHDR", header), *chunks, chunk(b"IDAT", zlib.compress(b"\0" + row))]
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts) + chunk(b"IEND", b"")


@pytest.mark.parametrize(
    "image",
    [
        transparent_png(8, 0, b"\0\xfe", chunk(b"tRNS", b"\0\xfe")),
        transparent_png(8, 0, b"\0\xfe", chunk(b"tEXt", b"tRNS\0"), chunk(b"tRNS", b"\0\xfe")),
        transparent_png(16, 0, b"\0\0\xfe\xdc", chunk(b"tRNS", b"\xfe\xdc")),
        transparent_png(4, 0, b"\x0e", chunk(b"tRNS", b"\0\x0e")),
        transparent_png(1, 0, b"\x40", chunk(b"tRNS", b"\0\x01")),
        transparent_png(8, 2, b"\0\0\0\xfd\xfe\xff", chunk(b"tRNS", b"\0\xfd\0\xfe\0\xff")),
        transparent_png(
            8, 3, b"\0\1", chunk(b"PLTE", b"\0\0\0\xfe\xfe\xfe"), chunk(b"tRNS", b"\xff\0")
        ),
        transparent_png(8, 4, b"\0\xff\xfe\xfd"),
        transparent_png(8, 6, b"\0\0\0\xff\xfe\xfe\xfe\xfd"),
    ],
)
def test_a_transparent_pixel_is_unknown_however_the_png_says_it(tmp_path, image):
    """Portable Network Graphics (Third Edition), 11.3.2.1."""
    path = write_map(tmp_path, image, "seen.png", mode="scale")
    assert load_map(path).cells.tolist() == [[100, -1]]


@pytest.mark.parametrize("white", [1, 15, 99, 100, 254, 255, 256, 1000, 4095, 65535])
@pytest.mark.parametrize("kind", ["P2", "P5"])
def test_grey_levels_of_every_maxval(tmp_path, kind, white):
    """netpbm: a level is the share of maxval."""
    levels = [0, white // 3, white // 2, white - white // 4, white]
    if kind == "P2":
        text = "\n# of a survey\n".join(map(str, levels))
        image = f"P2\n5 1\n# white is\n{white}\n{text}\n".encode()
    else:
        image = f"P5 5 1 {white}\n".encode() + struct.pack(f">5{'BH'[white > 255]}", *levels)

    path = write_map(tmp_path, image, mode="scale", occupied_thresh=0.7, free_thresh=0.1)
    shares = [1.0 - level / white for level in levels]
    assert load_map(path).cells.tolist() == [
        [100 if p > 0.7 else 0 if p < 0.1 else round((p - 0.1) / 0.6 * 100) for p in shares]
    ]


@pytest.mark.parametrize(
    ("keys", "origin", "row"),
    [
        # what YAML::Precision(3) of map_saver writes
        ("resolution: 5e-02\norigin: [-1e+03, -1.23e+03, 0]", (-1000.0, -1230.0), [100, 0]),
        ("resolution: 5e-2\norigin: [1e2, .5, 0]\nnegate: yes", (100.0, 0.5), [0, 100]),
        ("resolution: 0.05\norigin: [010, -0, 0e0]\nnegate: off", (10.0, 0.0), [100, 0]),
    ],
)
def test_numbers_as_yaml_cpp_writes_and_reads_them(tmp_path, keys, origin, row):
    (tmp_path / "a.pgm").write_bytes(pgm([[0, 254]]))
    path = tmp_path / "a.yaml"
    path.write_text(f"image: a.pgm\n{keys}\n", encoding="utf-8")
    found = load_map(path)
    assert (found.resolution, found.origin, found.cells.tolist()) == (20.0, origin, [row])


def test_every_grey_level_survives():
    """Saved levels keep their meaning with the thresholds that are saved with them."""
    cells = np.arange(-1, 101)[None]
    found = image_to_cells(cells_to_image(cells), free_thresh=0.196)
    assert (
        found.tolist()
        == np.where(cells >= 65, 100, np.where((cells >= 0) & (cells <= 25), 0, -1)).tolist()
    )


def cut_png() -> bytes:
    return png(np.zeros((50, 50), np.uint8))[:-30]


def huge_png() -> bytes:
    header = b"IHDR" + struct.pack(">IIBBBBB", 60000, 60000, 8, 0, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + struct.pack(">I", 13)
        + header
        + struct.pack(">I", zlib.crc32(header))
        + b"\0" * 40
    )


@pytest.mark.parametrize(
    ("image", "changes", "message"),
    [
        (pgm([[0]]), {"resolution": 0}, "office.yaml:9: resolution"),
        (pgm([[0]]), {"resolution": "fine"}, "resolution: 'fine', expected a number"),
        (pgm([[0]]), {"origin": [0, 0, 0.5]}, "turned by 0.5 rad"),
        (pgm([[0]]), {"origin": [0]}, "origin"),
        (pgm([[0]]), {"origin": None}, "the key origin is missing"),
        (pgm([[0]]), {"mode": "grey"}, "allowed: trinary, scale, raw"),
        (pgm([[0]]), {"free_thresh": 0.7}, "free_thresh 0.7, occupied_thresh 0.65"),
        (pgm([[0]]), {"occupied_thresh": 65}, "occupied_thresh: 65, allowed"),
        (b"P5\n3 2\n255\n12345", {}, "cut off: 5 bytes of pixels, expected 6"),
        (b"P5\n100000 100000\n255\n", {}, "it was not decoded"),
        (b"P5\n0 3\n255\n", {}, "it was not decoded"),
        (b"GIF89a", {}, "expected a pgm"),
        (b"P2\n2 1\n255\n12", {}, "1 pixels for 2 columns x 1 rows, expected 2"),
        (b"P2\n2 1\n255\n1 2 3", {}, "3 pixels for 2 columns x 1 rows, expected 2"),
        (b"P2\n2 1\n255\n1 -2", {}, "b'-' among the pixels, expected whole numbers of 0 … 255"),
        (b"P2\n2 1\n255\n1 4294967297", {}, "a pixel of 4294967297, but the header says 0 … 255"),
        (b"P5\n2 1\n100\n\0\x65", {}, "a pixel of 101, but the header says 0 … 100 (maxval)"),
        (b"", {}, "expected a pgm"),
        (cut_png(), {}, "cut off"),
        (huge_png(), {}, "it was not decoded"),
    ],
)
def test_refused_with_file_and_reason(tmp_path, image, changes, message):
    path = write_map(tmp_path, image, **changes)
    with pytest.raises(TerrainFormatError) as refused:
        BinaryOccupancyMap.load(path)
    assert message in str(refused.value)
    assert str(tmp_path / "office.") in str(refused.value)


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"- 1",
        b"image: [",
        b"\xff\xfe\xff",
        b"!!python/object/apply:os.getcwd []",
        b"a" * 200_000,
        b"{image: a.pgm, resolution: .nan, origin: [0, 0, 0]}",
    ],
)
def test_yaml_that_is_none(tmp_path, text):
    path = tmp_path / "map.yaml"
    path.write_bytes(text)
    with pytest.raises(TerrainFormatError, match=r"map\.yaml"):
        BinaryOccupancyMap.load(path)


@pytest.mark.parametrize(
    "image",
    [pgm([[0, 254], [205, 0]]), b"P2\n2 2\n255\n0 254 205 0\n", png(np.eye(9, dtype=np.uint8))],
)
def test_damaged_files_are_refused_or_read(tmp_path, image):
    """Bytes changed, cut and added: a map, or one typed error, never anything else."""
    rng = np.random.default_rng(8)
    path = write_map(tmp_path, image)
    text = path.read_bytes()

    for _ in range(150):
        for file, content in ((path, text), (tmp_path / "office.pgm", image)):
            damaged = bytearray(content)
            for place in rng.integers(0, len(content), rng.integers(0, 4)):
                damaged[place] = rng.integers(0, 256)
            file.write_bytes(damaged[: rng.integers(len(content) // 2, len(content) + 1)])
        try:
            m = BinaryOccupancyMap.load(path)
        except (TerrainFormatError, TerrainFileNotFound):
            continue
        assert m.occupancy_matrix().size > 0


def test_files_that_are_not_there(tmp_path):
    with pytest.raises(TerrainFileNotFound, match=r"nowhere\.yaml"):
        BinaryOccupancyMap.load(tmp_path / "nowhere.yaml")
    path = write_map(tmp_path, pgm([[0]]))
    (tmp_path / "office.pgm").unlink()
    with pytest.raises(TerrainFileNotFound, match=r"office\.pgm"):
        BinaryOccupancyMap.load(path)
    path.write_text('{image: "a\\0b", resolution: 1, origin: [0, 0, 0]}', encoding="utf-8")
    with pytest.raises(TerrainFormatError, match="null"):
        BinaryOccupancyMap.load(path)
    with pytest.raises(ValueError, match="expected 'pgm' or 'png'"):
        BinaryOccupancyMap().save(tmp_path / "map.yaml", "gif")


@pytest.mark.parametrize(
    ("changes", "data"),
    [
        ({"width": 0}, []),
        ({"resolution": 0}, [0, 0]),
        ({"resolution": float("nan")}, [0, 0]),
        ({"origin": (0, float("inf"), 0)}, [0, 0]),
        ({}, [0, float("nan")]),
        ({"width": 100_000, "height": 100_000}, [0, 0]),
    ],
)
def test_refused_grids(changes, data):
    info = {"width": 2, "height": 1, "resolution": 1.0, "origin": (0, 0, 0)} | changes
    with pytest.raises(ValueError, match="expected"):
        BinaryOccupancyMap.from_occupancy_grid(info, data)


@pytest.mark.parametrize(
    ("cell_size", "per_metre"), [(np.float32(0.05), 20), (np.float32(1 / 3), 3), (4.0, 0.25)]
)
def test_resolution_of_float32(cell_size, per_metre):
    info = {"width": 1, "height": 1, "resolution": cell_size, "origin": (0, 0, 0)}
    assert BinaryOccupancyMap.from_occupancy_grid(info, [0]).resolution == per_metre


@pytest.mark.ros
class TestMessage:
    """The real message type, through its serialised form."""

    def sent(self, message):
        from rclpy.serialization import deserialize_message, serialize_message

        return deserialize_message(serialize_message(message), type(message))

    def test_there_and_back(self):
        from rfly_terrain.ros.occupancy_msgs import msg_to_occupancy_map, occupancy_map_to_msg

        m = BinaryOccupancyMap.from_matrix(
            MATRIX, 20, grid_origin_in_local=(1, 1), local_origin_in_world=(-3, 7)
        )
        message = self.sent(occupancy_map_to_msg(m, "site", 1_500_000_000))
        assert (
            message.header.frame_id,
            message.header.stamp.sec,
            message.header.stamp.nanosec,
        ) == (
            "site",
            1,
            500_000_000,
        )
        assert (message.info.width, message.info.height) == (4, 3)
        assert message.info.resolution == np.float32(0.05)
        origin = message.info.origin
        assert (origin.position.x, origin.position.y, origin.position.z) == (-2, 8, 0)
        assert (
            origin.orientation.x,
            origin.orientation.y,
            origin.orientation.z,
            origin.orientation.w,
        ) == (0, 0, 0, 1)
        assert list(message.data) == [0, 0, 0, 100, 0, 100, 0, 0, 100, 0, 0, 0]
        again = msg_to_occupancy_map(message)
        assert np.array_equal(again.occupancy_matrix(), MATRIX)
        assert (again.resolution, again.grid_location_in_world.tolist()) == (20.0, [-2, 8])

    def test_thresholds_and_unknown(self):
        from nav_msgs.msg import OccupancyGrid

        from rfly_terrain.ros.occupancy_msgs import msg_to_occupancy_map

        message = OccupancyGrid()
        message.info.width = 2
        message.info.height = 2
        message.info.resolution = 1.0
        message.data = [-1, 50, 49, 100]
        assert msg_to_occupancy_map(message).occupancy_matrix().tolist() == [[0, 1], [0, 1]]
        assert msg_to_occupancy_map(message, 60, True).occupancy_matrix().tolist() == [
            [0, 1],
            [1, 0],
        ]

    @pytest.mark.parametrize(
        "change",
        [
            lambda m: setattr(m.info.origin.orientation, "z", 0.1),
            lambda m: setattr(m.info.origin.orientation, "w", 0.0),
            lambda m: (
                setattr(m.info.origin.orientation, "x", 0.01),
                setattr(m.info.origin.orientation, "w", 0.99995),
            ),
            lambda m: setattr(m.info, "width", 3),
            lambda m: setattr(m.info, "resolution", 0.0),
            lambda m: setattr(m.info.origin.position, "x", float("nan")),
        ],
    )
    def test_refused(self, change):
        from rfly_terrain.ros.occupancy_msgs import msg_to_occupancy_map, occupancy_map_to_msg

        message = occupancy_map_to_msg(BinaryOccupancyMap(2, 2, 1))
        change(message)
        with pytest.raises(ValueError, match=r"expected|unit quaternion"):
            msg_to_occupancy_map(message)


@pytest.mark.parametrize("shape", [(1, 1_000_001), (1_000_001, 1)])
def test_a_map_that_is_too_long_for_a_png_is_refused_and_the_old_one_stays(tmp_path, shape):
    """libpng writes at most 1,000,000 rows and columns."""
    BinaryOccupancyMap(2, 2, 1).save(tmp_path / "m.yaml", "png")
    long = BinaryOccupancyMap(np.zeros(shape, bool))
    with pytest.raises(ValueError, match=r"1000001 .*expected at most 1,000,000 each in a png"):
        long.save(tmp_path / "m.yaml", "png")
    assert BinaryOccupancyMap.load(tmp_path / "m.yaml").grid_size == (2, 2)
    long.save(tmp_path / "m.yaml", "pgm")
    assert BinaryOccupancyMap.load(tmp_path / "m.yaml").grid_size == shape
