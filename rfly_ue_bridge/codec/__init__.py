"""Packets as data, commands, state → bytes; no socket."""
