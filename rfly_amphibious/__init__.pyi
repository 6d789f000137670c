# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

from rfly_amphibious.description.urdf import vehicle_urdf as vehicle_urdf
from rfly_amphibious.dynamics.model import AmphibiousModel as AmphibiousModel
from rfly_amphibious.dynamics.model import Controls as Controls
from rfly_amphibious.dynamics.model import ModelState as ModelState
from rfly_amphibious.dynamics.model import Outputs as Outputs
from rfly_amphibious.dynamics.model import Run as Run
from rfly_amphibious.dynamics.suspension_modes import SuspensionMode as SuspensionMode
from rfly_amphibious.dynamics.suspension_modes import suspension_modes as suspension_modes
from rfly_amphibious.dynamics.trim import steady_flight as steady_flight
from rfly_amphibious.dynamics.wind import Wind as Wind
from rfly_amphibious.scenarios.scenario import Scenario as Scenario
from rfly_amphibious.scenarios.scenario import shipped_scenarios as shipped_scenarios
from rfly_amphibious.sensors.noise import NoiseModel as NoiseModel
from rfly_amphibious.sensors.noise import NoiseSource as NoiseSource
from rfly_amphibious.sensors.range_sensors import COLOR_CAMERA as COLOR_CAMERA
from rfly_amphibious.sensors.range_sensors import DEPTH_CAMERA as DEPTH_CAMERA
from rfly_amphibious.sensors.range_sensors import LIDAR as LIDAR
from rfly_amphibious.sensors.range_sensors import RangeSensors as RangeSensors
from rfly_amphibious.sensors.sensor_parameters import SensorParameters as SensorParameters
from rfly_amphibious.sensors.sensor_suite import SensorSuite as SensorSuite
from rfly_amphibious.sensors.sensor_suite import WheelOdometry as WheelOdometry
from rfly_amphibious.simulation.commands import Mode as Mode
from rfly_amphibious.simulation.commands import RotorCommand as RotorCommand
from rfly_amphibious.simulation.commands import WheelCommand as WheelCommand
from rfly_amphibious.simulation.events import Gust as Gust
from rfly_amphibious.simulation.events import RotorFails as RotorFails
from rfly_amphibious.simulation.events import SensorOff as SensorOff
from rfly_amphibious.simulation.faults import Fault as Fault
from rfly_amphibious.simulation.faults import FaultKind as FaultKind
from rfly_amphibious.simulation.simulation import Simulation as Simulation
from rfly_amphibious.vehicle import state_layout as state_layout
from rfly_amphibious.vehicle.parameters import VehicleParameters as VehicleParameters
from rfly_terrain.world.weather import Weather as Weather
