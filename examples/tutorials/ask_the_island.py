# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Ask the map Island for a height, a slope and a line of sight.

python examples/tutorials/ask_the_island.py
"""

import numpy as np

from rfly_terrain import HeightMap

island = HeightMap.load("./Island")
print(f"height at the crater's middle: {island.altitude(0.0, 0.0):.1f} m")
print(f"slope at x = 300 m: {np.degrees(island.slope(300.0, 0.0)):.1f} degrees")

camera = (0.0, 0.0, island.altitude(0.0, 0.0) + 2.0)
boat = (590.0, 0.0, 1.0)
print("the camera in the crater sees the boat:", bool(island.line_of_sight(camera, boat)))
