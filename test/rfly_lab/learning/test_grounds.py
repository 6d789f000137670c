# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Worlds and random grounds of the environments, against the collision engine."""

from __future__ import annotations

import dataclasses
import functools
import math
from pathlib import Path

import numba
import numpy as np
import pytest
from marks import exhaustively

from rfly_amphibious import VehicleParameters
from rfly_amphibious.vehicle import state_layout
from rfly_collision import Bodies, Box, ConvexHull, Scene
from rfly_common.errors import ConfigError
from rfly_lab.learning.clear_places import CLEARANCE
from rfly_lab.learning.grounds import DENSITY, hills, random_terrain
from rfly_lab.learning.land_air_batch import LandAirBatch
from rfly_lab.learning.tasks import TASKS, Ending
from rfly_terrain import HeightMap, Solids, World, WorldObject, load_world
from rfly_terrain.world.ground_friction import GroundFriction
from rfly_terrain.world.models import Model, box_part, cylinder_part

pytestmark = pytest.mark.exhaustive  # whole flights of many vehicles

SCALE = VehicleParameters.load("scale")
IN_WORLDS = [task for task in TASKS if task != "roof"]
TRIED = {("hover", "random"), ("path", "pillars"), ("hop", "pillars")}
"""Tasks and worlds of places that `make test` looks at."""
UPRIGHT = (0.0, 0.0, 0.0, 1.0)


def begun(task: str, count: int = 1, seed: int = 0, **options) -> LandAirBatch:
    batch = LandAirBatch(count, task, **options)
    which = np.arange(count)
    batch.seed(which, np.arange(seed, seed + count, dtype=np.uint64))
    batch.begin(which)
    return batch


def touched(batch: LandAirBatch, shape: ConvexHull | Box, position, orientation=None) -> np.ndarray:
    """Return which of n bodies touch an object of a batch's world, by the collision engine."""
    parts = parts_of(batch.solids)
    scene, shapes = scene_with(batch.solids, shape)
    count = len(position)
    bodies = Bodies(
        shapes,
        np.concatenate([np.zeros(count, int), 1 + np.arange(len(parts))]),
        np.concatenate([position, np.zeros((len(parts), 3))]),
        np.concatenate(
            [
                np.tile(UPRIGHT, (count, 1)) if orientation is None else orientation,
                np.tile(UPRIGHT, (len(parts), 1)),
            ]
        ),
        static=np.arange(count + len(parts)) >= count,
        group=np.where(np.arange(count + len(parts)) < count, 7, -1),
    )
    hits = scene.contacts(bodies)
    result = np.zeros(count, bool)
    result[hits.a[hits.a < count]] = True
    return result


@functools.lru_cache(maxsize=4)
def scene_with(solids: Solids, shape: ConvexHull | Box) -> tuple[Scene, tuple]:
    """Return a scene, which keeps its table of shapes, and the shapes: a body's, then all parts."""
    return Scene(), (shape, *parts_of(solids))


@functools.lru_cache(maxsize=4)
def parts_of(solids: Solids) -> list[ConvexHull]:
    return [ConvexHull.of_corners(part) for part in np.split(solids.vertices, solids.first[1:-1])]


@functools.lru_cache(maxsize=4)
def column(radius: float) -> ConvexHull:
    """Return a column around the vertical through a place, from far below to far above."""
    return ConvexHull.of_corners(cylinder_part(radius, 400.0) - (0.0, 0.0, 200.0))


def walls_around(side: float) -> World:
    """Return four walls, 60 m thick, around a square."""
    places = ((0.5 * side + 30.0) * turn for turn in np.array(((1, 0), (-1, 0), (0, 1), (0, -1))))
    return World(
        "yard",
        tuple(
            WorldObject(Model("wall", (box_part(60.0, side + 120.0, 3.0),)), x, y, yaw)
            for (x, y), yaw in zip(places, (0.0, 0.0, 0.5 * math.pi, 0.5 * math.pi), strict=True)
        ),
    )


def one_box(x: float, y: float, size=(4.0, 4.0, 6.0), **options) -> World:
    model = Model("box", (box_part(*size),))
    return World("one", (WorldObject(model, x, y),), **options)


# where episodes begin and lead


@pytest.mark.parametrize(
    ("task", "world"),
    [
        (task, world) if (task, world) in TRIED else exhaustively(task, world)
        for task in IN_WORLDS
        for world in ("random", "pillars")
    ],
)
def test_starts_and_targets_are_clear_of_all_objects(task: str, world: str) -> None:
    batch = begun(task, 100, world=world)
    reach = batch.params.reach
    targets = batch.episodes.targets
    places = np.concatenate([batch.vehicles.x[:, :3], targets.reshape(-1, 3)])
    assert not touched(batch, column(reach + 0.98 * CLEARANCE), places).any()

    # they are drawn among the objects: many have one not far away
    starts = batch.vehicles.x[:, :3]
    if world == "random":
        assert touched(batch, column(10.0), starts).mean() > 0.5
    assert len(np.unique(starts[:, 0].round(3))) > 30


def test_the_whole_path_keeps_the_vehicles_reach() -> None:
    batch = begun("path", 60, world="random", density=60.0, terrain=level(300.0))
    points = np.concatenate([batch.vehicles.x[:, None, :3], batch.episodes.targets], axis=1)
    for share in np.linspace(0.0, 1.0, 7):
        between = (points[:, :-1] + share * np.diff(points, axis=1)).reshape(-1, 3)
        assert not touched(batch, column(0.98 * batch.params.reach), between).any()


def test_without_the_draws_that_were_clear_it_begins_as_on_bare_ground() -> None:
    """The first course that is drawn is that without objects; most are taken as they are."""
    for task in ("hover", "waypoints"):
        bare = begun(task, 100)
        among = begun(task, 100, world="random", density=5.0)
        # the random world covers the whole map, so the places are those of the bare map
        assert among.places == bare.places
        same = (bare.vehicles.x[:, :2] == among.vehicles.x[:, :2]).all(axis=1)
        assert 0.5 < same.mean() < 1.0
        assert (bare.vehicles.mean_wind == among.vehicles.mean_wind).all()


def test_a_course_leads_out_of_a_narrow_yard() -> None:
    """Four walls, 60 m thick, leave a yard in the middle, and what lies outside of them."""
    for task in ("waypoints", "path"):
        batch = begun(task, 50, terrain=level(400.0), world=walls_around(80.0))
        places = np.concatenate(
            [batch.vehicles.x[:, :2], batch.episodes.targets[..., :2].reshape(-1, 2)]
        )
        inside = np.abs(places).max(axis=1) < 40.0
        outside = np.abs(places).max(axis=1) > 100.0
        assert (inside | outside).all()
        assert inside.any()


# contact


def test_a_vehicle_that_meets_an_object_crashes_and_one_that_does_not_flies_on() -> None:
    """Forward at 3 m/s, 2 m above the ground: those that crash touch one with their reach."""
    batch = begun("hover", 100, actions="velocity", world="random", density=80.0, terrain=level())
    batch.task = batch.task._replace(astray=1e6)
    batch.vehicles.x[:, 2] = 2.0
    batch._flight.begin_flight(np.arange(100), batch.vehicles.x, batch._flight_memory)
    ahead = np.tile((1.0, 0.0, 0.0, 0.0), (100, 1))
    over = np.zeros(100, bool)
    crashes = []
    for _ in range(300):
        batch.step(ahead)
        x = batch.vehicles.x
        crashed = ~over & (batch.endings == Ending.CRASHED)
        crashes += x[crashed, :3].tolist()
        over |= batch.endings != Ending.RUNNING
    assert len(crashes) > 12
    assert touched(batch, ball(batch.params.reach), np.array(crashes)).all()

    # who flies on is nowhere inside an object
    x = batch.vehicles.x[~over]
    inner = Box((0.5, 0.3, 0.1))
    orientation = x[:, state_layout.QUATERNION_XYZW]
    assert len(x) > 20
    assert not touched(batch, inner, x[:, :3], orientation).any()


def ball(radius: float) -> ConvexHull:
    """Return a hull around a sphere."""
    turn = np.linspace(0.0, 2.0 * math.pi, 24, endpoint=False)
    rise = np.linspace(-0.5 * math.pi, 0.5 * math.pi, 13)
    corners = [
        (math.cos(e) * math.cos(a), math.cos(e) * math.sin(a), math.sin(e))
        for e in rise
        for a in turn
    ]
    return ConvexHull.of_corners(1.02 * radius * np.unique(np.round(corners, 9), axis=0))


def level(side: float = 200.0) -> HeightMap:
    return HeightMap(
        np.zeros((21, 21)),
        origin_x=-0.5 * side,
        origin_y=-0.5 * side,
        step_x=side / 20.0,
        step_y=side / 20.0,
        name="level",
    )


def test_a_vehicle_stops_at_a_wall_as_in_the_simulation() -> None:
    """One that drives at a wall is the model's own, with the same solids, bit by bit."""
    world = one_box(0.0, 0.0, size=(1.0, 60.0, 3.0))
    batch = begun("path", 9, terrain=level(), world=world)
    model = batch.vehicles.models[0]
    state = model.standing(-4.0, 0.0, 0.0)
    batch.vehicles.put(np.array([4]), state.x[None], state.memory[None])
    actions = np.tile((0.0, 0.5, -1.0), (9, 1))
    x = state
    for _ in range(60):
        batch.step(actions)
        from rfly_amphibious import Controls

        drive = 0.5 * SCALE.max_drive_torque
        x = model.step(x, Controls(drive_torque=drive), steps=20, method="semi_implicit_euler")
        assert x.x.tobytes() == batch.vehicles.x[4].tobytes()
    assert -2.5 < x.position[0] < -0.5  # in front of it, or broken at it


# the same bits


@pytest.mark.parametrize("task", ["waypoints", exhaustively("path")])
def test_the_size_of_a_batch_and_the_threads_change_no_bit(task: str) -> None:
    options = {"world": "random", "terrain": "random", "density": 60.0, "world_seed": 3}
    rng = np.random.default_rng(7)
    numbers = len(begun(task, 1, **options).action_names)
    actions = rng.uniform(-0.2, 1.0, (20, 37, numbers)).astype(np.float32)
    threads = numba.get_num_threads()
    runs = []
    try:
        for count in (1, min(2, threads)):
            numba.set_num_threads(count)
            whole = begun(task, 37, spread=0.1, **options)
            for own in actions:
                whole.step(own)
            runs.append(whole)
    finally:
        numba.set_num_threads(threads)
    assert runs[0].vehicles.x.tobytes() == runs[1].vehicles.x.tobytes()

    for first, count in ((5, 1), (20, 8)):
        part = begun(task, count, first, spread=0.1, **options)
        for own in actions:
            part.step(own[first : first + count])
        assert part.vehicles.x.tobytes() == whole.vehicles.x[first : first + count].tobytes()
        assert part.endings.tobytes() == whole.endings[first : first + count].tobytes()


# grounds


def test_a_random_terrain_is_that_of_its_seed() -> None:
    first = random_terrain(1)
    assert random_terrain.__wrapped__(1).heights.tobytes() == first.heights.tobytes()
    assert (random_terrain(2).heights != first.heights).mean() > 0.9
    assert first.bounds == (-200.0, 200.0, -200.0, 200.0)

    # it has level places and steep ones, smooth ones and rough ones
    for seed in range(4):
        heights = random_terrain(seed).heights.astype(float)
        blocks = heights[:800, :800].reshape(100, 8, 100, 8).transpose(0, 2, 1, 3)
        along = np.arange(8) - 3.5
        mean = blocks.mean(axis=(2, 3))
        rise = [(blocks * along[:, None]).sum((2, 3)), (blocks * along).sum((2, 3))]
        rise = [each / (8 * (along**2).sum()) for each in rise]
        plane = rise[0][..., None, None] * along[:, None] + rise[1][..., None, None] * along
        rough = (blocks - mean[..., None, None] - plane).std(axis=(2, 3))
        slope = np.hypot(*rise) / 0.5
        assert np.quantile(slope, 0.1) < 0.05
        assert 0.15 < np.quantile(slope, 0.9) < 0.3
        assert np.quantile(rough, 0.1) < 0.015
        assert np.quantile(rough, 0.9) > 0.03


@pytest.mark.parametrize("task", IN_WORLDS)
def test_episodes_are_spread_over_random_ground(task: str) -> None:
    batch = begun(task, 100, terrain="random", world="random", world_seed=5)
    assert batch.terrain is random_terrain(5)
    x = batch.vehicles.x[:, :2]
    assert np.ptp(x, axis=0).min() > 200.0
    other = begun(task, 100, terrain="random", world="random", world_seed=6)
    assert (other.vehicles.x[:, 2] != batch.vehicles.x[:, 2]).mean() > 0.9
    for _ in range(5):
        batch.step(np.zeros((100, len(batch.action_names))))
    assert (batch.endings == Ending.RUNNING).all()


@pytest.mark.needs("gymnasium", "pettingzoo")
def test_several_vehicles_begin_clear_of_objects_and_keep_their_places() -> None:
    from rfly_lab import parallel_env

    env = parallel_env(vehicles=5, task="waypoints", world="random", density=60.0)
    seen = [env.reset(seed=seed)[0] for seed in (1, 2, 1)]
    batch = env.batch
    assert all((seen[0][name] == seen[2][name]).all() for name in env.agents)
    for _ in range(4):
        env.reset()
        places = np.concatenate([batch.vehicles.x[:, :3], batch.episodes.targets.reshape(-1, 3)])
        assert not touched(batch, column(batch.params.reach), places).any()
        low, high = batch._starts.low, batch._starts.high
        assert (batch.vehicles.x[:, :2] >= low).all()
        assert (batch.vehicles.x[:, :2] <= high).all()

    # a square of starts, 51 m wide, finds no room in a yard
    yard = walls_around(25.0)
    env = parallel_env(vehicles=9, task="hover", terrain=level(170.0), world=yard)
    with pytest.raises(ConfigError, match="vehicles: no places were found for 9 of them"):
        env.reset(seed=1)


def test_a_random_world_has_the_density_and_room_for_vehicles() -> None:
    hectares = 16.0
    for density in (None, 10.0, 100.0):
        batch = LandAirBatch(1, "hover", terrain=level(400.0), world="random", density=density)
        objects = batch.world.objects
        expected = hectares * (DENSITY if density is None else density)
        assert len(objects) == pytest.approx(expected, rel=0.05)
        names = {each.model.name.split("_")[0] for each in objects}
        assert names == {"box", "cylinder"}

    # from above, corner to corner, a vehicle passes between any two
    outlines = batch.world.solids.outlines
    corners = np.split(outlines.corners, outlines.first[1:-1])
    middle = np.array([each.mean(axis=0) for each in corners])
    radius = np.array([np.hypot(*(e - m).T).max() for e, m in zip(corners, middle, strict=True)])
    apart = np.linalg.norm(middle[:, None] - middle, axis=2) - radius[:, None] - radius
    np.fill_diagonal(apart, np.inf)
    assert apart.min() > 2.0 * SCALE.reach - 0.3  # prisms are a little wider than cylinders


def test_a_world_brings_its_map_friction_and_places(tmp_path: Path) -> None:
    batch = LandAirBatch(1, "hover", world="forest")
    assert batch.terrain.name == "RollingHills"
    low, high = batch.places
    assert np.abs([low, high]).max() <= 121.0  # its objects fill 200 m
    assert len(batch.world.objects) == len(load_world("forest").objects)
    on_hills = LandAirBatch(1, "hover", world="forest", terrain=hills())
    assert on_hills.terrain is hills()

    # by a path, with a map beside it, and slippery
    file = tmp_path / "icy.yaml"
    file.write_text("version: 1\nmap: RollingHills\nground: {friction: 0.05}\nobjects: []\n")
    icy = begun("path", 8, world=file)
    dry = begun("path", 8, terrain="RollingHills")
    speeds = []
    for each in (icy, dry):
        each.vehicles.put(np.arange(8), np.repeat(each._starts.standing[:1], 8, axis=0))
        for _ in range(75):
            each.step(np.tile((0.0, 1.0, -1.0), (8, 1)))
        speeds.append(np.linalg.norm(each.vehicles.x[0, 3:6]))
    assert speeds[0] < 0.4 * speeds[1]

    # a world that already is on a map
    placed = one_box(0.0, 0.0).on(hills())
    assert LandAirBatch(1, "hover", world=placed).world is placed


# arguments


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"world": "no such"}, "no such"),
        ({"world": "missing.yaml"}, "missing.yaml"),
        ({"world": one_box(500.0, 0.0)}, r"world: 1 of 1 objects are off the map.* x 500, y 0 m"),
        ({"world": one_box(195.0, 0.0)}, "within 50 m of the map's edge"),
        ({"world": "random", "task": "roof"}, "world: roof has houses of its own"),
        ({"density": 5.0}, "density: 5.0, expected none without world='random'"),
        ({"world": "pillars", "density": 5.0}, "density: 5.0, expected none"),
        ({"world": "random", "density": 0.0}, "density: 0.0 a hectare"),
        ({"world": "random", "density": 1e4}, "of at most 200"),
        ({"world": "random", "density": math.nan}, "density: nan"),
        ({"world": "random", "density": 0.01}, "no object has found a place"),
        ({"world_seed": 1}, "world_seed: 1, expected none without"),
        ({"world": "pillars", "world_seed": 1}, "world_seed: 1, expected none without"),
        ({"terrain": "random", "world_seed": -1}, "world_seed: -1"),
        ({"terrain": "random", "world_seed": 1.5}, "world_seed: 1.5, expected a whole number"),
        ({"world": one_box(0.0, 0.0, size=(380.0, 380.0, 3.0))}, "courses are clear"),
        (
            {"world": one_box(0.0, 0.0, size=(380.0, 380.0, 3.0)), "task": "path"},
            "stands at none of .* places clear of objects",
        ),
    ],
)
def test_what_cannot_be_used_is_said(options: dict, text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        LandAirBatch(2, **({"task": "hover"} | options))


def test_what_moves_in_a_world_is_left_out() -> None:
    village = load_world("village")
    assert village.moving
    batch = LandAirBatch(1, "hover", world=village)
    assert batch.vehicles.models[0]._moving is None
    same = LandAirBatch(1, "hover", world=dataclasses.replace(village, moving=()))
    assert same.solids.vertices.tobytes() == batch.solids.vertices.tobytes()


def test_friction_of_a_world_without_objects_counts_alone() -> None:
    world = World("bare", friction=GroundFriction(0.1))
    batch = begun("hover", 4, world=world)
    usual = begun("hover", 4)
    assert batch.places == usual.places
    assert batch.vehicles.x.tobytes() == usual.vehicles.x.tobytes()
