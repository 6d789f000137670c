"""`python -m rfly_bringup.demo`."""

from rfly_common import startup

startup.install_handlers(shell_codes=True)

from rfly_bringup.demo.demo import main  # noqa: E402  signals are in hand before the imports begin

main()
