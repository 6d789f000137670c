"""One vehicle in time: ticks, pacing, fail-safe, events."""
