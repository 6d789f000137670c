# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The browser window (`rfly view`): it draws the contents of RflySim3D's datagrams over the maps.

    wire ──> scene ──> drawing ──> window
    UDP      arrays    meshes      viser: pictures, mouse, panel
      ^                               |
      └── feedback on UDP 20006 <─────┘

It knows only the maps and what arrives by UDP. `scene` works without viser and without
sockets. `window_sensors` are the lidars and cameras that RflySim3D's scripts request.
"""

from rfly_common.imports import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
