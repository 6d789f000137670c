# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Let ROS find its libraries and this package; run at every start of .venv's Python.

`_rfly_suite.pth` imports this module. The dynamic loader has to know the folders before Python
starts, so the variables are set and Python executes itself once. `ros_wheels_bootstrapper`, one of
the ROS wheels, does the same, but it keeps the variables of a ROS that the shell once sourced, and
trusts a mark inherited from another virtual environment. This module runs first, and the
bootstrapper then finds its mark.

For the executables of nodes and for `rfly`, SIGINT, SIGTERM and SIGHUP end the process from this
point (later `rfly_common/startup.py` handles them). They are blocked while Python executes itself,
so that no default handler receives them.

It uses the standard library only, and little of it: every start pays for it.
"""

import os
import sys

_MARK = "_RFLY_SUITE_ENVIRONMENT"  # process id that has executed itself already
_BOOTSTRAPPER_MARK = "_ROS_WHEELS_BOOTSTRAP_COMPLETE"


def _entries(name, is_foreign_ros=None):
    """Return the folders in a path variable, without those of a ROS outside this environment."""
    inside = sys.prefix + os.sep
    return [
        folder
        for folder in os.environ.get(name, "").split(os.pathsep)
        if folder
        and not (is_foreign_ros and not folder.startswith(inside) and is_foreign_ros(folder))
    ]


def _put_first(name, own, others):
    os.environ[name] = os.pathsep.join(own + [folder for folder in others if folder not in own])


def _is_inside(folder, prefixes):
    return folder.startswith(tuple(prefix + os.sep for prefix in prefixes))


def _has_ros_libraries(folder):
    return os.path.exists(os.path.join(folder, "librcl.so")) or (
        os.path.basename(folder).startswith("ros_") and folder.endswith(".libs")
    )


def _has_rclpy(folder):
    return os.path.exists(os.path.join(folder, "rclpy"))


def _is_ros_prefix(folder):
    return os.path.exists(os.path.join(folder, "share", "rclpy"))


def _use_wheels(site_packages):
    """Make the wheels the only ROS.

    No folder, middleware or mark of another ROS may reach them. Workspaces that were built on them
    and sourced come first, as overlays.
    """
    if os.environ.get("RMW_IMPLEMENTATION", "rmw_fastrtps_cpp") != "rmw_fastrtps_cpp":
        del os.environ["RMW_IMPLEMENTATION"]  # the wheels have no other

    sys.path[:] = [
        folder
        for folder in sys.path
        if folder.startswith(sys.prefix + os.sep) or not _has_rclpy(folder)
    ]
    overlays = _entries("AMENT_PREFIX_PATH", _is_ros_prefix)
    _put_first("AMENT_PREFIX_PATH", overlays, [sys.prefix])

    bundled = [
        name
        for name in sorted(os.listdir(site_packages))
        if name.startswith("ros_") and name.endswith(".libs")
    ]

    os.environ[_BOOTSTRAPPER_MARK] = "1"
    libraries = _entries("LD_LIBRARY_PATH", _has_ros_libraries)
    own = [
        *(folder for folder in libraries if _is_inside(folder, overlays)),
        os.path.join(sys.prefix, "lib"),
        *(os.path.join(site_packages, name) for name in bundled),
    ]
    _load_libraries_from(own, libraries)


def _use_sourced_ros():
    _put_first("AMENT_PREFIX_PATH", [sys.prefix], _entries("AMENT_PREFIX_PATH"))
    _load_libraries_from([os.path.join(sys.prefix, "lib")], _entries("LD_LIBRARY_PATH"))


def _load_libraries_from(own, others):
    """Execute Python again if the dynamic loader, which reads its variable only then, needs it."""
    in_order = [folder for folder in others if folder in own] == own
    if in_order or os.environ.get(_MARK) == str(os.getpid()):
        return

    _put_first("LD_LIBRARY_PATH", own, others)
    os.environ[_MARK] = str(os.getpid())
    if _is_ours():
        import signal

        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM, signal.SIGHUP})
    os.execve(sys.executable, sys.orig_argv, os.environ)


def _name_log_folder():
    """Name a folder for rcl's logs if the environment names none.

    rcl writes them below HOME and does not start without it; a service manager may set none.
    """
    if not any(os.environ.get(name) for name in ("HOME", "ROS_HOME", "ROS_LOG_DIR")):
        os.environ["ROS_HOME"] = os.path.expanduser("~/.ros")


def _started_script():
    # perhaps by a link to it, or to .venv
    return os.path.realpath(sys.orig_argv[1]) if len(sys.orig_argv) > 1 else ""


def _own(*parts):
    return os.path.realpath(os.path.join(sys.prefix, *parts))


def _is_node():
    return os.path.dirname(_started_script()) == _own("lib", "rfly_suite")


def _is_ours():
    return _is_node() or _started_script() == _own("bin", "rfly")


def _end_quietly(number, _frame):
    os._exit(0 if _is_node() else 128 + number)  # the status of `rfly` is a shell's


def _take_signals():
    import signal

    stops = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
    for number in stops:
        # nohup ignores SIGHUP, and it stays so
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, _end_quietly)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, stops)


def _main():
    if _is_ours():
        _take_signals()
    _name_log_folder()
    site_packages = os.path.dirname(os.path.abspath(__file__))
    if os.path.isdir(os.path.join(site_packages, "ros_wheels_bootstrapper")):
        _use_wheels(site_packages)
    else:
        _use_sourced_ros()


_main()
