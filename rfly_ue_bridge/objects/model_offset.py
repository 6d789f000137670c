"""Model offset: height of a model's origin above the ground it stands on.

RflySim3D tells two points of a double click, in metres NED: *click point*, where the ray hit (the ground, if one clicks
beside the model's foot), and *object pos*, the model's origin. z points down, so that a model that stands on the ground
with its origin in its middle has an object z that is *less* than the click z:

    height of the origin above the ground = z_click − z_object        (m, positive: the origin is above the ground)
    <CenterHeightAboveGroundCm>           = 100 · (z_click − z_object)
    z to send for the model               = z_ground − height          (what the three targets of experiment 2 got)

A target whose object pos is (43.943, 1.620, −11.465) where the ground beneath has z = −10.465 has an offset of +1 m:
the XML wants 100, and on ground of z = −176.181 (experiment 3's mountain) it is sent with z = −177.181.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from rfly_common.config.checks import finite_array
from rfly_common.frames import up_to_down


@dataclass(frozen=True)
class ModelOffset:
    """From the click point (on the ground) to the object position (the model's origin)."""

    vector_ned: tuple[float, float, float]
    """m: object position minus click point; z is negative for an origin above the ground"""

    @property
    def height(self) -> float:
        """m, the origin above the ground: what `PlaceObject` and `rfly objects place` call offset."""
        return float(up_to_down(self.vector_ned[2])) + 0.0

    @property
    def height_cm(self) -> float:
        """cm: the value of <CenterHeightAboveGroundCm>."""
        return self.height * 100.0

    @property
    def distance(self) -> float:
        """m, horizontally: on a slope a click point far from the model says little of the ground beneath it."""
        return math.hypot(self.vector_ned[0], self.vector_ned[1])


def measure_offset(click_point_ned: Sequence[float], object_position_ned: Sequence[float]) -> ModelOffset:
    """The offset of a model from the two points of a double click, each x, y, z in m NED.

    Raises ValueError for a point that is not three finite numbers.
    """
    click = finite_array("click_point_ned", click_point_ned, (3,), error=ValueError)
    origin = finite_array("object_position_ned", object_position_ned, (3,), error=ValueError)
    x, y, z = (origin - click).tolist()
    return ModelOffset((x, y, z))
