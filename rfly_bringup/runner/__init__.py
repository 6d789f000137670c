"""`rfly up`: process supervisor and entry points."""
