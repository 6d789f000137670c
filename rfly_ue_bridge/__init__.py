"""RflySim3D packets, sockets and the bridge node."""
