# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Operations on whole rows of small matrices, in place."""

from __future__ import annotations

from typing import Any

from rfly_common.kernels.jit import inner_kernel


@inner_kernel
def add_scaled(out: Any, factor: float, row: Any) -> None:
    """out += factor row."""
    for n in range(out.shape[0]):
        out[n] += factor * row[n]


@inner_kernel
def add_outer(out: Any, column: Any, row: Any) -> None:
    """out += column rowᵀ."""
    for m in range(out.shape[0]):
        for n in range(out.shape[1]):
            out[m, n] += column[m] * row[n]


@inner_kernel
def scale(out: Any, factor: float) -> None:
    """out *= factor."""
    for n in range(out.shape[0]):
        out[n] *= factor


@inner_kernel
def symmetrise(out: Any) -> None:
    """out = ½ (out + outᵀ)."""
    for m in range(out.shape[0]):
        for n in range(m):
            mean = 0.5 * (out[m, n] + out[n, m])
            out[m, n] = mean
            out[n, m] = mean


@inner_kernel
def transpose(out: Any) -> None:
    """out = outᵀ."""
    for m in range(out.shape[0]):
        for n in range(m):
            below = out[m, n]
            out[m, n] = out[n, m]
            out[n, m] = below


@inner_kernel
def clear_error(p: Any, n: int) -> None:
    """Set row and column n of a covariance to 0."""
    for k in range(p.shape[0]):
        p[n, k] = 0.0
        p[k, n] = 0.0
