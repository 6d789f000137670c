"""Drop-in classes: UEMapServe, MATLAB's functions."""
