"""Controllers outside: UDP/TCP frame, MAVLink HIL."""
