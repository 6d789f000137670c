# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Parameters of the octomap and of mapping_node, without the kernels. No ROS."""

from __future__ import annotations

from dataclasses import dataclass

from rfly_common.errors import ConfigError
from rfly_common.ros.node_parameters import parameter


@dataclass(frozen=True)
class OctomapParameters:
    """Side of the voxels, and log-odds of a sensor's rays."""

    resolution: float = parameter(0.2, "side of the voxels", unit="m", low=0.05, high=10.0)
    """Side of a voxel, m."""
    hit: float = parameter(0.85, "log-odds that a ray's end adds")
    """Log-odds that a ray's end adds to its voxel."""
    miss: float = parameter(-0.41, "log-odds that a passing ray adds, negative")
    """Log-odds that a passing ray adds."""
    clamp_min: float = parameter(-2.0, "least log-odds, negative")
    """Lowest log-odds of a voxel."""
    clamp_max: float = parameter(3.5, "largest log-odds")
    """Highest log-odds of a voxel."""
    max_range: float = parameter(40.0, "range of a hit; a longer ray is free up to there", unit="m")
    """Range of a hit, m. A longer ray is free up to there."""
    max_voxels: int = parameter(
        1_500_000, "then those farthest from the sensor make room; 16 to 32 bytes each"
    )
    """Most voxels, of 16 to 32 bytes each.

    Voxels that lie farthest from the sensor are dropped for new ones.
    """
    forget_after: float = parameter(
        0.0,
        "after which an occupied voxel that no ray hits any more is unknown, at the latest; 0: "
        "rays alone clear it",
        unit="s",
    )
    """Longest time after which an occupied voxel without hits is unknown, s. 0: only rays clear it.
    """

    def __post_init__(self) -> None:
        allowed = (
            ("resolution", self.resolution, 0.01, 10.0),
            ("hit", self.hit, 0.01, 20.0),
            ("miss", self.miss, -20.0, -0.01),
            ("clamp_min", self.clamp_min, -20.0, -0.01),
            ("clamp_max", self.clamp_max, 0.01, 20.0),
            ("max_range", self.max_range, self.resolution, 10_000.0),
            ("max_voxels", self.max_voxels, 1, 1_000_000_000),
            ("forget_after", self.forget_after, 0.0, 1e6),
        )
        for name, value, low, high in allowed:
            if not low <= value <= high:
                raise ConfigError(f"{name} is {value}, allowed: {low:g} … {high:g}")
