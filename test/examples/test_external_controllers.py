"""The example controllers fly and drive the vehicle in processes of their own, in lock-step."""

from __future__ import annotations

import functools
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from rfly_amphibious import AmphibiousModel, SensorParameters, VehicleParameters, state_layout
from rfly_amphibious.commands import RotorCommand
from rfly_amphibious.estimate import Estimate
from rfly_amphibious.link_session import LinkSession, LockStep
from rfly_amphibious.link_transport import TcpTransport, UdpTransport
from rfly_amphibious.perception import Perception
from rfly_amphibious.simulation import Simulation

EXAMPLES = Path(__file__).parents[2] / "examples"
SCALE = VehicleParameters.load("scale")
PHASES = ["drive", "takeoff", "hover", "land", "rest", "done"]


def start(script, *options):
    """Nothing of this package is on the path of the process."""
    code = f"import sys, runpy; sys.path.insert(0, {str(EXAMPLES)!r}); sys.argv = {[script, *map(str, options)]!r}; "
    code += f"runpy.run_path({str(EXAMPLES / script)!r}, run_name='__main__')\n"
    code += "assert not [name for name in sys.modules if name.startswith(('rfly_', 'rclpy', 'numpy'))]"
    command = [sys.executable, "-c", code]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def phases(output):
    """{phase: (time, x, y, z)} of what an example prints."""
    found = re.findall(r"([\d.]+) s +(\w+) +at +(\S+) +(\S+) +(\S+) m", output)
    return {phase: tuple(map(float, (time_s, *place))) for time_s, phase, *place in found}


def check_the_flight(output):
    """Drove about three metres, hovered 1.5 m up, came down where it rose."""
    reached = phases(output)
    assert list(reached) == PHASES
    assert 2.8 < reached["takeoff"][1] - reached["drive"][1] < 3.5
    rise = reached["land"][3] - reached["takeoff"][3]
    assert 1.3 < rise < 1.7
    assert abs(reached["done"][3] - reached["takeoff"][3]) < 0.02
    assert np.hypot(*np.subtract(reached["done"][1:3], reached["takeoff"][1:3])) < 0.3


class Plant:
    """The simulation without ROS, whose every tick waits for the controller behind a link."""

    def __init__(self, connect):
        self.arrived = threading.Event()
        self.simulation = Simulation(AmphibiousModel(SCALE), SensorParameters.load("scale"), seed=7)
        self.session = LinkSession(SCALE, connect, self.arrived.set)
        self.perception, self.step = Perception(SCALE), LockStep()

    def run(self, process, at=None, event=None):
        """Until the process ends; `event()` is called once, at a simulated time."""
        simulation, session = self.simulation, self.session
        while session.supplies != 3:
            time.sleep(0.005)
            assert process.poll() is None, process.communicate()
        while True:
            if at is not None and simulation.time >= at:
                at = event()
            samples = simulation.tick()
            self._perceive(samples)
            self.step.ask(simulation.time)
            while not self.step.complete(3):
                session.send(self.perception.report(simulation.time), lock_step=True)
                if not self._take() and process.poll() is not None:
                    return process.communicate()[0]

    def _take(self):
        """Commands until the tick is answered; False after half a second without any."""
        while self.arrived.wait(0.5):
            self.arrived.clear()
            for command in self.session.commands():
                if self.step.takes(command):
                    rotors = isinstance(command, RotorCommand)
                    (self.simulation.command_rotors if rotors else self.simulation.command_wheels)(command)
            if self.step.complete(3):
                return True
        return False

    def _perceive(self, samples):
        x, at = self.simulation.state.x, state_layout
        parts = [x[first : first + size].copy() for first, size in ((at.POSITION, 3), (at.QUATERNION, 4))]
        parts += [x[first : first + 3].copy() for first in (at.VELOCITY, at.RATES)]
        self.perception.take_pose(Estimate(self.simulation.time, *parts))
        self.perception.take_imu(samples.imu)
        if samples.joints is not None:
            self.perception.take_joints(samples.joints)


def udp(handler):
    return UdpTransport("127.0.0.1", 0, "127.0.0.1", 0, handler)


def tcp(handler):
    return TcpTransport("127.0.0.1", 0, handler)


@pytest.mark.slow
def test_the_same_flight_by_udp_and_by_tcp_with_a_stop():
    """Bit by bit, though the second controller is stopped in flight for a second, and simulated time with it."""
    plants, outputs, stands = [], [], []
    for connect, option, stop_at in ((udp, "--udp", None), (tcp, "--tcp", 9.0)):
        plant = Plant(connect)
        with plant.session:
            process = start("external_controller_udp_tcp.py", option, "--port", plant.session.port, "--own-port", 0)
            stop = functools.partial(stop_for_a_second, process, plant.simulation, stands)
            begin = time.monotonic()
            output = plant.run(process, stop_at, stop)
            took = time.monotonic() - begin
        check_the_flight(output)
        assert plant.simulation.time / took > 1.0, f"{plant.simulation.time:.1f} s took {took:.1f} s"
        assert not plant.simulation.failsafe
        outputs.append(phases(output))
        plants.append((plant.simulation.time, plant.simulation.state.x.tobytes()))
    assert stands == [0.0]
    assert plants[0] == plants[1]
    assert outputs[0] == outputs[1]


def stop_for_a_second(process, simulation, stands):
    """Stops a process; `stands` gets the simulated time that went by while it was stopped."""
    process.send_signal(signal.SIGSTOP)

    def watch():
        time.sleep(0.3)  # what it had sent before is taken in
        stood = simulation.time
        time.sleep(0.7)
        stands.append(simulation.time - stood)
        process.send_signal(signal.SIGCONT)

    threading.Thread(target=watch).start()
