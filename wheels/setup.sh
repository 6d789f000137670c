#!/bin/sh
# Makes .venv ready and, with arguments, runs a command in it:    sh wheels/setup.sh [--lib | --browser | --stations | --colcon | --peers | --docs ...] [command ...]
# This part only picks the Python; wheels/setup_env.py does the work.
set -eu
here=$(cd -- "$(dirname -- "$0")" && pwd)

stop() {
  printf 'rfly_suite: %s\n' "$*" >&2
  exit 2
}

# ROS_DISTRO alone is not enough: containers set it without sourcing anything.
ros_is_sourced() {
  [ -n "${ROS_DISTRO:-}" ] || return 1
  (
    IFS=:
    for prefix in ${AMENT_PREFIX_PATH:-}; do
      [ ! -f "$prefix/share/rclpy/package.xml" ] || exit 0
    done
    exit 1
  )
}

# Python 3.10 to 3.13: that is what both the ROS wheels and the libraries come for.
fits() {
  [ "$("$1" -E -s -c 'import sys; print((3, 10) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null)" = True ]
}

version() {
  "$1" -c 'import platform; print("Python " + platform.python_version())' 2>/dev/null || echo 'no Python'
}

if ros_is_sourced; then
  case $ROS_DISTRO in
    ardent | bouncy | crystal | dashing | eloquent | foxy | galactic | humble | iron)
      stop "ROS 2 $ROS_DISTRO is sourced, but Jazzy or newer is needed. Use a shell without it (or with Jazzy), then run the same command." ;;
  esac
  RFLY_ROS=sourced
  python=/usr/bin/python3
  [ -x "$python" ] || stop "ROS 2 $ROS_DISTRO is sourced, but its Python, $python, is missing: apt-get install python3"
else
  RFLY_ROS=wheels
  python=
  if [ -n "${PYTHON:-}" ]; then
    command -v "$PYTHON" >/dev/null 2>&1 || stop "PYTHON=$PYTHON is not a program."
    fits "$PYTHON" || stop "PYTHON=$PYTHON is $(version "$PYTHON"); Python 3.10, 3.11, 3.12 or 3.13 is needed."
    python=$PYTHON
  else
    for candidate in python3 python3.13 python3.12 python3.11 python3.10; do
      if command -v "$candidate" >/dev/null 2>&1 && fits "$candidate"; then
        python=$candidate
        break
      fi
    done
    if [ -z "$python" ]; then
      if command -v python3 >/dev/null 2>&1; then
        stop "python3 is $(version python3), and no other Python 3.10 to 3.13 is on PATH. Install one and name it: make env PYTHON=/path/to/python3.12"
      fi
      stop "no Python found; 3.10, 3.11, 3.12 or 3.13 is needed. On Debian or Ubuntu: apt-get install python3 python3-venv python3-dev gcc g++"
    fi
  fi
fi
export RFLY_ROS
# -E -s: a PYTHONPATH or user packages of a half-sourced shell must not reach the set-up itself.
# Ctrl-C waits until setup_env.py takes it: Python's own handler would print a trace.
block="env --block-signal=INT"
$block true 2>/dev/null || block=
exec $block "$python" -E -s "$here/setup_env.py" "$@"
