"""The browser window (`rfly view`): it draws what RflySim3D's datagrams say, over the maps.

    wire ──> scene ──> drawing ──> window
    UDP      arrays    meshes      viser: pictures, mouse, panel
      ^                               |
      └── feedback on UDP 20006 <─────┘

It knows nothing but what arrives by UDP, and the maps. `models` says how vehicles look, in RViz
too. Everything but `window` and the layers of `drawing` works without viser and without sockets.
"""

from rfly_common.imports import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
