"""`make demo`: the main job on real terrain, watched from outside the nodes."""
