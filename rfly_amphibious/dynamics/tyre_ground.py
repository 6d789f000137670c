# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The ground with its friction, as flat arrays for the dynamics' kernels.

No kernel stands here: each would be compiled anew after a change of a map's reader.
"""

from __future__ import annotations

from collections import namedtuple

from rfly_terrain.height_map.ground import GroundGrid
from rfly_terrain.height_map.height_map import HeightMap, ground_of
from rfly_terrain.world.ground_friction import GroundFriction

TyreGround = namedtuple(  # type: ignore[misc]  # mypy knows literal fields alone
    "TyreGround", (*GroundGrid._fields, "friction", "edges", "layer")
)
"""`GroundGrid` with factors on the friction of tyres. Eq. 3.9.

`friction` is the factor where nothing else says another one, `edges` are those of areas, as
`GroundFriction.edges` has them. `layer` has factors at the samples of the heights, (rows·columns,);
empty: none.
"""


def tyre_ground(terrain: HeightMap | None, friction: GroundFriction) -> TyreGround:
    """Return the ground of a terrain, None for level ground, with its friction.

    Raise ConfigError if the friction's layer is for another map.
    """
    factors = (float(friction.elsewhere), friction.edges(), friction.layer_on(terrain))
    return TyreGround._make((*ground_of(terrain), *factors))
