"""Rotations inside compiled kernels; `frames` has them for arrays."""

from __future__ import annotations

from rfly_common.kernels.jit import inner_kernel


@inner_kernel
def rotation_matrix(
    x: float, y: float, z: float, w: float
) -> tuple[float, float, float, float, float, float, float, float, float]:
    """The nine numbers, row by row, of a quaternion of any norm but 0. As `frames.rotation_matrix`."""
    s = 2.0 / (x * x + y * y + z * z + w * w)
    return (
        1.0 - s * (y * y + z * z),
        s * (x * y - w * z),
        s * (x * z + w * y),
        s * (x * y + w * z),
        1.0 - s * (x * x + z * z),
        s * (y * z - w * x),
        s * (x * z - w * y),
        s * (y * z + w * x),
        1.0 - s * (x * x + y * y),
    )
