# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Sky of the browser window: background, sun, skylight and fog, by the weather."""

from __future__ import annotations

import numpy as np
import viser

from rfly_terrain.world.weather import CLEAR, Weather
from rfly_viewer.drawing.terrain_mesh import SRGB

_SKY_TOP = (112, 160, 212)
_SKY_LOW = (222, 233, 241)
_SKY_GREY = (190, 194, 198)
SKYLIGHT = 1.1
"""Intensity of the skylight in clear air by day."""
SUNLIGHT = 2.2
"""Intensity of the sun in clear air by day."""
HORIZON_M = 5000.0
"""Visibility below which fog hides the blue of the sky, m."""


class Sky:
    """Background, sun, skylight and fog."""

    def __init__(self, server: viser.ViserServer, shadows: bool) -> None:
        self._server = server
        self.daylight = 1.0
        """Light of the weather as a share of that in clear air by day."""
        server.scene.configure_environment_map(None)
        server.scene.configure_default_lights(enabled=False)
        self._skylight = server.scene.add_light_hemisphere(
            "/light/sky", sky_color=(225, 235, 250), ground_color=(120, 112, 98)
        )
        # a directional light shines from its position towards the origin
        self._sun = server.scene.add_light_directional(
            "/light/sun", color=(255, 246, 228), cast_shadow=shadows, position=(-0.55, 0.55, 0.63)
        )
        self.show(CLEAR)

    def show(self, weather: Weather) -> None:
        """Show the sky of a weather.

        The lights have the proportion of Eq. 11.9. The fog of Eq. 11.8 is drawn as browsers can: it
        grows linearly with the distance.
        """
        self._skylight.intensity = SKYLIGHT * weather.skylight / CLEAR.skylight
        self._sun.intensity = SUNLIGHT * weather.sunlight / CLEAR.sunlight

        grey = max(weather.cloud_cover**2, float(weather.extinction * HORIZON_M > 1.0))
        day = (weather.skylight + weather.sunlight) / (CLEAR.skylight + CLEAR.sunlight)
        self.daylight = day
        clear = np.array([_SKY_TOP, _SKY_LOW]) / 255.0
        cloudy = np.array(_SKY_GREY) / 255.0
        top, low = day * ((1 - grey) * clear**SRGB + grey * cloudy**SRGB)

        # a gradient from the top to the horizon
        share = np.linspace(0, 1, 256)[:, None, None] ** 0.42
        column = (1 - share) * top ** (1 / SRGB) + share * low ** (1 / SRGB)
        sky = np.broadcast_to(column, (256, 4, 3))
        self._server.scene.set_background_image((255 * sky).astype(np.uint8), format="png")

        # three.js takes a fog's colour as light
        foggy = weather.extinction > 0.0
        # the straight line from 1 to 0 at 2/α has the area under exp(-α r)
        far = 2.0 / weather.extinction if foggy else HORIZON_M
        red, green, blue = (255 * low).astype(int).tolist()
        self._server.scene.configure_fog(0.0, far, color=(red, green, blue), enabled=foggy)
