"""`python -m rfly_bringup.demo`."""

from rfly_common import startup

startup.run_command_module("rfly_bringup.demo.demo")  # handles signals before the imports begin
