"""Parameter sweeps: many runs of one scenario, on all cores or a Dask cluster, to one table of results."""

from __future__ import annotations

import concurrent.futures
import functools
import itertools
import math
import multiprocessing
import re
import sys
import types
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from rfly_amphibious.scenarios.scenario import Scenario
from rfly_amphibious.scenarios.sweep_results import Result, result_of
from rfly_amphibious.vehicle.parameter_files import KeyPath, parse_key_path
from rfly_common.config.marked_yaml import parse_yaml
from rfly_common.errors import ConfigError
from rfly_common.imports import require
from rfly_common.kernels.parallel import cores
from rfly_terrain.height_map.height_map import HeightMap

MAX_RUNS = 100_000
MAX_PROCESSES = 61
"""that Windows lets one pool have"""
CONNECT_TIMEOUT = 10.0
"""s to wait for a cluster's scheduler"""
_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_RANGE = re.compile(rf"({_NUMBER}):({_NUMBER})(?::({_NUMBER}))?")

Progress = Callable[[int, int], None]
"""is told how many runs are done, and how many there are"""


@dataclass(frozen=True)
class Variation:
    """The values that a key of a scenario, or of its vehicle (`vehicle.…`), takes in turn."""

    key: str
    path: KeyPath
    values: tuple[Any, ...]

    @classmethod
    def parse(cls, text: str) -> Variation:
        """`KEY=VALUE,VALUE,…`; a VALUE may be a range START:STOP or START:STOP:STEP, which ends before STOP.

        Raises ConfigError for what is none.
        """
        key, equals, listed = text.partition("=")
        if not equals or not listed.strip():
            raise ConfigError(f"{text!r}: expected KEY=VALUE,VALUE,… or KEY=START:STOP")
        path = parse_key_path(key.strip())
        values = tuple(value for part in listed.split(",") for value in _values(part.strip(), text))
        return cls(key.strip(), path, values)


def _values(part: str, text: str) -> Iterable[Any]:
    if not part:
        raise ConfigError(f"{text!r}: a value between commas is missing")
    found = _RANGE.fullmatch(part)
    if found is None:
        value = parse_yaml(part, repr(text)).value
        if isinstance(value, dict | list):
            raise ConfigError(f"{text!r}: {part} is no single value; an element of a list is varied as KEY[0]")
        return (value,)
    start, stop, step = (_number(number or "1") for number in found.groups())
    steps = (stop - start) / step if step else 0.0
    count = math.ceil(steps - 1e-9) if math.isfinite(steps) else 0
    if count < 1:
        raise ConfigError(f"{text!r}: {part} is empty; expected START:STOP:STEP that gets from START to STOP")
    if count > MAX_RUNS:
        raise ConfigError(f"{text!r}: {count} values, allowed: up to {MAX_RUNS}")
    values = (start + n * step for n in range(count))
    return [value if isinstance(value, int) else float(f"{value:.12g}") for value in values]


def _number(text: str) -> int | float:
    return int(text) if re.fullmatch(r"[-+]?\d+", text) else float(text)


@dataclass(frozen=True)
class Sweep:
    """All combinations of the values; the last variation changes fastest."""

    source: str
    """name or file of the scenario"""
    variations: tuple[Variation, ...]
    scenarios: tuple[Scenario, ...]
    """one a run, checked; without their maps"""
    terrains: tuple[HeightMap | None, ...]
    terrain_of: tuple[int, ...]
    """of each run: its map's place in `terrains`"""

    @classmethod
    def load(cls, source: str, variations: Sequence[Variation], map_folders: Sequence[str] = ()) -> Sweep:
        """Reads and checks the scenario with every combination, before anything runs.

        Raises ConfigError that names the combination and what is allowed.
        """
        for variation, other in itertools.combinations(variations, 2):
            short, long = sorted((variation.path, other.path), key=len)
            # which vehicle it is, and a parameter of it, go together
            if long[: len(short)] == short and (short != ("vehicle",) or long == short):
                raise ConfigError(f"{variation.key} and {other.key} are varied both, which change the same value")
        runs = math.prod(len(variation.values) for variation in variations)
        if runs > MAX_RUNS:
            raise ConfigError(f"{runs} runs, allowed: up to {MAX_RUNS}")
        load_map = functools.lru_cache(maxsize=None)(HeightMap.load)
        scenarios: list[Scenario] = []
        terrains: list[HeightMap | None] = []
        terrain_of: list[int] = []
        for values in itertools.product(*(variation.values for variation in variations)):
            changes = [(variation.path, value) for variation, value in zip(variations, values, strict=True)]
            try:
                scenario = Scenario.load(
                    source, map_folders, changes, lambda name, folders: load_map(name, tuple(map(str, folders)))
                )
            except ConfigError as error:
                tried = ", ".join(f"{v.key}={value}" for v, value in zip(variations, values, strict=True))
                raise ConfigError(f"with {tried}: {error}" if tried else str(error)) from None
            place = next((n for n, known in enumerate(terrains) if known is scenario.terrain), len(terrains))
            if place == len(terrains):
                terrains.append(scenario.terrain)
            terrain_of.append(place)
            scenarios.append(replace(scenario, terrain=None))
        return cls(source, tuple(variations), tuple(scenarios), tuple(terrains), tuple(terrain_of))

    def __len__(self) -> int:
        return len(self.scenarios)

    def combinations(self) -> Iterator[dict[str, Any]]:
        """The values of each run by key, in the order of the runs."""
        for values in itertools.product(*(variation.values for variation in self.variations)):
            yield {variation.key: value for variation, value in zip(self.variations, values, strict=True)}


def run_sweep(sweep: Sweep, jobs: int | None = None, progress: Progress | None = None) -> list[Result]:
    """Runs all of a sweep in `jobs` processes (default: one a core); the results do not depend on how many.

    Results are in the order of the runs. `jobs` 1: in this process.
    """
    told = progress or (lambda done, runs: None)
    jobs = min(jobs or cores(), len(sweep), MAX_PROCESSES)
    if jobs == 1:
        results = []
        for run in range(len(sweep)):
            results.append(_run(sweep.scenarios[run], sweep.terrains[sweep.terrain_of[run]]))
            told(run + 1, len(sweep))
        return results
    # not forked: threads of numba's and of the caller's own do not live on in a fork
    context = multiprocessing.get_context("spawn")
    pool = concurrent.futures.ProcessPoolExecutor(jobs, context, _hold_terrains, (sweep.terrains,))
    try:
        with _main_left_out():
            futures = [pool.submit(_run_held, s, t) for s, t in zip(sweep.scenarios, sweep.terrain_of, strict=True)]
        for done, future in enumerate(concurrent.futures.as_completed(futures), 1):
            future.result()
            told(done, len(sweep))
        return [future.result() for future in futures]
    except concurrent.futures.process.BrokenProcessPool:
        raise ConfigError(
            f"one of {jobs} processes ended in the middle of its run (out of memory?); try fewer jobs"
        ) from None
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def check_dask() -> None:
    """Raises ConfigError that says what to install where no Dask cluster can be used."""
    require("distributed", "a Dask cluster")


def run_sweep_on_dask(sweep: Sweep, cluster: Any, progress: Progress | None = None) -> list[Result]:
    """As `run_sweep`, on a cluster of Dask: the address of its scheduler, or a `Client` or `Cluster` of distributed.

    Its workers need this package; maps are sent to them. Raises ConfigError where no scheduler answers.
    """
    check_dask()
    from distributed import Client, as_completed

    told = progress or (lambda done, runs: None)
    given = isinstance(cluster, Client)
    if isinstance(cluster, str) and not re.fullmatch(r"(\w+://)?\S+:\d+", cluster):
        raise ConfigError(f"Dask: {cluster!r}, expected the address of a scheduler, such as tcp://127.0.0.1:8786")
    try:
        client = cluster if given else Client(cluster, timeout=CONNECT_TIMEOUT, set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        raise ConfigError(f"Dask: {cluster}: no scheduler answers ({error})") from None
    try:
        maps = [None if terrain is None else client.scatter(terrain, broadcast=True) for terrain in sweep.terrains]
        futures = [
            client.submit(_run, scenario, maps[terrain], pure=False)
            for scenario, terrain in zip(sweep.scenarios, sweep.terrain_of, strict=True)
        ]
        for done, future in enumerate(as_completed(futures, loop=client.loop), 1):
            future.result()
            told(done, len(sweep))
        results: list[Result] = client.gather(futures)
        return results
    finally:
        if not given:
            client.close()


@contextmanager
def _main_left_out() -> Iterator[None]:
    """Processes that are started meanwhile do not run the caller's script once more, guarded or not: they need none."""
    main = sys.modules["__main__"]
    sys.modules["__main__"] = types.ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


def _run(scenario: Scenario, terrain: HeightMap | None) -> Result:
    from rfly_amphibious.scenarios.run import run_scenario

    return result_of(run_scenario(replace(scenario, terrain=terrain)))


_terrains: tuple[HeightMap | None, ...] = ()
"""of a worker process"""


def _hold_terrains(terrains: tuple[HeightMap | None, ...]) -> None:
    global _terrains  # noqa: PLW0603  a pool's processes get what all tasks share only this way
    _terrains = terrains


def _run_held(scenario: Scenario, terrain: int) -> Result:
    return _run(scenario, _terrains[terrain])
