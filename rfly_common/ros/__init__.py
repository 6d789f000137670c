"""Node runtime: QoS, parameters, diagnostics, frames, run loop. Import from the modules."""
