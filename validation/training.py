"""Gradient descent on many nets at once, with the exact expected loss read off at every step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from .attention_layer import AttentionLayer, batch_loss, expected_loss
from .single_location_task import SingleLocationTask


@dataclass(frozen=True)
class Descent:
    """Plain gradient descent.

    Arguments:

    - `lr`: learning rate; t = lr × steps.
    - `batch`: fresh sequences per step, or 0 to descend the exact expected loss.
    """

    lr: float
    batch: int

    @property
    def dtype(self):
        """float64 where a step is exact, float32 where sampling noise drowns rounding."""
        return jnp.float32 if self.batch else jnp.float64


def initial_nets(
    task: SingleLocationTask, seeds: np.ndarray, weight_scale: float, dtype
) -> tuple[AttentionLayer, Float[Array, "seeds d d"], Key[Array, " seeds"]]:
    """Each seed's layer, target map and data key.

    A seed's draws depend on the task and the seed alone, not on what else is trained. W has
    entries of standard deviation weight_scale/√d; the scores start at 0.
    """
    T, d, B = task.sequence_length, task.dimension, task.repetition

    def one(seed):
        key = jax.random.key(seed)
        for number in (T, d, B):
            key = jax.random.fold_in(key, number)
        target_key, weight_key, data_key = jax.random.split(key, 3)
        target = task.target_map(target_key, dtype)
        weight = weight_scale * task.target_map(weight_key, dtype)
        return AttentionLayer(weight.astype(dtype), jnp.zeros(T, dtype)), target, data_key

    return jax.vmap(one)(jnp.asarray(seeds))


def train(
    task: SingleLocationTask,
    descent: Descent,
    layers: AttentionLayer,
    targets: Float[Array, "seeds d d"],
    keys: Key[Array, " seeds"],
    *,
    ratio: float,
    max_steps: int,
    chunk: int = 128,
    progress: Callable[[int], None] = lambda steps: None,
) -> Float[np.ndarray, "seeds steps"]:
    """Train until every seed's expected loss is below ratio × its initial value, or the budget.

    Arguments:

    - `layers`, `targets`, `keys`: as `initial_nets` returns them, one leading axis over seeds.
    - `max_steps`: the budget.
    - `chunk`: steps per compiled call; training stops between two of them.
    - `progress`: called with the steps done after each.

    Returns the expected loss before training and after each step.
    """
    losses = [np.asarray(jax.vmap(partial(expected_loss, task=task))(layers, targets))[:, None]]
    level = ratio * losses[0][:, 0]
    run = _compiled(task, descent)
    done = 0
    while done < max_steps and not (losses[-1].min(axis=1) <= level).all():
        steps = jnp.arange(done, done + min(chunk, max_steps - done))
        layers, new = run(layers, targets, keys, steps)
        losses.append(np.asarray(new))
        done += len(steps)
        progress(done)
    return np.concatenate(losses, axis=1)


@cache
def _compiled(task: SingleLocationTask, descent: Descent):
    """A chunk of training for all seeds: one scan, vmapped."""

    def loss(layer, target, key):
        if not descent.batch:
            return expected_loss(layer, target, task)
        tokens = task.tokens(key, descent.batch, descent.dtype)
        return batch_loss(layer, target, tokens, task)

    def chunk(layer, target, key, steps):
        def step(layer, number):
            gradient = jax.grad(loss)(layer, target, jax.random.fold_in(key, number))
            lr = jnp.asarray(descent.lr, descent.dtype)
            layer = jax.tree.map(lambda value, slope: value - lr * slope, layer, gradient)
            return layer, expected_loss(layer, target, task)

        return jax.lax.scan(step, layer, steps)

    return jax.jit(jax.vmap(chunk, in_axes=(0, 0, 0, None)))
