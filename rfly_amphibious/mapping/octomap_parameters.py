"""Parameters of the octomap, which nodes read without the kernels."""

from __future__ import annotations

from dataclasses import dataclass

from rfly_common.errors import ConfigError


@dataclass(frozen=True)
class OctomapParameters:
    """Side of the voxels, and log-odds of a sensor's rays."""

    resolution: float = 0.2
    """m"""
    hit: float = 0.85
    """log-odds that a ray's end adds to its voxel"""
    miss: float = -0.41
    """log-odds that a passing ray adds"""
    clamp_min: float = -2.0
    clamp_max: float = 3.5
    max_range: float = 40.0
    """m; what is farther is free up to there"""
    max_voxels: int = 1_500_000
    """16 to 32 bytes each; then those that lie farthest from the sensor make room"""
    forget_after: float = 0.0
    """s after which an occupied voxel that no ray hits any more is unknown, at the latest; 0: rays
    alone clear it
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
