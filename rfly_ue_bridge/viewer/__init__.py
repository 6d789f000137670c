"""Browser viewer for RflySim3D's datagrams (`rfly view`). It knows nothing but what arrives by UDP, and the maps.

    listener -> state_batches -> scene_state -> server (viser)
    UDP 20010+k  whole arrays     what is where   pictures, mouse, panel
                                       |
                             feedback_sender -> UDP 20006

Everything but `server`, `drawing` and `panel` works without viser and without sockets.
"""
