"""Node runtime: QoS, parameters, diagnostics, frame look-up, and the run loop. Import from the
modules.
"""
