# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Orthophotos on a terrain: where they lie, how fine they are, and which are refused.

The pictures have their column in red and their row in green, so a colour tells the place that it
was taken from. Places come from PROJ and from the terrain's own latitude and longitude.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from optional_parts import late_module

from rfly_common.errors import ConfigError, TerrainFileNotFound, TerrainFormatError
from rfly_terrain.height_map.height_map import HeightMap
from rfly_terrain.height_map.places import place_of, position_of
from rfly_terrain.imagery.imagery import Imagery, over

pytestmark = pytest.mark.needs("rasterio", "pyproj")

rasterio = late_module("rasterio")
pyproj = late_module("pyproj")

COLUMNS = 200
ROWS = 150


def flat(half=1000.0, place=(47.0, 8.0, 400.0)):
    """Return level ground, `half` metres to each side of a place."""
    return HeightMap(
        np.zeros((2, 2)),
        origin_x=-half,
        origin_y=-half,
        step_x=2 * half,
        step_y=2 * half,
        geo_origin=place,
        name="flat",
    )


def by_place(rows=ROWS, columns=COLUMNS, dtype=np.uint8, shrink=1):
    """Return a picture with its column in red and its row in green, divided by `shrink`."""
    picture = np.zeros((3, rows, columns), dtype)
    picture[0] = np.arange(columns) // shrink
    picture[1] = (np.arange(rows) // shrink)[:, None]
    picture[2] = 77
    return picture


def write(path, bands, transform=None, crs=None, driver="GTiff", colormap=None, **options):
    """Write a picture, and return its path."""
    count, height, width = bands.shape
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rasterio.errors.NotGeoreferencedWarning)
        with rasterio.open(
            path,
            "w",
            driver=driver,
            width=width,
            height=height,
            count=count,
            dtype=bands.dtype,
            crs=crs,
            transform=None if transform is None else affine_of(transform),
            **options,
        ) as dataset:
            dataset.write(bands)
            if colormap is not None:
                dataset.write_colormap(1, colormap)
    return path


def found_places(imagery, x, y):
    """Return the columns and rows that points show, 0 at the outer corner of the first pixel."""
    colours = imagery.colours(x, y).astype(float)
    assert (colours[:, 3] == 255).all()
    return colours[:, 0] + 0.5, colours[:, 1] + 0.5


def turned(x, y, turn, width, height):
    """Return the affine transform, (3, 3), of a picture about a place, its pixels this large."""
    c, s = np.cos(np.radians(turn)), np.sin(np.radians(turn))
    rotation = np.array([[c, -s], [s, c]]) @ np.diag([width, -height])
    transform = np.eye(3)
    transform[:2, :2] = rotation
    transform[:2, 2] = np.array([x, y]) - rotation @ (COLUMNS / 2, ROWS / 2)
    return transform


def moved(transform, x, y):
    """Return points by an affine transform, (3, 3)."""
    return np.tensordot(transform[:2, :2], np.array([x, y]), 1) + transform[:2, 2].reshape(
        2, *[1] * np.ndim(x)
    )


def affine_of(transform):
    """Return a transform as rasterio has it."""
    return rasterio.Affine(*transform[:2].ravel())


def from_corner(x, y, size):
    """Return the transform of pixels of a size, whose upper left corner is there."""
    return np.array([[size, 0.0, x], [0.0, -size, y], [0.0, 0.0, 1.0]])


def check_places(imagery, transform, crs, terrain, middle_x=None):
    """Compare points of the ground with the pixels that PROJ finds for their place on the Earth."""
    rng = np.random.default_rng(3)
    x, y = rng.uniform(-120.0, 120.0, (2, 400))
    latitude, longitude = place_of(x, y, terrain.geo_origin)
    own = pyproj.Transformer.from_crs("EPSG:4326", crs, always_xy=True)
    own_x, own_y = own.transform(longitude, latitude)
    if middle_x is not None:
        own_x = own_x + 360.0 * np.round((middle_x - own_x) / 360.0)
    columns, rows = moved(np.linalg.inv(transform), own_x, own_y)

    found_columns, found_rows = found_places(imagery, x, y)
    assert np.abs(found_columns - columns).max() < 1.05
    assert np.abs(found_rows - rows).max() < 1.05
    assert abs(np.mean(found_columns - columns)) < 0.06
    assert abs(np.mean(found_rows - rows)) < 0.06


@pytest.mark.parametrize(
    ("place", "crs", "turn"),
    [
        ((47.0, 8.0), "EPSG:32632", 0.0),
        ((46.9, 11.9), "EPSG:32632", 31.0),
        ((-33.9, 18.4), "EPSG:32734", -100.0),
        ((-33.9, 18.4), "EPSG:3857", 0.0),
        ((47.0, 8.0), "EPSG:2056", 180.0),
    ],
)
def test_a_picture_lies_where_its_coordinate_system_says(tmp_path, place, crs, turn):
    """Its north is not the terrain's: UTM turns it by 2° at the zone's edge, the transform more."""
    terrain = flat(place=(*place, 12.0))
    x, y = pyproj.Transformer.from_crs("EPSG:4326", crs, always_xy=True).transform(*place[::-1])
    transform = turned(x, y, turn, 3.0, 3.0)
    picture = write(tmp_path / "photo.tif", by_place(), transform, crs)
    check_places(Imagery.open(picture, terrain), transform, crs, terrain)


@pytest.mark.parametrize("west", [179.998, -180.002])
def test_degrees_go_on_beyond_180(tmp_path, west):
    """A picture over the 180° meridian, in either way to count."""
    terrain = flat(place=(-17.0, 180.0, 0.0))
    transform = from_corner(west, -17.0 + 0.0015, 2e-5)
    picture = write(tmp_path / "photo.tif", by_place(), transform, "EPSG:4326")
    check_places(Imagery.open(picture, terrain), transform, "EPSG:4326", terrain, west + 0.002)


@pytest.mark.parametrize(
    ("driver", "geodetic", "place"),
    [
        ("PNG", False, (47.0, 8.0, 0.0)),
        ("PNG", True, (-33.9, -71.2, 0.0)),
        ("GTiff", True, (47.0, 8.0, 0.0)),
    ],
)
def test_three_points_place_any_picture(tmp_path, driver, geodetic, place):
    """Turned by 37°, and by points that are no corners."""
    terrain = flat(place=place)
    to_map = turned(40.0, -25.0, 37.0, 2.5, 2.0)
    pixels = np.array([(13.0, 140.5), (190.0, 22.0), (55.5, 9.0)])
    x, y = moved(to_map, *pixels.T)
    named = np.column_stack(place_of(x, y, place) if geodetic else (x, y))
    heading = "column, row, lat, lon" if geodetic else "column,row,x,y"
    lines = [",".join(f"{number:.9f}" for number in row) for row in np.hstack([pixels, named])]
    (tmp_path / "photo.csv").write_text("\n".join([heading, *lines]) + "\n")
    picture = write(tmp_path / "photo.png", by_place(), driver=driver)

    imagery = Imagery.open(picture, terrain)
    assert imagery.pixel == pytest.approx(5.0**0.5, rel=1e-4)
    x, y = np.random.default_rng(5).uniform((-60.0, -120.0), (140.0, 70.0), (300, 2)).T
    columns, rows = moved(np.linalg.inv(to_map), x, y)
    found_columns, found_rows = found_places(imagery, x, y)
    assert np.abs(found_columns - columns).max() < 1.5
    assert np.abs(found_rows - rows).max() < 1.5
    assert abs(np.mean(found_columns - columns)) < 0.06
    assert abs(np.mean(found_rows - rows)) < 0.06


def test_pixels_reach_to_their_outer_edges(tmp_path):
    """2 x 2 pixels of 10 m: each colour to the edge, mixed between the middles, nothing beyond."""
    terrain = flat()
    (tmp_path / "photo.CSV").write_text("column,row,x,y\n0,0,-10,10\n2,0,10,10\n0,2,-10,-10\n")
    quarters = np.array(
        [[[0, 200], [0, 200]], [[0, 0], [100, 100]], [[50, 50], [50, 50]]], np.uint8
    )
    imagery = Imagery.open(write(tmp_path / "photo.png", quarters, driver="PNG"), terrain)
    texture = imagery.texture((-15.0, 15.0, -15.0, 15.0), 30, 30)
    shown = np.zeros((30, 30), bool)
    shown[5:25, 5:25] = True
    assert np.array_equal(texture[..., 3], np.where(shown, 255, 0))
    # pixel middles at ±5 m; texture pixels have theirs at half metres
    along = np.clip((np.arange(20) + 0.5 - 5.0) / 10.0, 0.0, 1.0)
    assert np.abs(texture[5:25, 5:25, 0] - 200 * along).max() <= 4
    assert np.abs(texture[5:25, 5:25, 1] - 100 * along[:, None]).max() <= 2
    assert (texture[5:25, 5:25, 2] == 50).all()


@pytest.mark.parametrize("is_cloud_optimised", [False, True])
def test_coarse_textures_are_not_shifted(tmp_path, is_cloud_optimised):
    """Odd numbers of pixels, by overviews: the mean place is right to a small part of a pixel.

    Pixels of 16 bits, with places times ten, because averages are rounded up.
    """
    terrain = flat(half=3000.0)
    crs = "EPSG:32632"
    x, y = pyproj.Transformer.from_crs("EPSG:4326", crs, always_xy=True).transform(8.0, 47.0)
    transform = from_corner(x - 1001.0, y + 777.0, 2.0)
    options = {"driver": "COG", "blocksize": 128} if is_cloud_optimised else {}
    picture = write(
        tmp_path / "photo.tif", 10 * by_place(777, 1001, np.uint16), transform, crs, **options
    )
    imagery = Imagery.open(picture, terrain)
    low, high = np.array(imagery._picture._range) / 10.0
    for width in (380, 190, 19):
        size = 1900.0 / width
        texture = imagery.texture((-950.0, 950.0, -700.0, 700.0), width, width * 14 // 19)
        east = -950.0 + size * (np.arange(width) + 0.5)
        north = 700.0 - 1400.0 / len(texture) * (np.arange(len(texture)) + 0.5)
        own_x, own_y = pyproj.Transformer.from_crs(
            "+proj=tmerc +lat_0=47 +lon_0=8 +datum=WGS84", crs, always_xy=True
        ).transform(*np.meshgrid(east, north))
        columns, rows = moved(np.linalg.inv(transform), own_x, own_y)
        # colours are rounded to some four pixels; what is below black and above white is left out
        found = low + texture[..., :2] / 255.0 * (high - low) + 0.5
        known = (texture[..., :2] > 0) & (texture[..., :2] < 255)
        shift_x = np.mean((found[..., 0] - columns)[known[..., 0]])
        shift_y = np.mean((found[..., 1] - rows)[known[..., 1]])
        assert max(abs(shift_x), abs(shift_y)) < 0.05 * max(size, 5.0), width


def test_a_part_reads_a_part(tmp_path, monkeypatch):
    """No more pixels are read than the texture has, some times, whether near or from far away."""
    terrain = flat()
    crs = "EPSG:32632"
    x, y = pyproj.Transformer.from_crs("EPSG:4326", crs, always_xy=True).transform(8.0, 47.0)
    transform = from_corner(x - 1000.0, y + 1000.0, 1.0)
    picture = write(
        tmp_path / "photo.tif",
        by_place(2000, 2000, shrink=8),
        transform,
        crs,
        driver="COG",
        blocksize=128,
    )
    imagery = Imagery.open(picture, terrain)
    sizes = []
    read = imagery._picture.read
    monkeypatch.setattr(
        imagery._picture,
        "read",
        lambda rows, columns, shape: sizes.append(shape) or read(rows, columns, shape),
    )
    imagery.texture(terrain.bounds, 100, 100)
    imagery.texture((0.0, 50.0, 0.0, 50.0), 100, 100)

    assert max(max(shape) for shape in sizes) < 110


TABLE = {0: (10, 20, 30, 255), 1: (200, 100, 50, 255), 2: (0, 0, 0, 0)}


@pytest.mark.parametrize(
    ("bands", "options", "expected"),
    [
        # grey
        (np.full((1, 8, 8), 90, np.uint8), {}, (90, 90, 90, 255)),
        # grey and opacity
        (np.array([[[90]], [[0]]], np.uint8).repeat(8, 1).repeat(8, 2), {"alpha": "yes"}, None),
        # palette, the second colour and one without opacity
        (np.ones((1, 8, 8), np.uint8), {"colormap": TABLE}, (200, 100, 50, 255)),
        (np.full((1, 8, 8), 2, np.uint8), {"colormap": TABLE, "driver": "PNG"}, None),
        # opacity of a fourth band
        (np.array([[[9]], [[8]], [[7]], [[128]]], np.uint8).repeat(8, 1).repeat(8, 2),
         {"photometric": "RGB", "alpha": "yes"}, (9, 8, 7, 128)),
        # nodata
        (np.full((3, 8, 8), 255, np.uint8), {"nodata": 255, "photometric": "RGB"}, None),
        # red, green, blue and near infrared
        (np.array([[[9]], [[8]], [[7]], [[99]]], np.uint8).repeat(8, 1).repeat(8, 2),
         {"photometric": "RGB", "alpha": "no"}, (9, 8, 7, 255)),
    ],
    ids=["grey", "grey+opacity", "palette", "palette+opacity", "rgba", "nodata", "infrared"],
)  # fmt: skip
def test_kinds_of_pixels(tmp_path, bands, options, expected):
    """A point in the middle has the colour, or none."""
    (tmp_path / "photo.csv").write_text("column,row,x,y\n0,0,-40,40\n8,0,40,40\n0,8,-40,-40\n")
    picture = write(tmp_path / "photo.tif", bands, **options)
    colour = Imagery.open(picture, flat()).colours(3.0, 4.0)
    if expected is None:
        assert colour[3] == 0
    else:
        assert tuple(colour) == expected


@pytest.mark.parametrize("kind", [np.uint16, np.int16, np.float32])
def test_other_numbers_are_spread_over_black_to_white(tmp_path, kind):
    """One value in a hundred of 0 … 9999 is black, one white, and the middle grey."""
    numbers = np.arange(10_000, dtype=kind).reshape(1, 100, 100)
    if kind is np.float32:
        numbers[0, 0, 0] = np.nan
    (tmp_path / "photo.csv").write_text("column,row,x,y\n0,0,0,0\n100,0,100,0\n0,100,0,-100\n")
    imagery = Imagery.open(write(tmp_path / "photo.tif", numbers), flat())
    greys = imagery.texture((0.0, 100.0, -100.0, 0.0), 100, 100)
    assert greys[0, 50, 0] == 0
    assert greys[-1, 50, 0] == 255
    # row 25 has 2,500 … 2,599, of 100 … 9,900
    assert greys[25, 50, 0] == pytest.approx(255 * (2550 - 100) / 9800, abs=1.0)
    assert (greys[0, 0, 3] == 0) == (kind is np.float32)


def test_opacity_mixes_a_picture_with_the_ground():
    texture = np.array([[[200, 100, 0, 255], [200, 100, 0, 51], [1, 2, 3, 0]]], np.uint8)
    ground = np.full((1, 3, 3), 50, np.uint8)
    assert over(texture, ground).tolist() == [[[200, 100, 0], [80, 60, 40], [50, 50, 50]]]


CORNERS = "column,row,x,y\n0,0,-40,40\n8,0,40,40\n"


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        (None, "name three points of it in photo.csv"),
        ("column,row,x,y\n0,0,0,0\n", "three lines"),
        (CORNERS + "0,8,-40,forty\n", "three lines"),
        (CORNERS + "0,8,-40,nan\n", "three lines"),
        (CORNERS + "0,8,-40,40\n4,4,0,0\n", "three lines"),
        ("column,row,east,north\n0,0,0,0\n8,0,1,0\n0,8,0,1\n", "three lines"),
        ("column,row,lat,lon\n0,0,147,8\n8,0,47,8\n0,8,48,8\n", "three lines"),
        (CORNERS + "4,0,0,40\n", "three lines"),
        (CORNERS + "4,0.001,0,40\n", "on a line"),
        (CORNERS + "0,8,-40,120\n", "mirrored"),
        ("column,row,x,y\n0,0,4000,40\n8,0,4080,40\n0,8,4000,-40\n", "shows no ground"),
    ],
)
def test_tables_that_place_nothing_are_refused(tmp_path, table, reason):
    picture = write(tmp_path / "photo.png", np.zeros((3, 8, 8), np.uint8), driver="PNG")
    if table is not None:
        (tmp_path / "photo.csv").write_text(table)
    with pytest.raises((TerrainFormatError, ConfigError), match=reason):
        Imagery.open(picture, flat())


def test_pictures_that_cannot_be_placed_or_read_are_refused(tmp_path, monkeypatch):
    from rfly_terrain.imagery import picture_file

    transform = from_corner(8.0, 47.0, 1e-4)
    black = np.zeros((3, 8, 8), np.uint8)
    with pytest.raises(TerrainFileNotFound):
        Imagery.open(tmp_path / "none.tif", flat())
    picture = write(tmp_path / "photo.tif", black, transform)
    with pytest.raises(TerrainFormatError, match="names no coordinate reference system"):
        Imagery.open(picture, flat())
    picture = write(tmp_path / "photo.tif", black, transform, "EPSG:4326")
    with pytest.raises(ConfigError, match="names no latitude and longitude"):
        Imagery.open(picture, flat(place=None))
    Imagery.open(picture, flat())
    with pytest.raises(ConfigError, match="shows no ground"):
        Imagery.open(picture, flat(place=(8.0, 47.0, 0.0)))
    five = write(tmp_path / "five.tif", np.zeros((5, 8, 8), np.uint8), transform, "EPSG:4326")
    with pytest.raises(TerrainFormatError, match="gdal_translate -b 3"):
        Imagery.open(five, flat())
    monkeypatch.setattr(picture_file, "MAX_PIXELS_IN_MEMORY", 63)
    with pytest.raises(TerrainFormatError, match="gdal_translate -of COG"):
        Imagery.open(picture, flat())
    (tmp_path / "photo.tif").write_bytes(picture.read_bytes()[:150])
    with pytest.raises(TerrainFormatError):
        Imagery.open(picture, flat())


def test_a_size_gets_the_mean_of_the_ground(tmp_path):
    """A board of black and white squares of 1 m is grey where a point stands for 64 m."""
    board = (255 * (np.indices((512, 512)).sum(0) % 2)).astype(np.uint8)[None]
    (tmp_path / "photo.csv").write_text(
        "column,row,x,y\n0,0,-256,256\n512,0,256,256\n0,512,-256,-256\n"
    )
    imagery = Imagery.open(write(tmp_path / "photo.png", board, driver="PNG"), flat())
    x, y = np.random.default_rng(2).integers(-100, 100, (2, 50)) + 0.5
    near = imagery.colours(x, y, 1.0)[:, 0]
    assert set(near.tolist()) == {0, 255}
    assert np.array_equal(near == 255, (np.floor(x) - np.floor(y) + 511) % 2 == 1)
    assert np.abs(imagery.colours(x, y, 64.0)[:, 0] - 127.5).max() < 2


def test_position_of_is_the_way_back():
    """The table's latitudes are the terrain's own: what this file's places rest on."""
    x, y = position_of(*place_of(300.0, -70.0, (-33.9, 18.4, 0.0)), (-33.9, 18.4, 0.0))
    assert (x, y) == pytest.approx((300.0, -70.0), abs=1e-6)
