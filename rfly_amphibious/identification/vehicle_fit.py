"""Vehicle fit: all that a log says of a vehicle's parameters. The patent's paragraphs [0061] and [0093]."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import yaml

from rfly_amphibious.identification.flight_fit import fit_flight
from rfly_amphibious.identification.ground_fit import fit_mass, fit_rotor_lag, fit_struts
from rfly_amphibious.identification.regression import Estimated
from rfly_amphibious.identification.tyre_fit import TyreFit, fit_tyres, unchecked
from rfly_amphibious.identification.vehicle_log import Motion, VehicleLog, motion
from rfly_amphibious.vehicle.parameter_files import Change, checked_document, read_parameters
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_common.errors import ConfigError


@dataclass(frozen=True)
class VehicleFit:
    """What was found in a log, with standard deviations."""

    given: VehicleParameters
    """what was known before: geometry, wheels' masses and what is not found"""
    estimated: tuple[Estimated, ...]
    tyres: TyreFit | None
    motion: Motion
    notes: tuple[str, ...]
    """what could not be found, and why"""

    @property
    def changes(self) -> list[Change]:
        """Of the vehicle's file (`VehicleParameters.load`): all that the log says more of than was known."""
        found = [e for e in self.estimated if e.key and e.excited]
        return [(tuple(e.key.split(".")), e.value) for e in found]


def fit_vehicle(log: VehicleLog, given: VehicleParameters, mass: float | None = None) -> VehicleFit:
    """Mass, thrust and torque constants, inertia, lags, struts and tyres.

    `given`: a vehicle about like it, whose geometry, wheels' masses and inertia it has. `mass` (kg): of the whole
    vehicle, weighed; None: the log's wheel loads say it. Raises ConfigError where neither does.
    """
    notes = list(log.notes)
    whole = (
        Estimated("mass, whole", "kg", mass, 0.0, given.mass)
        if mass is not None
        else fit_mass(given, motion(log, given))
    )
    body = whole.value - given.mass_rotor_frame - 4.0 * given.mass_unsprung
    if body <= 0.0:
        raise ConfigError(f"mass of {whole.value:.3g} kg: no more than the wheels and rotors of {given.name}")
    params = given.replace(mass_body=body)
    now = motion(log, params)
    found = [whole, Estimated("of it, body", "kg", body, whole.sigma, given.mass_body, "mass.body_kg")]
    struts = [] if np.isnan(now.load[:, 0]).any() else fit_struts(params, now)
    found += struts
    if not struts:
        notes.append("struts: it does not bounce on them with its wheels at rest, or there are no wheel_loads")
    lag = fit_rotor_lag(params, log, now)
    found += lag
    if not lag:
        notes.append("rotors' lag: no cmd/rotors with speeds that change")
    tyres = fit_tyres(params, now)
    if tyres is None:
        notes.append(
            "tyres and I_zz: not enough driving above 3 m/s with wheel_loads; I_zz, c_M and J_r: only their ratios show"
        )
    else:
        found += tyres.estimated
        params = unchecked(params, inertia=tyres.params.inertia)
    try:
        found += _of_flight(params, now, found)
    except ConfigError as error:
        notes.append(f"rotors, I_xx and I_yy: {error}")
    for name in [e.name for e in found if not e.excited and e.key]:
        notes.append(f"{name}: the log says little of it")
    return VehicleFit(given, tuple(found), tyres, now, tuple(notes))


def _of_flight(params: VehicleParameters, now: Motion, found: list[Estimated]) -> list[Estimated]:
    """Of the flight, as uncertain as mass and inertia in yaw make it."""
    shares = {e.name: e.sigma / abs(e.value) for e in found if e.name in ("mass, whole", "I_zz")}
    by_mass, by_yaw = shares.get("mass, whole", 0.0), shares.get("I_zz", 1.0)
    made = []
    for e in fit_flight(params, now):
        share = by_yaw if e.name.startswith(("c_M", "J_r", "figure")) else by_mass
        made.append(e._replace(sigma=float(np.hypot(e.sigma, share * e.value))))
    return made


def fitted_document(vehicle: str, fit: VehicleFit, log: str) -> str:
    """A vehicle's file (YAML): that of `vehicle` with the changes of the fit."""
    data, file, _ = read_parameters("vehicle parameters", "vehicles", vehicle)
    changes = [(path, float(f"{value:.6g}")) for path, value in fit.changes]
    document = checked_document(data, file, VehicleParameters.schema(), "version, mass, inertia", changes)
    VehicleParameters.load(vehicle, changes)  # what contradicts itself is refused here, with its key
    return f"# As {vehicle}, with what {log} says.\n" + yaml.safe_dump(document.value, sort_keys=False)
