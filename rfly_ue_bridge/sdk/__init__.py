"""Drop-in replacements of RflySim's SDK: UE4CtrlAPI and MATLAB's calls."""
