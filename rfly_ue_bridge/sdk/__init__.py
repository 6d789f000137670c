"""Drop-in UE4CtrlAPI and MATLAB's calls."""
