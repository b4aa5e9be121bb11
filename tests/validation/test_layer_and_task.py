import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dynamics import InputError
from validation import (
    AttentionLayer,
    Descent,
    SingleLocationTask,
    batch_loss,
    expected_loss,
    initial_nets,
    initial_overlap,
    train,
)

TASK = SingleLocationTask(12, 5, 3)


def random_net(seed=0):
    """A layer and a target map."""
    random = np.random.default_rng(seed)
    weight, target = jnp.asarray(random.normal(size=(2, 5, 5)))
    return AttentionLayer(weight, jnp.asarray(random.normal(size=12))), target


def trained(seeds, **options):
    descent = Descent(1.0, 8)
    nets = initial_nets(TASK, np.asarray(seeds), 0.5, descent.dtype)
    return train(TASK, descent, *nets, ratio=1e-9, max_steps=30, **options)


def test_the_layer_is_the_papers():
    """Against the sum over all T tokens, copies written out, in numpy."""
    layer, target = random_net()
    distinct = np.asarray(TASK.tokens(jax.random.key(1), 7, jnp.float64))
    tokens = np.concatenate([distinct, np.repeat(distinct[:, -1:], 2, axis=1)], axis=1)
    assert tokens.shape == (7, 12, 5)
    attention = np.exp(layer.scores) / np.exp(layer.scores).sum()
    answer = np.einsum("ij,t,btj->bi", layer.weight, attention, tokens)
    error = answer - tokens[:, -1] @ np.asarray(target).T
    np.testing.assert_allclose(
        batch_loss(layer, target, distinct, TASK), (error**2).sum(1).mean() / 2, rtol=1e-12
    )


def test_the_expected_loss_is_the_mean_over_fresh_data():
    layer, target = random_net()
    losses = [
        float(batch_loss(layer, target, TASK.tokens(key, 4096, jnp.float64), TASK))
        for key in jax.random.split(jax.random.key(0), 40)
    ]
    error = np.std(losses, ddof=1) / np.sqrt(len(losses))
    exact = float(expected_loss(layer, target, TASK))
    assert error < exact / 300
    assert abs(np.mean(losses) - exact) < 4 * error


def test_gradients_agree_with_finite_differences():
    layer, target = random_net()
    gradient = jax.grad(expected_loss)(layer, target, TASK)
    direction, _ = random_net(3)

    def at(step):
        moved = jax.tree.map(lambda value, d: value + step * d, layer, direction)
        return float(expected_loss(moved, target, TASK))

    slope = sum(jax.tree.leaves(jax.tree.map(lambda g, d: jnp.sum(g * d), gradient, direction)))
    np.testing.assert_allclose((at(1e-5) - at(-1e-5)) / 2e-5, slope, rtol=1e-8)


def test_the_overlap_splits_the_weight():
    layer, target = random_net()
    overlap = initial_overlap(layer, target)
    np.testing.assert_allclose(overlap["M"] ** 2, jnp.sum(target**2))
    np.testing.assert_allclose(overlap["w0"] ** 2 + overlap["r0"] ** 2, jnp.sum(layer.weight**2))
    aligned = initial_overlap(AttentionLayer(target, layer.scores), target)
    np.testing.assert_allclose(aligned["r0"], 0, atol=1e-14)


def test_target_maps_have_the_stated_scale():
    keys = jax.random.split(jax.random.key(0), 4000)
    maps = jax.vmap(lambda key: TASK.target_map(key, jnp.float64))(keys)
    np.testing.assert_allclose(np.var(maps), 1 / 5, rtol=0.03)
    tokens = TASK.tokens(jax.random.key(0), 4000, jnp.float64)
    assert tokens.shape == (4000, 10, 5)
    np.testing.assert_allclose(np.var(tokens), 1 / 5, rtol=0.03)


def test_full_batch_descent_is_what_a_loop_by_hand_does():
    descent = Descent(0.3, 0)
    nets = initial_nets(TASK, np.arange(2), 1.0, descent.dtype)
    losses = train(TASK, descent, *nets, ratio=1e-9, max_steps=20, chunk=7)
    assert losses.shape == (2, 21) and losses.dtype == np.float64
    layer = jax.tree.map(lambda leaf: leaf[1], nets[0])
    for step in range(21):
        value, gradient = jax.value_and_grad(expected_loss)(layer, nets[1][1], TASK)
        np.testing.assert_allclose(losses[1, step], value, rtol=1e-12)
        layer = jax.tree.map(lambda p, g: p - 0.3 * g, layer, gradient)


def test_a_nets_draws_depend_on_its_seed_alone():
    many, one = trained([0, 1, 2, 3]), trained([2], chunk=11)
    np.testing.assert_allclose(one[0], many[2], rtol=1e-4)
    assert np.abs(many[0] / many[1] - 1).max() > 0.01


def test_training_stops_when_all_have_emerged():
    descent = Descent(1.0, 0)
    nets = initial_nets(TASK, np.arange(3), 0.0, descent.dtype)
    losses = train(TASK, descent, *nets, ratio=0.2, max_steps=5000, chunk=10)
    assert (losses.min(axis=1) <= 0.2 * losses[:, 0]).all()
    assert losses.shape[1] < 500 and (losses[:, -11].min() > 0.2 * losses[:, 0].min())


@pytest.mark.parametrize("sizes", [(1, 4, 1), (8, 0, 1), (8, 4, 0), (8, 4, 8), (8, 4, 9)])
def test_impossible_tasks_are_named(sizes):
    with pytest.raises(InputError, match=f"T = {sizes[0]}"):
        SingleLocationTask(*sizes)
