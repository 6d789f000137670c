# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Plot of the ground along a line."""

from __future__ import annotations

import numpy as np

from rfly_common.files import StrPath
from rfly_terrain.height_map.places import Profile

_GROUND = "#8c6d46"
_OFF_MAP = "#b0b0b0"


def write_profile(profile: Profile, path: StrPath, *, title: str = "") -> None:
    """Write the picture of a profile; needs no display.

    The ending of `path` is its format (png, pdf, svg, jpg …). Grey parts are off the map.
    """
    from rfly_terrain.plots.relief import picture

    with picture(path, (11.0, 4.5), dpi=120) as figure:
        axes = figure.add_subplot()
        altitude = profile.altitude
        base = altitude.min() - 0.05 * max(float(np.ptp(altitude)), 1.0)
        for where, colour in ((profile.inside, _GROUND), (~profile.inside, _OFF_MAP)):
            axes.fill_between(profile.distance, base, altitude, where, color=colour, alpha=0.5)

        axes.plot(profile.distance, altitude, color=_GROUND)
        axes.set(
            xlim=(0.0, profile.distance[-1]),
            xlabel="distance along the line, m",
            ylabel="z of the ground, m up",
            title=title,
        )
        axes.margins(y=0.1)
        axes.set_ylim(bottom=base)
        axes.grid(alpha=0.3)
