"""Data of the scene, from the datagrams that arrived; without sockets and viser."""
