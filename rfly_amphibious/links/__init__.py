"""Links to controllers outside: UDP and TCP frames, MAVLink HIL."""
