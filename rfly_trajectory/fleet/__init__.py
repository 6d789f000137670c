"""Fleet files, the fleet as arrays, run clock, shards, checks."""
