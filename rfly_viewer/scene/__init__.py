"""The scene as data: what is where, by the datagrams that arrived. No sockets, no viser."""
