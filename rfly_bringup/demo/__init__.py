"""`make demo`: a convoy on real terrain, observed from outside the nodes."""
