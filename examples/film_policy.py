# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Film an episode of a trained policy in its environment, from behind the vehicle.

    pip install ".[learn]"
    python examples/film_policy.py hop.onnx --seed 1000003 --out hop.webp

The yellow ball is the target. The episode is that of the seed in the wind of examples/train_policy.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import gymnasium
from PIL import Image

from rfly_lab import Ending, Policy, register_environments

FRAME = 0.1
"""Time between two pictures, s; that of a policy whose period is longer is its period."""
DISTURBANCES = {"wind": 1.0, "gusts": 0.3, "spread": 0.05}
"""Those of the training."""


def fly(policy: Policy, seed: int) -> tuple[list[Image.Image], Ending]:
    """Return the pictures of an episode, a FRAME apart, and how it ends."""
    register_environments()
    options = {**policy.environment, **DISTURBANCES}
    env: Any = gymnasium.make("rfly/LandAir-v0", render_mode="rgb_array", **options)
    seen, info = env.reset(seed=seed)
    pictures = [Image.fromarray(env.render())]
    is_over = False
    steps = 0
    while not is_over:
        seen, _, terminated, truncated, info = env.step(policy.act(seen[None])[0])
        is_over = terminated or truncated
        steps += 1
        if is_over or steps * policy.facts.period >= len(pictures) * FRAME:
            pictures.append(Image.fromarray(env.render()))
    return pictures, Ending(info["ending"])


def main() -> None:
    """Fly and write the film."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("policy", type=Path, help="ONNX file")
    parser.add_argument("--seed", type=int, default=1_000_000)
    parser.add_argument("--out", type=Path, default=Path("policy.webp"), help=".webp or .gif")
    arguments = parser.parse_args()

    policy = Policy(arguments.policy)
    pictures, ending = fly(policy, arguments.seed)
    pictures[0].save(
        arguments.out,
        save_all=True,
        append_images=pictures[1:],
        duration=round(1000.0 * max(FRAME, policy.facts.period)),
        loop=0,
        quality=50,
    )
    size = arguments.out.stat().st_size / 1000.0
    print(f"{arguments.out}: {len(pictures)} pictures, {size:.0f} kB, {ending.name}")


if __name__ == "__main__":
    main()
