"""Entry point of the executable `rfly`; light, so that signals are in hand before the command's imports begin."""

from __future__ import annotations

from typing import NoReturn

from rfly_common import startup


def rfly() -> NoReturn:
    """Run the command line; Ctrl-C and its like end it without a trace, whenever they come."""
    startup.install_handlers(shell_codes=True)
    from rfly_bringup.cli.main import main

    code = 0
    try:
        startup.interruptible()
        main()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0
    except BaseException:
        if not startup.stop_requested():
            raise
    startup.end(startup.exit_code() or code)
