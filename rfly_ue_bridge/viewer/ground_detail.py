"""Tiles without seams that keep the ground sharp near a camera, where its picture has metres for a pixel."""

from __future__ import annotations

import functools

import cv2
import numpy as np
from numpy.typing import NDArray

TILE_M = {"normalTexture": 9.0, "occlusionTexture": 83.0}
"""side of the tile of each of glTF's textures on the ground, m: no multiple of each other, so that nothing repeats"""
_PIXELS = 512
_BUMPS = 0.55
"""steepness of the normals' bumps"""


def waves(seed: int, sizes: tuple[float, ...], pixels: int = _PIXELS) -> NDArray[np.float32]:
    """(pixels, pixels) noise of these sizes in pixels, each as strong as the others; mean 0, deviation 1, seamless."""
    noise = np.random.default_rng(seed).normal(0.0, 1.0, (pixels, pixels)).astype(np.float32)
    reach = pixels // 4
    around = cv2.copyMakeBorder(noise, reach, reach, reach, reach, cv2.BORDER_WRAP)
    total = np.zeros((pixels, pixels), np.float32)
    for size in sizes:
        soft = cv2.GaussianBlur(around, (0, 0), size)[reach:-reach, reach:-reach]
        total += soft / soft.std()
    return np.asarray((total - total.mean()) / total.std(), np.float32)


@functools.cache
def detail_tiles() -> dict[str, NDArray[np.uint8]]:
    """RGB pictures by glTF's names: small bumps that the sun lights, and larger spots that the skylight darkens."""
    heights = waves(7, (1.2, 3.0, 9.0))
    across, up = (np.roll(heights, 1, axis) - np.roll(heights, -1, axis) for axis in (1, 0))
    normal = np.dstack([_BUMPS * across, -_BUMPS * up, np.ones_like(heights)])
    normal /= np.linalg.norm(normal, axis=2, keepdims=True)
    spots = np.clip(180 + 62 * waves(11, (1.0, 3.0, 8.0, 20.0)), 30, 255).astype(np.uint8)
    return {
        "normalTexture": np.round(127.5 * (normal + 1)).astype(np.uint8),
        "occlusionTexture": np.dstack([spots] * 3),
    }
