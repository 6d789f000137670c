# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Brightness of objects for an infrared camera: RflySim's `Radiation`, with your own objects.

It is the radiance of a grey body over 8 to 14 µm by Planck's law; the SDK shows it by an object's
stencil value.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

_WAVELENGTHS = np.arange(8.0, 14.0, 0.01)
"""Wavelengths that the SDK adds up, µm."""
_HC_PER_K = 1.43879e4
"""Second radiation constant h c / k, µm K."""


class Radiation:
    """Objects of a scene. Each map has its own, so there are none at first."""

    def __init__(self) -> None:
        self.tempEmissivity: Sequence[Sequence[Any]] = ()
        """Rows of name (or a part of it), temperature in K, emissivity 0 … 1, and kind of name.

        The kind is True or "True" for an actor's name, else it is that of a mesh component. An
        array of texts, as in the SDK, works too.
        """

    def stencil_values(self) -> list[tuple[str, int, bool]]:
        """Return (name, stencil value, is an actor) of each row.

        Stencil values are 0 … 255; the brightest object has 255.
        """
        if not len(self.tempEmissivity):
            return []

        names, temperatures, emissivities, actors = zip(*self.tempEmissivity, strict=True)
        kelvin = np.array(temperatures, float)[:, None]
        emissivity = np.array(emissivities, float)
        if not ((kelvin > 0.0).all() and ((emissivity > 0.0) & (emissivity <= 1.0)).all()):
            raise ValueError(
                "tempEmissivity: expected temperatures above 0 K and emissivities above 0, up to 1"
            )

        # trapezoids of Planck's law
        spectrum = 1.0 / (_WAVELENGTHS**5 * np.expm1(_HC_PER_K / (_WAVELENGTHS * kelvin)))
        radiance = emissivity * (spectrum[:, 1:] + spectrum[:, :-1]).sum(axis=1)
        values = (radiance / radiance.max() * 255.0).astype(int).tolist()
        return [
            (str(name), value, str(actor) == "True")
            for name, value, actor in zip(names, values, actors, strict=True)
        ]
