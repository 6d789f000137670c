"""Collision world: scene, bodies, contact events, ignore rules."""
