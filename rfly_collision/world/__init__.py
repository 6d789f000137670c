"""Scene, bodies, events, ignore rules."""
