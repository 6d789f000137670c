"""Read at every start of .venv's Python (through _rfly_suite.pth): lets ROS find its libraries and
this package.

The dynamic loader has to know their folders before Python starts, so the variables are set and
Python executes itself once. `ros_wheels_bootstrapper`, one of the ROS wheels, does that too, but
takes over what a shell that once sourced a ROS left behind, and trusts a mark inherited from
another virtual environment; this comes first, and the bootstrapper then finds its mark.

For the executables of nodes and `rfly` SIGINT, SIGTERM and SIGHUP end the process from here on
(later `rfly_common/startup.py` takes over): they are blocked while Python executes itself, so that
none is met by a default handler.

Standard library only, and as little of it as possible: every start pays for it.
"""

import os
import sys

_MARK = "_RFLY_SUITE_ENVIRONMENT"  # process id that has executed itself already
_BOOTSTRAPPER_MARK = "_ROS_WHEELS_BOOTSTRAP_COMPLETE"


def _entries(name, is_foreign_ros=None):
    """The folders in a path variable, without those of a ROS outside this virtual environment."""
    inside = sys.prefix + os.sep
    return [
        folder
        for folder in os.environ.get(name, "").split(os.pathsep)
        if folder
        and not (is_foreign_ros and not folder.startswith(inside) and is_foreign_ros(folder))
    ]


def _put_first(name, own, others):
    os.environ[name] = os.pathsep.join(own + [folder for folder in others if folder not in own])


def _has_ros_libraries(folder):
    return os.path.exists(os.path.join(folder, "librcl.so")) or (
        os.path.basename(folder).startswith("ros_") and folder.endswith(".libs")
    )


def _has_rclpy(folder):
    return os.path.exists(os.path.join(folder, "rclpy"))


def _is_ros_prefix(folder):
    return os.path.exists(os.path.join(folder, "share", "rclpy"))


def _use_wheels(site_packages):
    """The wheels are the only ROS here: no folder, middleware or mark of another one may reach
    them.
    """
    if os.environ.get("RMW_IMPLEMENTATION", "rmw_fastrtps_cpp") != "rmw_fastrtps_cpp":
        del os.environ["RMW_IMPLEMENTATION"]  # the wheels have no other
    sys.path[:] = [
        folder
        for folder in sys.path
        if folder.startswith(sys.prefix + os.sep) or not _has_rclpy(folder)
    ]
    _put_first("AMENT_PREFIX_PATH", [sys.prefix], _entries("AMENT_PREFIX_PATH", _is_ros_prefix))
    bundled = [
        name
        for name in sorted(os.listdir(site_packages))
        if name.startswith("ros_") and name.endswith(".libs")
    ]
    os.environ[_BOOTSTRAPPER_MARK] = "1"
    own = [
        os.path.join(sys.prefix, "lib"),
        *(os.path.join(site_packages, name) for name in bundled),
    ]
    _load_libraries_from(own, _entries("LD_LIBRARY_PATH", _has_ros_libraries))


def _use_sourced_ros():
    _put_first("AMENT_PREFIX_PATH", [sys.prefix], _entries("AMENT_PREFIX_PATH"))
    _load_libraries_from([os.path.join(sys.prefix, "lib")], _entries("LD_LIBRARY_PATH"))


def _load_libraries_from(own, others):
    """The dynamic loader reads its variable when a program starts only."""
    if all(folder in others for folder in own) or os.environ.get(_MARK) == str(os.getpid()):
        return
    _put_first("LD_LIBRARY_PATH", own, others)
    os.environ[_MARK] = str(os.getpid())
    if _is_ours():
        import signal

        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM, signal.SIGHUP})
    os.execve(sys.executable, sys.orig_argv, os.environ)


def _name_log_folder():
    """rcl writes its logs below HOME and does not start without it; a service manager may have set
    none.
    """
    if not any(os.environ.get(name) for name in ("HOME", "ROS_HOME", "ROS_LOG_DIR")):
        os.environ["ROS_HOME"] = os.path.expanduser("~/.ros")


def _started_script():
    return (
        os.path.realpath(sys.orig_argv[1]) if len(sys.orig_argv) > 1 else ""
    )  # perhaps by a link to it, or to .venv


def _own(*parts):
    return os.path.realpath(os.path.join(sys.prefix, *parts))


def _is_node():
    return os.path.dirname(_started_script()) == _own("lib", "rfly_suite")


def _is_ours():
    return _is_node() or _started_script() == _own("bin", "rfly")


def _end_quietly(number, _frame):
    os._exit(0 if _is_node() else 128 + number)  # rfly: as a shell would say


def _take_signals():
    import signal

    stops = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
    for number in stops:
        if (
            number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN
        ):  # nohup sets that one aside
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
