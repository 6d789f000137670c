# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

from rfly_lab.identification.regression import Estimated as Estimated
from rfly_lab.identification.vehicle_fit import VehicleFit as VehicleFit
from rfly_lab.identification.vehicle_fit import fit_vehicle as fit_vehicle
from rfly_lab.identification.vehicle_log import VehicleLog as VehicleLog
from rfly_lab.identification.vehicle_log import read_log as read_log
from rfly_lab.learning.land_air_batch import LandAirBatch as LandAirBatch
from rfly_lab.learning.policy import Policy as Policy
from rfly_lab.learning.policy import PolicyFacts as PolicyFacts
from rfly_lab.learning.policy import shipped_policy as shipped_policy
from rfly_lab.learning.policy_export import write_policy as write_policy
from rfly_lab.learning.policy_flight import PolicyFlight as PolicyFlight
from rfly_lab.learning.policy_flight import fly_policy as fly_policy
from rfly_lab.learning.policy_flight import try_policy as try_policy
from rfly_lab.learning.registration import as_stable_baselines as as_stable_baselines
from rfly_lab.learning.registration import parallel_env as parallel_env
from rfly_lab.learning.registration import register_environments as register_environments
from rfly_lab.learning.tasks import Ending as Ending
from rfly_lab.replay.recording import Recording as Recording
from rfly_lab.replay.recording import read_recording as read_recording
from rfly_lab.replay.replay import Replay as Replay
from rfly_lab.replay.replay import replay_recording as replay_recording
from rfly_lab.replay.topic_map import TopicMap as TopicMap
from rfly_lab.runs.closed_loop import ClosedLoopRun as ClosedLoopRun
from rfly_lab.runs.closed_loop import run_closed_loop as run_closed_loop
from rfly_lab.runs.plot import draw_run as draw_run
from rfly_lab.runs.run import ScenarioRun as ScenarioRun
from rfly_lab.runs.run import run_scenario as run_scenario
from rfly_lab.runs.sweep import Sweep as Sweep
from rfly_lab.runs.sweep import Variation as Variation
from rfly_lab.runs.sweep import run_sweep as run_sweep
