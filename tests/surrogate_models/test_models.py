"""Each reduction against the full parameters, scipy, finite differences and known figures."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sympy as sp
from scipy.integrate import solve_ivp

from dynamics import InputError, first_passage, is_zero, reduce, solve
from surrogate_models import (
    MODELS,
    attention_chain,
    cross_sample_repetition,
    model,
    predict,
    relaxed_cross_sample,
    relaxed_initialisation,
    single_location,
    single_location_shared,
    with_step_size,
)
from surrogate_models.expected_loss import B, M, T, alpha, d, w

# At loss ratio 0.2, as (T, d, B): plateau length with positional, with one shared score.
KNOWN = {
    (32, 16, 4): (104.795, 60.364),
    (64, 32, 8): (207.226, 91.046),
    (16, 8, 1): (71.844, None),
    (512, 64, 1): (5314.00, 5319.3),
}


@pytest.mark.parametrize("name", MODELS)
def test_reductions_are_proved(name):
    model(name).prove()
    with_step_size(model(name)).prove()


@pytest.mark.parametrize("name", MODELS)
def test_a_dropped_metric_is_found_out(name):
    """The flow that descends the reduced loss with metric 1 is another model's."""
    right = model(name)
    wrong = right.flow.substitute({})
    object.__setattr__(wrong, "metric", sp.ImmutableMatrix(sp.eye(len(wrong.state)) * 2))
    object.__setattr__(right, "flow", wrong)
    with pytest.raises(InputError, match="metric is not the induced one"):
        right.prove()


def test_positional_flow_in_the_printed_form():
    """ẇ and Δȧ as they follow by hand from the loss, with the factor T/(B(T − B))."""
    rates = single_location().flow.rhs
    by_hand = (
        B * alpha * (M - B * alpha * w) / d - (1 - B * alpha) ** 2 * w / (d * (T - B)),
        T / (B * (T - B)) * alpha * (1 - B * alpha)
        * (B * w * (M - B * alpha * w) / d + B * (1 - B * alpha) * w**2 / (d * (T - B))),
    )  # fmt: skip
    assert all(is_zero(rate - hand) for rate, hand in zip(rates, by_hand, strict=True))


@pytest.mark.parametrize("setting", KNOWN)
def test_known_plateau_lengths(setting):
    at = dict(zip("TdB", setting, strict=True))
    for build, figure in zip(
        (single_location, single_location_shared), KNOWN[setting], strict=True
    ):
        if figure is not None:
            time = predict(build(), at).passages.time
            assert abs(time - figure) < 0.5 * 10 ** -(len(str(figure).split(".")[1]))


def _full_flow(setting, weight, target, shared):
    """(W, a) of the layer under gradient flow on its exact loss, all parameters, by scipy."""
    length, dimension, copies = setting
    others = length - copies

    def loss(theta):
        W, a = theta[: dimension**2].reshape(dimension, dimension), theta[dimension**2 :]
        scores = jnp.concatenate([jnp.zeros(others), jnp.repeat(a, copies)]) if shared else a
        attention = jax.nn.softmax(scores)
        noise = jnp.sum(attention[:others] ** 2) * jnp.sum(W**2)
        return (noise + jnp.sum((attention[others:].sum() * W - target) ** 2)) / (2 * dimension)

    gradient = jax.jit(jax.grad(loss))
    start = np.concatenate([weight.ravel(), np.zeros(1 if shared else length)])
    return start, lambda t, theta: -np.asarray(gradient(theta))


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_reduced_trajectories_are_those_of_all_parameters(seed, shared):
    """d² + T parameters beside three coordinates, from a random net, to 1e-7."""
    random = np.random.default_rng(seed)
    length, dimension = random.integers(8, 40), random.integers(2, 9)
    copies = random.integers(1, length // 2)
    target = random.normal(size=(dimension, dimension)) / np.sqrt(dimension)
    # The shared-score model starts from W = 0; the relaxed one from anywhere.
    weight = 0 * target if shared else random.normal(size=target.shape) / np.sqrt(dimension)
    norm = np.linalg.norm(target)
    along = np.sum(weight * target) / norm
    at = {"T": length, "d": dimension, "B": copies, "M": norm}
    if not shared:
        at |= {"w0": along, "r0": np.linalg.norm(weight - along * target / norm)}
    surrogate = single_location_shared() if shared else relaxed_initialisation()

    passage = predict(surrogate, at).passages
    times = np.linspace(0, 1.3, 14) * passage.time
    start, rate = _full_flow((length, dimension, copies), weight, target, shared)
    full = solve_ivp(
        rate, (0, times[-1]), start, method="DOP853", t_eval=times, rtol=1e-11, atol=1e-12
    ).y
    W = full[: dimension**2].reshape(dimension, dimension, -1)
    a = full[dimension**2 :]
    w_full = np.einsum("ijt,ij->t", W, target) / norm
    rest = W - w_full * target[..., None] / norm
    reduced = solve(surrogate.flow, times=times, at=surrogate.settings(at), rtol=1e-11, atol=1e-12)
    gap = a[0] if shared else a[-1] - a[0]
    np.testing.assert_allclose(reduced["w"], w_full, rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(reduced["Delta_a"], gap, rtol=1e-7, atol=1e-7)
    if not shared:
        np.testing.assert_allclose(reduced["r"], np.sqrt((rest**2).sum((0, 1))), atol=1e-7)


def test_cross_sample_trajectories_are_those_of_all_parameters():
    """Fresh and repeated tokens: W and all scores by scipy, beside the three coordinates."""
    random = np.random.default_rng(5)
    length, dimension, p = 13, 6, 0.3
    target = random.normal(size=(dimension, dimension))
    target /= np.linalg.norm(target, axis=0)
    moments = np.full(dimension, (1 - p) / dimension)
    moments[0] += p

    def loss(theta):
        W, a = theta[: dimension**2].reshape(dimension, dimension), theta[dimension**2 :]
        attention = jax.nn.softmax(a)
        noise = jnp.sum(attention[:-1] ** 2) * jnp.sum(W**2) / dimension
        columns = jnp.sum((attention[-1] * W - target) ** 2, axis=0)
        return (noise + jnp.sum(moments * columns)) / 2

    gradient = jax.jit(jax.grad(loss))
    surrogate = cross_sample_repetition()
    at = surrogate.settings({"T": length, "d": dimension, "p": p})
    times = np.linspace(0, 1.2, 13) * predict(surrogate, at).passages.time
    full = solve_ivp(
        lambda t, theta: -np.asarray(gradient(theta)),
        (0, times[-1]),
        np.zeros(dimension**2 + length),
        method="DOP853",
        t_eval=times,
        rtol=1e-11,
        atol=1e-12,
    ).y
    overlaps = np.einsum("ijt,ij->jt", full[: dimension**2].reshape(6, 6, -1), target)
    reduced = solve(surrogate.flow, times=times, at=at, rtol=1e-11, atol=1e-12)
    fresh = overlaps[1:].sum(0) / np.sqrt(dimension - 1)
    for name, exact in (
        ("w_rep", overlaps[0]),
        ("w", fresh),
        ("Delta_a", full[-1] - full[dimension**2]),
    ):
        np.testing.assert_allclose(reduced[name], exact, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("seed", range(2))
def test_relaxed_cross_sample_trajectories_are_those_of_all_parameters(seed):
    """The same from random weights and a random target: five coordinates."""
    random = np.random.default_rng(seed)
    length, dimension, p = 11, 5, 0.25
    target, weight = random.normal(size=(2, dimension, dimension)) / np.sqrt(dimension)
    moments = np.full(dimension, (1 - p) / dimension)
    moments[0] += p

    def loss(theta):
        W, a = theta[: dimension**2].reshape(dimension, dimension), theta[dimension**2 :]
        attention = jax.nn.softmax(a)
        noise = jnp.sum(attention[:-1] ** 2) * jnp.sum(W**2) / dimension
        return (noise + jnp.sum(moments * jnp.sum((attention[-1] * W - target) ** 2, axis=0))) / 2

    def parts(W):
        """Along and across the target, for the repeated token's column and for the others."""
        found = []
        for columns in (slice(0, 1), slice(1, None)):
            norm = np.linalg.norm(target[:, columns])
            along = np.einsum("ij...,ij->...", W[:, columns], target[:, columns]) / norm
            square = (W[:, columns] ** 2).sum((0, 1))
            found += [along, np.sqrt(square - along**2)]
        return found

    gradient = jax.jit(jax.grad(loss))
    surrogate = relaxed_cross_sample()
    w_rep0, r_rep0, w0, r0 = parts(weight)
    norms = {"M_rep": np.linalg.norm(target[:, 0]), "M": np.linalg.norm(target[:, 1:])}
    starts = {"w_rep0": w_rep0, "r_rep0": r_rep0, "w0": w0, "r0": r0}
    at = surrogate.settings({"T": length, "d": dimension, "p": p, **norms, **starts})
    times = np.linspace(0, 60, 7)
    full = solve_ivp(
        lambda t, theta: -np.asarray(gradient(theta)),
        (0, times[-1]),
        np.concatenate([weight.ravel(), np.zeros(length)]),
        method="DOP853",
        t_eval=times,
        rtol=1e-11,
        atol=1e-12,
    ).y
    reduced = solve(surrogate.flow, times=times, at=at, rtol=1e-11, atol=1e-12)
    exact = parts(full[: dimension**2].reshape(dimension, dimension, -1))
    for name, values in zip(("w_rep", "r_rep", "w", "r"), exact, strict=True):
        np.testing.assert_allclose(reduced[name], values, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(reduced["Delta_a"], full[-1] - full[dimension**2], atol=1e-7)


def test_without_repeated_tokens_cross_sample_is_single_location():
    """At p = 0 the columns of W* merge into one direction, and losses agree."""
    at = {"T": [32, 300], "d": [16, 50]}
    np.testing.assert_allclose(
        predict(cross_sample_repetition(), {**at, "p": 0}).passages.time,
        predict(single_location(), at).passages.time,
        rtol=3e-8,
    )
    np.testing.assert_allclose(
        predict(relaxed_cross_sample(), {**at, "p": 0.3}).passages.time,
        predict(cross_sample_repetition(), {**at, "p": 0.3}).passages.time,
        rtol=3e-8,
    )


def test_a_chain_is_k_scores_that_move_alike():
    """Three scores of their own, integrated by scipy, and a proof for explicit scores."""
    N = sp.Symbol("N", positive=True)
    scores = sp.symbols("a1:4", real=True)
    product = sp.prod([1 / (1 + (N - 1) * sp.exp(-a)) for a in scores])
    loss = (sp.sqrt(d) - w * product) ** 2 / (2 * d)
    a, setting = sp.Symbol("a", real=True), {N: 20, d: 9}
    explicit = reduce(
        loss, {w: w, **dict.fromkeys(scores, a)}, coordinates=(w, a), parameters=(N, d)
    )
    at = {"N": 20.0, "d": 9.0}
    lumped = predict(attention_chain(), {**at, "k": 3}).passages.time
    np.testing.assert_allclose(
        first_passage(explicit, loss_ratio=0.2, at=at).time, lumped, rtol=1e-7
    )
    rates = sp.lambdify(
        [w, *scores], [-sp.diff(loss, s).subs(setting) for s in (w, *scores)], "math"
    )
    value = sp.lambdify([w, *scores], loss.subs(setting), "math")

    def event(t, z):
        return value(*z) - 0.2 * value(0, 0, 0, 0)

    event.terminal = True
    full = solve_ivp(
        lambda t, z: rates(*z), (0, 1e6), [0.0] * 4, "LSODA", rtol=1e-10, atol=1e-12, events=event
    )
    np.testing.assert_allclose(full.t_events[0][0], lumped, rtol=1e-6)


def test_passages_agree_with_scipy_over_random_settings():
    """60 settings, T ≤ 1e5, d ≤ 1e4, against LSODA at rtol 1e-10."""
    random = np.random.default_rng(0)
    length = np.floor(10 ** random.uniform(0.7, 5, 60))
    at = {
        "T": length,
        "d": np.floor(10 ** random.uniform(0, 4, 60)),
        "B": np.floor(np.maximum(1, length ** random.uniform(0, 0.8, 60) / 2)),
    }
    surrogate = single_location()
    settings = surrogate.settings(at, integers=True)
    ours = predict(surrogate, at).passages
    assert ours.reached.all()
    symbols = [*surrogate.flow.state, *surrogate.flow.parameters]
    rhs = sp.lambdify(symbols, surrogate.flow.rhs, "math")
    loss = sp.lambdify(symbols, surrogate.flow.loss, "math")
    for lane in range(60):
        values = [float(v[lane]) for v in settings.values()]

        def event(t, z, values=values):
            return loss(*z, *values) - 0.2 * loss(0, 0, *values)

        event.terminal = True
        solution = solve_ivp(
            lambda t, z, values=values: rhs(*z, *values),
            (0, 10 * ours.time[lane]),
            [0.0, 0.0],
            method="LSODA",
            rtol=1e-10,
            atol=1e-12,
            events=event,
        )
        assert abs(ours.time[lane] / solution.t_events[0][0] - 1) < 1e-6


def test_derivatives_agree_with_central_differences():
    surrogate = single_location()
    at = {"T": np.array([20.0, 300, 5000]), "d": np.array([7.0, 90, 1000]), "B": [1, 4, 16]}
    slopes = predict(surrogate, at, derivatives=("T", "d")).passages.derivatives
    for name, slope in slopes.items():
        step = 1e-4 * at[name]
        up, down = (
            predict(surrogate, {**at, name: at[name] + sign * step}, rtol=1e-11, atol=1e-13)
            for sign in (1, -1)
        )
        # With M left to its default √d, d moves M too: differentiate along both.
        difference = (up.passages.time - down.passages.time) / (2 * step)
        if name == "d":
            with_norm = predict(surrogate, at, derivatives=("d", "M")).passages
            norm = np.sqrt(at["d"])
            slope = with_norm.derivatives["d"] + with_norm.derivatives["M"] / (2 * norm)
        np.testing.assert_allclose(slope, difference, rtol=1e-4)


def test_relaxed_model_contains_the_other():
    at = {"T": [32, 200], "d": [16, 5], "B": [4, 1], "M": [3.0, 4.0]}
    np.testing.assert_allclose(
        predict(relaxed_initialisation(), at).passages.time,
        predict(single_location(), at).passages.time,
        rtol=3e-8,
    )


def test_a_large_step_is_predicted_by_the_modified_flow():
    """Full-batch descent by hand, in numpy, at lr 2: the plain flow errs by more than 0.5%."""
    surrogate = with_step_size(single_location())
    at = {"T": 64, "d": 16, "B": 4, "lr": 2.0}
    flow = single_location().flow
    symbols = [*flow.state, *flow.parameters]
    rhs = sp.lambdify(symbols, flow.rhs, "math")
    loss = sp.lambdify(symbols, flow.loss, "math")
    values, z, curve = (64.0, 16.0, 4.0, 4.0), np.zeros(2), [0.5]
    while curve[-1] > 0.1:
        z = z + 2.0 * np.array(rhs(*z, *values))
        curve.append(loss(*z, *values))
    fraction = np.log(curve[-2] / 0.1) / np.log(curve[-2] / curve[-1])
    measured = 2.0 * (len(curve) - 2 + fraction)
    assert abs(predict(surrogate, at).passages.time / measured - 1) < 1e-3
    del at["lr"]
    assert abs(predict(single_location(), at).passages.time / measured - 1) > 5e-3


@pytest.mark.parametrize(
    ("at", "message"),
    [
        ({"d": 4}, r"T \(sequence length\) is missing"),
        ({"T": 1, "d": 4}, r"T \(sequence length\) is 1: give T ≥ 2"),
        ({"T": 8, "d": 0.5}, r"d \(token dimension\) is 0.5: give d ≥ 1"),
        ({"T": 8, "d": 4, "B": 8}, "B = 8, T = 8: give B < T"),
        ({"T": [16, 8], "d": 4, "B": 9}, "B = 9, T = 8: give B < T"),
        ({"T": np.nan, "d": 4}, "T .* is nan: give a finite number"),
        ({"T": 8, "d": 4, "M": 0}, "M .* is 0: give M > 0"),
        ({"T": 8, "d": 4, "q": 0}, "has no parameter q: it has T, d, B, M"),
        ({"T": [8, 9], "d": [4, 5, 6]}, "do not broadcast"),
    ],
)
def test_settings_outside_the_domain_are_named(at, message):
    with pytest.raises(InputError, match=message):
        single_location().settings(at)


def test_whole_numbers_are_asked_for_only_where_they_matter():
    assert single_location().settings({"T": 8.5, "d": 2})["M"] == np.sqrt(2)
    with pytest.raises(InputError, match="is 8.5: give a whole number"):
        single_location().settings({"T": 8.5, "d": 2}, integers=True)
    with pytest.raises(InputError, match="model 'x' is unknown: use one of single-location"):
        model("x")


def test_first_passage_takes_a_models_flow_directly():
    flow = single_location().flow
    times = first_passage(flow, loss_ratio=0.2, at={"T": 512, "d": 64, "B": 1, "M": 8})
    np.testing.assert_allclose(times.time, 5314.0, atol=0.01)
