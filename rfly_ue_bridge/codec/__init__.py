"""Codec of RflySim3D's packets and commands: data to bytes and back; no socket."""
