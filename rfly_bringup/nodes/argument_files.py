"""Checks of the files that arguments name, before any node starts: a node would log it, and wait for another file."""

from __future__ import annotations

from collections.abc import Mapping

from rfly_bringup.nodes.node_set import TERRAIN, node_parameters
from rfly_common.errors import ConfigError
from rfly_common.files import open_regular

MAX_PARAMS_FILE_BYTES = 1_000_000


def check_files(arguments: Mapping[str, str]) -> None:
    """Raises the reader's error for a map, fleet, shape or parameter file that is wrong, and for a wrong shard."""
    check_params_file(arguments.get("params_file", ""))
    search_path = node_parameters(TERRAIN, arguments).get("map_search_path", ())
    if arguments.get("map"):
        from rfly_terrain.files.search import find_map

        find_map(arguments["map"], search_path)
    if arguments.get("fleet"):
        from rfly_trajectory.fleet.fleet_file import load_fleet

        load_fleet(arguments["fleet"])
    if arguments.get("collision") == "true" and arguments.get("collision_shapes"):
        from rfly_collision.shapes.shape_file import load_shapes

        load_shapes(arguments["collision_shapes"])
    if arguments.get("shard"):
        from rfly_trajectory.fleet.shard import shard_range

        shard_range(arguments["shard"], 0)


def check_params_file(path: str) -> None:
    """Raises ConfigError for a ROS parameter file that no node could read."""
    if not path:
        return
    import yaml

    try:
        with open_regular(path, MAX_PARAMS_FILE_BYTES) as file:
            found = yaml.safe_load(file)
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ConfigError(f"params_file: {path}: {' '.join(str(error).split())}") from error
    if not isinstance(found, dict):
        raise ConfigError(f"params_file: {path}: expected node names with ros__parameters below them")
