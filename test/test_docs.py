# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The documents stay true: links lead somewhere, examples run, and what is named exists."""

from __future__ import annotations

import functools
import importlib.util
import pkgutil
import re
import shutil
import socket
import sys
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from node_harness import PATIENCE
from page_commands import ROOT, fenced, parse, run, shell_lines
from PIL import Image
from recorded_runs import recorded
from reference_pages import full_page

from rfly_amphibious import SensorParameters
from rfly_bringup.cli.main import main
from rfly_bringup.nodes.amphibious_set import AMPHIBIOUS_ARGUMENTS
from rfly_bringup.nodes.node_set import ARGUMENTS
from rfly_common.imports import how_to_install
from rfly_lab import run_scenario
from rfly_missions import MissionItem
from rfly_missions.mission.files import Mission, write_mission
from rfly_terrain import HeightMap
from rfly_trajectory.fleet.fleet_file import parse_fleet

AT_ROOT = [ROOT / f"{name}.md" for name in ("README", "CONTRIBUTING", "QUALITY_DECLARATION")]
PAGES = sorted([*AT_ROOT, *(ROOT / "docs").rglob("*.md")])
PARTS = {
    "learn": ("gymnasium", "pettingzoo"),
    "learn-on-a-cluster": ("gymnasium", "distributed"),
    "tile-a-country": ("rasterio",),
    "train-a-policy": ("gymnasium", "onnxruntime"),
}
"""Optional parts that the Python examples of a page need, by its name."""
LONG_PAGES = {"learn", "learn-on-a-cluster", "train-a-policy"}
"""Pages whose Python examples take more than three seconds of a core."""
ONLY_PARSED = {
    "drive": "needs a terminal, and runs until Ctrl-C",
    "up": "starts nodes and runs until Ctrl-C",
    "listen": "runs until Ctrl-C",
    "view": "runs until Ctrl-C",
    "record": "runs until Ctrl-C, and waits for datagrams",
    "replay": "needs a recording",
    "objects": "needs a running ue_bridge_node",
    "sensors listen": "waits for RflySim3D",
    "doctor": "looks at running nodes",
    "status": "looks at running nodes",
    **{
        f"mission {word}": "needs a running mission_node"
        for word in ("start", "hold", "resume", "return", "status")
    },
    "sim fault": "needs a running amphibious_sim_node",
    "sim faults": "works for an hour: test_fault_matrix.py",
    "sim fit": "a minute's log: test_sim_fit.py",
    "sim replay": "needs a recording: test_sim_replay.py",
    "terrain tile": "needs a country's data: test_make_tiles.py",
}
"""Commands of `rfly` in examples whose options are read, but which are not run."""

OPTIONAL = {".tif": "rasterio", ".mcap": "mcap_ros2"}
"""File types that need an optional library."""


@functools.cache
def texts() -> dict[Path, str]:
    """Return the pages as the site has them, with what follows from the code."""
    return {page: full_page(page) for page in PAGES}


def name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


TILES = "Alps"
"""Folder of tiles in examples."""
LONG = {"sweep", "valley", "--estimate"}
"""Words of commands that work for many seconds."""
RFLY_LINES = [
    pytest.param(
        page,
        line,
        id=" ".join(line),
        marks=[
            *([pytest.mark.exhaustive] if LONG & set(line) else []),
            *([pytest.mark.needs("rasterio")] if TILES in line else []),
        ],
    )
    for page in PAGES
    if page.parent.name
    not in (
        "tutorials",
        "reference",
    )  # test_tutorials.py runs the former, in their order
    for line in shell_lines(page, "rfly")
]


@pytest.fixture(scope="module")
def files_of_a_user(tmp_path_factory) -> Path:
    """The files that the pages assume: maps, an elevation model, a mission, parameter files."""
    folder = tmp_path_factory.mktemp("user")
    (folder / "map").mkdir()
    maps = files("rfly_terrain") / "data" / "maps"
    for ending in ("png", "txt"):
        for copy in ("MountainTerrain", "map/MyTerrain"):
            shutil.copy(str(maps / f"JacksboroFault.{ending}"), folder / f"{copy}.{ending}")
    np.save(folder / "heights.npy", np.add.outer(np.arange(20.0), np.arange(30.0)))
    origin = HeightMap.load("JacksboroFault").geo_origin
    survey = (
        MissionItem.takeoff((0, 0, -20)),
        MissionItem.waypoint((40, 30, -25), 0.0, 3.0),
        MissionItem.land((20, 0, 0)),
    )
    write_mission(folder / "survey.plan", Mission(survey, origin))
    (folder / "scene.txt").write_text("# the rate of cameras\nt.MaxFPS 30\n")
    (folder / "masts.yaml").write_text(
        "version: 1\nobjects: [{type: 151, x: 40, y: 33, size: [2, 2, 50]}]\n"
    )
    drive = "{speed: 4, turning_radius: 1.2, reverse: true}"
    mule = f"{{name: mule, kind: ground, mass: 20, radius: 0.6, drive: {drive}}}"
    (folder / "Config.json").write_text(
        fenced(ROOT / "docs" / "howto" / "rflysim3d-sensors.md", "json")[0]
    )
    (folder / "mine.yaml").write_text(f"version: 1\nclasses: [{mule}]\n")
    signals = "[{signal: lift_n, from_s: 1, to_s: 1.5, value: 50}]"
    (folder / "excite.yaml").write_text(
        f"version: 1\nvehicle: scale\nmission: {{manoeuvre: {signals}}}\nend: {{when: time, "
        f"time_s: 1.5}}\n"
    )
    latitude, longitude, _ = origin
    nodes = [
        (latitude + north, longitude + east) for north, east in ((0, 0), (0, 2e-4), (1e-4, 2e-4))
    ]
    places = "".join(
        f'<node id="{k}" lat="{lat:.7f}" lon="{lon:.7f}"/>' for k, (lat, lon) in enumerate(nodes)
    )
    way = "".join(f'<nd ref="{k}"/>' for k in (0, 1, 2, 0)) + '<tag k="building" v="yes"/>'
    (folder / "city.osm").write_text(f'<osm version="0.6">{places}<way id="1">{way}</way></osm>')
    if importlib.util.find_spec("rasterio"):
        from rfly_terrain.exports.geotiff import write_geotiff
        from rfly_terrain.tiles.make_tiles import TileOptions, make_tiles

        terrain = HeightMap.load("JacksboroFault")
        write_geotiff(terrain, folder / "dem.tif")
        write_geotiff(terrain, folder / "orthophoto.tif")
        keys = ("origin_x", "origin_y", "step_x", "step_y")
        place = {key: getattr(terrain, key) for key in keys}
        write_geotiff(
            HeightMap(terrain.heights, **place, geo_origin=(47.0, 8.0, 0.0)), folder / "alps.tif"
        )
        make_tiles([folder / "alps.tif"], folder / TILES, TileOptions(), jobs=1)
    return folder


def test_no_row_of_a_table_is_wider_than_300_columns():
    """Wider rows hold sentences, which belong below the table."""
    wide = [
        f"{page.relative_to(ROOT)}:{number}: {len(line)} columns"
        for page, text in texts().items()
        for number, line in enumerate(text.splitlines(), 1)
        if line.startswith("|") and len(line) > 300
    ]
    assert wide == []


@pytest.fixture
def user_folder(files_of_a_user, tmp_path, monkeypatch) -> Path:
    shutil.copytree(files_of_a_user, tmp_path / "work")
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "work"


def test_there_is_something_to_check():
    assert len(RFLY_LINES) > 8
    assert sum(len(fenced(page, "python")) for page in PAGES) > 4


@pytest.mark.parametrize(
    ("words", "page"),
    [
        ("frame of the lidar", "docs/howto/lidar-and-cameras.md"),
        ("rate of outTerrainPoint", "docs/howto/rviz.md"),
        ("packet layouts", "docs/extending/add-a-packet.md"),
        ("remove it again", "docs/start.md"),
    ],
)
def test_the_search_of_the_site_finds(words, page):
    """A heading comes first in the results, and the words are rare in others."""
    headings = {
        name(each): re.findall(r"^#+ (.*)$", text, re.MULTILINE) for each, text in texts().items()
    }
    found = [
        each for each, lines in headings.items() for line in lines if words.lower() in line.lower()
    ]
    assert found == [page]


def test_the_film_of_the_readme_is_short_and_small():
    """It runs once through a trip of 128.68 s, 14 times as fast, at ten frames a second."""
    film = ROOT / "docs" / "pictures" / "valley.webp"
    assert f"]({film.relative_to(ROOT)})" in texts()[ROOT / "README.md"]
    assert film.stat().st_size < 2_000_000
    with Image.open(film) as pictures:
        assert (pictures.n_frames, pictures.size) == (1 + int(10 * 128.68 / 14), (640, 360))


def test_the_readme_is_read_in_one_go():
    assert texts()[ROOT / "README.md"].count("\n") <= 110


def test_links_lead_to_files():
    link = re.compile(r"\]\(([^)#]+)(?:#[^)]*)?\)")
    lost = {
        (name(page), target)
        for page, text in texts().items()
        for target in link.findall(text)
        if "://" not in target and not (page.parent / target).exists()
    }
    assert not lost


@pytest.mark.parametrize(
    "page",
    # the tutorials' code is that of the examples, which test_tutorials.py runs
    [
        pytest.param(
            page,
            id=name(page),
            marks=[
                *(pytest.mark.needs(part) for part in PARTS.get(page.stem, ())),
                *([pytest.mark.exhaustive] if page.stem in LONG_PAGES else []),
            ],
        )
        for page in PAGES
        if fenced(page, "python") and page.parent.name != "tutorials"
    ],
)
def test_python_examples_run(page, user_folder, rflysim_ports):
    """The examples of one page run one after the other, as a reader would type them."""
    names: dict[str, Any] = {}
    for block in fenced(page, "python"):
        exec(compile(block, name(page), "exec"), names)


def python_sources() -> list[tuple[str, str]]:
    """The Python code that users read: blocks of the pages, and the examples."""
    blocks = [(name(page), block) for page in PAGES for block in fenced(page, "python")]
    return blocks + [
        (name(path), path.read_text(encoding="utf-8"))
        for path in sorted((ROOT / "examples").rglob("*.py"))
    ]


def test_examples_import_from_the_packages_only():
    """Users write the packages' public names, and no room or module within them."""
    deep = {
        (where, module)
        for where, source in python_sources()
        for module in re.findall(
            r"^\s*(?:from|import) (rfly_(?!suite\b)\w+\.[\w.]+)", source, re.MULTILINE
        )
    }
    assert not deep


def test_named_python_objects_exist():
    """Names like `rfly_package.module.name` in the text exist.

    Any part after the package may be a module or an attribute.
    """
    named = {
        (name(page), words)
        for page, text in texts().items()
        if page.name != "moved-imports.md"  # see test_the_list_of_moved_imports_is_true
        for words in re.findall(r"`(rfly_\w+(?:\.\w+)+)", text)
        if ".ros." not in words or importlib.util.find_spec("rclpy")
    }
    assert len(named) > 10
    assert not {(page, words) for page, words in named if not is_importable(words)}


def is_importable(words: str) -> bool:
    try:
        pkgutil.resolve_name(words)
    except (ImportError, AttributeError):
        return False
    return True


def test_what_to_open_is_there():
    """Each file of CONTRIBUTING's table exists and has one of the words to look for."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    table = re.search(r"^## To change X, open Y\n(.*?)^## ", text, re.DOTALL | re.MULTILINE)[1]
    rows = [row.split("|")[2:4] for row in re.findall(r"^\|.*`.*\|$", table, re.MULTILINE)]
    assert len(rows) > 20
    for files_to_open, words in rows:
        for file in re.findall(r"`((?:docs|rfly_\w+|rviz)/[^`]+)`", files_to_open):
            content = (ROOT / file).read_text(encoding="utf-8")
            assert any(word in content for word in re.findall(r"`([^`]+)`", words)), file


def test_every_page_is_in_a_menu_of_the_site():
    """The site of `make docs` leaves out no page.

    The build itself refuses broken links and undocumented names.
    """
    packages = {
        path.parent.name
        for path in ROOT.glob("rfly_*/__init__.pyi")
        if "import" in path.read_text("utf-8")
    }
    assert {path.stem for path in (ROOT / "docs" / "api").glob("*.md")} == packages
    menus = set((ROOT / "docs" / "index.md").read_text(encoding="utf-8").splitlines())
    pages = [
        path.relative_to(ROOT / "docs").with_suffix("") for path in (ROOT / "docs").rglob("*.md")
    ]
    lost = {str(page) for page in pages if not menus & {str(page), f"{page.parent}/*"}}
    assert lost == {"index"}


@pytest.mark.parametrize(("page", "line"), RFLY_LINES)
def test_rfly_commands_run(page, line, user_folder, monkeypatch, capsys):
    command = line[1]
    if {command, " ".join(line[1:3])} & ONLY_PARSED.keys() or "--row" in line:
        parse(line)  # a row needs the table of the sweep before: test_sim.py
        return

    others = [parameter.values[1] for parameter in RFLY_LINES]
    if any(other[: len(line)] == line and len(other) > len(line) for other in others):
        parse(line)  # a longer line does the same and more
        return

    if command == "send":
        check_sent(line, "t.MaxFPS 30" if "--file" in line else line[-1], monkeypatch)
        return

    monkeypatch.setattr(
        "rfly_lab.runs.run.run_scenario",
        lambda scenario, progress: recorded(run_scenario, scenario),
    )
    code, err = run(line, monkeypatch, capsys)
    for needs, module in OPTIONAL.items():
        if any(word.endswith(needs) for word in line) and not importlib.util.find_spec(module):
            assert (code, how_to_install("plot")[:30] in err) == (2, True), f"{name(page)}: {err}"
            return

    expected = (0, 1) if line[1:3] == ["mission", "preflight"] else (0,)  # 1: it has found problems
    # where kernels are not compiled, and where the machine is slow
    progress = r"(?m)^rfly: (compiling kernels, once .*|.*: \d+%.*)\n"
    assert re.sub(progress, "", err) == "", f"{name(page)}: {err}"
    assert code in expected, name(page)

    if "--out" in line:
        out = Path(line[line.index("--out") + 1])
        made = [out] if out.suffix else [out.with_suffix(".png"), out.with_suffix(".txt")]
        assert all(path.stat().st_size > 0 for path in made)


def check_sent(line: list[str], expected: str, monkeypatch: Any) -> None:
    """Send the example to a socket of this test instead of the machine that the page names."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as window:
        window.bind(("127.0.0.1", 0))
        window.settimeout(PATIENCE)
        here = [
            "--host",
            "127.0.0.1",
            "--port",
            str(window.getsockname()[1]),
            "--window",
            "0",
        ]
        monkeypatch.setattr(sys, "argv", [*line, *here])

        with pytest.raises(SystemExit) as end:
            main()
        assert not end.value.code
        assert expected.encode() in window.recv(1000)


def test_launch_arguments_exist():
    known = {argument.name for argument in (*ARGUMENTS, *AMPHIBIOUS_ARGUMENTS)}
    wrong = {
        (name(page), " ".join(line))
        for page in PAGES
        for line in shell_lines(page, "ros2 launch")
        if not (ROOT / "launch" / line[3]).is_file()
        or not {word.partition(":=")[0] for word in line[4:]} <= known
    }
    assert not wrong


def test_interfaces_and_make_targets_exist():
    missing = {
        (name(page), interface)
        for page, text in texts().items()
        for kind, interface in re.findall(r"rfly_suite/(msg|srv|action)/(\w+)", text)
        if not (ROOT / kind / f"{interface}.{kind}").is_file()
    }
    assert not missing

    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    unknown = {
        (name(page), " ".join(line))
        for page in PAGES
        for line in shell_lines(page, "make")
        if next(word for word in line[1:] if "=" not in word) not in targets
    }
    assert not unknown


def test_the_fleet_file_of_the_page_is_one():
    page = ROOT / "docs" / "howto" / "add-a-vehicle.md"
    fleet = parse_fleet(fenced(page, "yaml")[0].encode(), name(page))
    expected = [
        ("truck_1", 101),
        ("truck_2", 102),
        ("truck_3", 103),
        ("walker", 110),
        ("drone", 120),
    ]
    assert [(vehicle.name, vehicle.id) for vehicle in fleet.vehicles] == expected


def test_the_lidar_of_the_page_is_a_vlp_32c():
    """The rings are those of Velodyne's manual.

    There are 32 from -25 to 15 degrees, a third of a degree apart from -4 to 1.667.
    """
    page = ROOT / "docs" / "howto" / "lidar-and-cameras.md"
    lidar = SensorParameters.parse(fenced(page, "yaml")[0].encode(), name(page)).lidar
    rings = np.degrees(lidar.elevations)
    assert (lidar.beams, rings[0], rings[-1]) == (
        32,
        pytest.approx(-25.0),
        pytest.approx(15.0),
    )
    assert np.diff(rings[8:26]) == pytest.approx([1 / 3] * 17, abs=0.01)


@pytest.mark.ros
def test_the_bridge_takes_the_robots_of_the_page(tmp_path, domain_id):
    """The parameter file works as it stands.

    The bridge listens to both robots, with the types that the page says.
    """
    from node_harness import NodeProcess, Peer

    parameters = fenced(ROOT / "docs" / "howto" / "add-a-vehicle.md", "yaml")[1]
    assert set(yaml.safe_load(parameters)) == {"ue_bridge_node"}
    (tmp_path / "robots.yaml").write_text(parameters, encoding="utf-8")
    ports = {"port": "20910", "feedback_port": "0"}
    with NodeProcess(
        "ue_bridge_node",
        domain_id,
        ports,
        "--params-file",
        str(tmp_path / "robots.yaml"),
    ):
        peer = Peer(domain_id)
        try:
            wanted = {
                "/husky/odometry/filtered": "nav_msgs/msg/Odometry",
                "/crazyflie/pose": "geometry_msgs/msg/PoseStamped",
            }
            peer.spin_until(lambda: all(peer.node.count_subscribers(topic) for topic in wanted))
            types = dict(peer.node.get_topic_names_and_types())
            assert {topic: types[topic] for topic in wanted} == {
                topic: [kind] for topic, kind in wanted.items()
            }
        finally:
            peer.close()
