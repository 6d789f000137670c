"""Compilation of every kernel of the suite into numba's disk cache."""

from __future__ import annotations

import time

from rich.console import Console


def main() -> None:
    """Warm all packages up, and say how long it took."""
    from rfly_amphibious.mapping.octomap_grid import warm_up as warm_up_mapping
    from rfly_amphibious.warm_up import warm_up as warm_up_amphibious
    from rfly_collision.warm_up import warm_up as warm_up_collision
    from rfly_terrain.planning.warm_up import warm_up as warm_up_planner
    from rfly_terrain.warm_up import warm_up as warm_up_terrain
    from rfly_trajectory.warm_up import warm_up as warm_up_trajectory

    start = time.monotonic()
    warm_up_terrain()
    warm_up_planner()
    warm_up_trajectory()
    warm_up_amphibious()
    warm_up_mapping()
    warm_up_collision()
    Console().print(f"kernels are ready ({time.monotonic() - start:.1f} s)")


if __name__ == "__main__":
    main()
