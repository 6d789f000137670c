# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Train a policy with PPO in minutes, write it as ONNX, and try it on seeds it never met.

    pip install ".[learn,plot,train]"
    python examples/train_policy.py --task hover --out hover.onnx --curve hover.png

docs/howto/train-a-policy.md explains it. All numbers below are meant to be changed.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np

try:
    import gymnasium
    import torch
    from stable_baselines3 import PPO
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.vec_env import VecMonitor, VecNormalize
except ImportError as error:
    raise SystemExit(f'{error}: pip install ".[learn,plot,train]" brings it') from None

from rfly_lab import (
    Ending,
    Policy,
    PolicyFacts,
    as_stable_baselines,
    register_environments,
    try_policy,
    write_policy,
)

ENVIRONMENTS = 256
STEPS = 64
"""Steps of each environment between two updates."""
DISTURBANCES = {"wind": 1.0, "gusts": 0.3, "spread": 0.05}
"""What makes the policy robust: wind up to 1 m/s, gusts, vehicles that differ by 5 %."""
UNSEEN = 1_000_000 + np.arange(100)
"""Seeds of the trial; training uses those from `--seed` on."""


class Curve(BaseCallback):
    """Curve of the training: return and share of successes of the last 500 episodes."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[tuple[int, float, float]] = []
        """Steps, mean return and share of successes, at each update."""
        self._returns: list[float] = []
        self._solved: list[bool] = []
        self._began = time.monotonic()

    def _on_step(self) -> bool:
        for i in np.flatnonzero(self.locals["dones"]).tolist():
            info = self.locals["infos"][i]
            self._returns.append(float(info["episode"]["r"]))
            self._solved.append(info["ending"] == Ending.SUCCESS)
        return True

    def _on_rollout_end(self) -> None:
        if not self._returns:
            return
        self._returns = self._returns[-500:]
        self._solved = self._solved[-500:]
        row = (self.num_timesteps, float(np.mean(self._returns)), float(np.mean(self._solved)))
        self.rows.append(row)
        if len(self.rows) % 10 == 0:
            seconds = time.monotonic() - self._began
            print(
                f"{row[0]:>9,} steps, {seconds:4.0f} s: return {row[1]:7.1f}, "
                f"{100 * row[2]:3.0f} % solved",
                flush=True,
            )


def train(
    task: str, steps: int, seed: int, sensors: str | None = None
) -> tuple[Any, PolicyFacts, Curve]:
    """Train a policy, by a set of sensors or by the truth.

    Return PPO's model, the policy's facts and the curve.
    """
    register_environments()
    view = {} if sensors is None else {"observations": "sensors", "sensors": sensors}
    raw: Any = gymnasium.make_vec(
        "rfly/LandAir-v0",
        num_envs=ENVIRONMENTS,
        task=task,
        autoreset_mode="SameStep",
        **view,
        **DISTURBANCES,
    )
    envs = VecNormalize(VecMonitor(as_stable_baselines(raw)))
    torch.set_num_threads(1)  # the same sums in the same order
    model = PPO(
        "MlpPolicy",
        envs,
        n_steps=STEPS,
        batch_size=2048,
        n_epochs=8,
        learning_rate=lambda left: 2e-5 + 1e-3 * left,
        gamma=0.99,
        target_kl=0.03,
        policy_kwargs={"net_arch": [64, 64], "log_std_init": -1.0},
        seed=seed,
        device="cpu",
    )
    curve = Curve()
    model.learn(steps, callback=curve)
    return model, PolicyFacts.of(raw.batch), curve


def draw(curve: Curve, path: Path) -> None:
    """Draw the curve of a training."""
    from matplotlib.figure import Figure

    steps, returns, solved = np.array(curve.rows).T
    figure = Figure(figsize=(7.0, 3.5), layout="constrained")
    left = figure.subplots()
    left.plot(steps / 1e6, returns, color="tab:blue")
    left.set_xlabel("steps of environments, millions")
    left.set_ylabel("return of an episode", color="tab:blue")
    right = left.twinx()
    right.plot(steps / 1e6, 100.0 * solved, color="tab:orange")
    right.set_ylabel("solved while exploring, %", color="tab:orange")
    right.set_ylim(0.0, 102.0)
    left.grid(alpha=0.3)
    figure.savefig(path, dpi=120)


def main() -> None:
    """Train, write, draw and try."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--task", default="hover", help="hover, waypoints, hop or roof")
    parser.add_argument("--steps", type=int, default=2_000_000, help="of all environments")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--sensors", help="set of sensors to see by, such as scale_rtk; else truth")
    parser.add_argument("--out", type=Path, default=Path("policy.onnx"))
    parser.add_argument("--curve", type=Path, help="picture of the training")
    arguments = parser.parse_args()

    model, facts, curve = train(arguments.task, arguments.steps, arguments.seed, arguments.sensors)
    write_policy(arguments.out, model, facts)
    if arguments.curve is not None:
        draw(curve, arguments.curve)

    policy = Policy(arguments.out)
    for name, options in {"in still air": {}, "as trained": DISTURBANCES}.items():
        endings = try_policy(policy, UNSEEN, **options)
        print(f"{name}: {np.sum(endings == Ending.SUCCESS)} of {len(UNSEEN)} unseen seeds solved")


if __name__ == "__main__":
    main()
