"""Heads as a factorisation: full size against reductions, laws against flows, two geometries."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sympy as sp
from scipy.integrate import solve_ivp

from dynamics import (
    GradientFlow,
    InputError,
    Reduction,
    Threshold,
    first_passage,
    grid,
    is_zero,
    solve,
    symbolic_function,
)
from surrogate_models import predict, tensor_factorisation
from surrogate_models.full_factorisation import factorisation_loss, factorisation_rates
from surrogate_models.tensor_factorisation import T, factorisation_flow

GEOMETRIES = ("logit", "replicator")


@pytest.mark.parametrize("geometry", GEOMETRIES)
@pytest.mark.parametrize(("heads", "features", "length"), [(1, 1, 2), (3, 2, 7), (2, 5, 4)])
def test_full_rates_are_the_gradients_of_the_loss(geometry, heads, features, length):
    """Against jax.grad in the scores, and in the simplex's own metric."""
    random = np.random.default_rng(0)
    values = jnp.array(random.normal(size=(heads, features)))
    scores = jnp.array(random.normal(size=(heads, length)))
    target = jnp.array(random.normal(size=(features, length)))
    by_value, by_score = jax.grad(factorisation_loss, (0, 1))(values, scores, target)
    value_rates, score_rates = factorisation_rates(values, scores, target, geometry)
    np.testing.assert_allclose(value_rates, -by_value, rtol=1e-12)
    s = jax.nn.softmax(scores, axis=1)
    # ṡ = J ȧ; the gradient in the scores is J times the one in s, whose natural flow drops a J.
    J = jnp.einsum("ht,tu->htu", s, jnp.eye(length)) - jnp.einsum("ht,hu->htu", s, s)
    if geometry == "logit":
        np.testing.assert_allclose(score_rates, -by_score, rtol=1e-10, atol=1e-14)
    else:
        moved = jnp.einsum("htu,hu->ht", J, score_rates)
        np.testing.assert_allclose(moved, -by_score, rtol=1e-10, atol=1e-14)
        np.testing.assert_allclose(score_rates.sum(1), 0, atol=1e-13)


def _full_symbolic(heads, blocks, length):
    """The full loss in every V and a, with J blocks, and the embedding of block coordinates."""
    patterns = len(blocks)
    V = sp.Matrix(heads, patterns, sp.symbols(f"v:{heads * patterns}", real=True))
    a = sp.Matrix(heads, length, sp.symbols(f"a:{heads * length}", real=True))
    m = sp.symbols(f"m1:{patterns + 1}", positive=True)
    of = [j for j, size in enumerate(blocks) for _ in range(size)]
    of += [patterns] * (length - len(of))
    target = sp.Matrix(patterns, length, lambda k, t: m[k] / blocks[k] if of[t] == k else sp.S.Zero)
    P = sp.zeros(patterns, length)
    for h in range(heads):
        total = sum(sp.exp(a[h, t]) for t in range(length))
        s = sp.Matrix(1, length, lambda _, t, h=h, total=total: sp.exp(a[h, t]) / total)
        P += V[h, :].T * s
    loss = sum(entry**2 for entry in target - P) / 2
    coordinates, embedding = [], {}
    for h in range(heads):
        for k in range(patterns):
            coordinates.append(sp.Symbol(f"V{h + 1}_{k + 1}", real=True))
            embedding[V[h, k]] = coordinates[-1]
    for h in range(heads):
        g = [sp.Symbol(f"g{h + 1}_{j + 1}", real=True) for j in range(patterns)]
        coordinates += g
        mean = sum(size * gap for size, gap in zip(blocks, g, strict=True)) / length
        for t in range(length):
            embedding[a[h, t]] = (g[of[t]] if of[t] < patterns else 0) - mean
    return loss, embedding, tuple(coordinates), m


@pytest.mark.parametrize(
    ("heads", "blocks", "length"), [(1, (1,), 3), (2, (2,), 4), (1, (1, 2), 5)]
)
def test_the_reduced_flow_is_the_full_one(heads, blocks, length):
    """Every V and score with a symbol of its own, reduced by proof, beside the lumped rates."""
    loss, embedding, coordinates, m = _full_symbolic(heads, blocks, length)
    reduction = Reduction(loss, embedding, coordinates)
    reduction.prove()
    lumped = factorisation_flow(heads, len(blocks), "logit")
    at = dict(
        zip(lumped.parameters, [sp.Integer(length), *m, *map(sp.Integer, blocks)], strict=True)
    )
    assert coordinates == lumped.state
    for full, rate in zip(reduction.flow(parameters=m).rhs, lumped.rhs, strict=True):
        assert is_zero(full - rate.subs(at))


def test_the_replicator_is_a_gradient_flow_in_root_coordinates():
    """s = x² on the sphere at four times the Euclidean metric: proved for each x on its own."""
    length, n = 3, 1
    V, m = sp.Symbol("V1_1", real=True), sp.Symbol("m1", positive=True)
    v = sp.Symbol("v", real=True)
    x = sp.symbols(f"x:{length}", positive=True)
    square = sum(entry**2 for entry in x)
    s = [entry**2 / square for entry in x]
    loss = ((m - v * s[0]) ** 2 + sum((v * rest) ** 2 for rest in s[1:])) / 2
    g = sp.Symbol("g1_1", real=True)
    norm = sp.sqrt(sp.exp(g) + length - n)
    embedding = {v: V, x[0]: sp.exp(g / 2) / norm, **{rest: 1 / norm for rest in x[1:]}}
    reduction = Reduction(loss, embedding, (V, g), dict.fromkeys(x, 4))
    reduction.prove()
    flow = GradientFlow(
        reduction.reduced_loss, metric=reduction.metric, state=(V, g), parameters=(m,)
    )
    lumped = factorisation_flow(1, 1, "replicator")
    at = {T: length, lumped.parameters[1]: m, lumped.parameters[2]: n}
    for full, rate in zip(flow.rhs, lumped.rhs, strict=True):
        assert is_zero(full - rate.subs(at))


@pytest.mark.parametrize("geometry", GEOMETRIES)
def test_reduced_trajectories_are_those_of_the_full_flow(geometry):
    """Three heads, three blocks, ten features of which seven are not in the target; by scipy."""
    heads, blocks, length, features = 3, (1, 3, 2), 9, 10
    m = np.array([4.0, 2.0, 1.0])
    target = np.zeros((features, length))
    start = 0
    for j, size in enumerate(blocks):
        target[j, start : start + size] = m[j] / size
        start += size
    random = np.random.default_rng(1)
    gaps, values = 0.3 * random.normal(size=(2, heads, 3))
    full_gaps = np.concatenate([np.repeat(gaps, blocks, axis=1), np.zeros((heads, 3))], axis=1)
    full_values = np.pad(values, ((0, 0), (0, features - 3)))

    @jax.jit
    def rates(z):
        V, a = z[: heads * features].reshape(heads, -1), z[heads * features :].reshape(heads, -1)
        return jnp.concatenate(
            [r.ravel() for r in factorisation_rates(V, a, jnp.array(target), geometry)]
        )

    times = np.array([1.0, 5.0, 20.0])
    z0 = np.concatenate([full_values.ravel(), full_gaps.ravel()])
    full = solve_ivp(
        lambda t, z: np.asarray(rates(z)), (0, 20), z0, "DOP853", times, rtol=1e-11, atol=1e-13
    ).y
    V = full[: heads * features].reshape(heads, features, -1)
    a = full[heads * features :].reshape(heads, length, -1)
    assert np.abs(V[:, 3:]).max() == 0

    flow = factorisation_flow(heads, 3, geometry)
    at = dict(zip(flow.names, [length, *m, *blocks], strict=True))
    initial = {f"V{h + 1}_{j + 1}": values[h, j] for h in range(heads) for j in range(3)}
    initial |= {f"g{h + 1}_{j + 1}": gaps[h, j] for h in range(heads) for j in range(3)}
    reduced = solve(flow, times=times, at=at, initial=initial, rtol=1e-11, atol=1e-13)
    assert reduced.succeeded.all()
    for h in range(heads):
        for j, position in enumerate((0, 1, 4)):
            np.testing.assert_allclose(reduced[f"V{h + 1}_{j + 1}"], V[h, j], atol=1e-8)
            gap = a[h, position] - a[h, -1]
            np.testing.assert_allclose(reduced[f"g{h + 1}_{j + 1}"], gap, atol=1e-7)
    losses = [
        factorisation_loss(V[..., i], a[..., i], jnp.array(target)) for i in range(len(times))
    ]
    np.testing.assert_allclose(reduced["loss"], losses, rtol=1e-8)


@pytest.mark.parametrize("geometry", GEOMETRIES)
def test_heads_that_start_alike_are_the_first_stage(geometry):
    """The general flow with three equal heads, beside one head of multiplicity three."""
    flow = factorisation_flow(3, 1, geometry)
    half = Threshold("residual1", ratio=0.5)
    at = {"T": [50.0, 400.0], "m1": 4.0, "n1": [1.0, 4.0]}
    many = first_passage(flow, half, at=at, rtol=1e-10, atol=1e-12)
    one = first_passage(
        tensor_factorisation(geometry).flow,
        Threshold("residual", ratio=0.5),
        at={"T": at["T"], "m": 4.0, "n": at["n1"], "H": 3, "V0": 0.0},
        rtol=1e-10,
        atol=1e-12,
    )
    assert many.reached.all()
    np.testing.assert_allclose(many.time, one.time, rtol=1e-8)


def _first_stage(geometry, **at):
    """Times at which half the pattern is learned, and the law's, whose loss is then a quarter."""
    surrogate = tensor_factorisation(geometry)
    settings = surrogate.settings(at)
    half = Threshold("residual", ratio=0.5)
    passages = first_passage(surrogate.flow, half, at=settings)
    assert passages.reached.all()
    return passages.time, surrogate.law_times(surrogate.laws[0], settings, 0.25)


def test_the_logit_law_of_the_first_stage():
    at = grid(T=[400, 1024, 4096], m=[2.89, 6.25, 12.5])
    for heads, most in ((1, 0.01), (3, 0.04)):
        time, law = _first_stage("logit", H=heads, **at)
        assert np.abs(law / time - 1).max() < most


def test_the_replicator_law_of_the_first_stage():
    at = grid(T=[64, 256, 400, 1024, 4096], m=[1, 2.89, 6.25, 12.5], H=[1, 3])
    time, law = _first_stage("replicator", **at)
    assert np.abs(law / time - 1).max() < 0.05
    strong = at["m"] > 6 * at["H"]
    assert np.abs(law / time - 1)[strong].max() < 0.001
    # Its leading term alone, π√(T/2)/m, is as far off as the late phase is long.
    leading = np.pi * np.sqrt(at["T"] / 2) / at["m"]
    assert np.abs(leading / time - 1).max() > 0.2


@pytest.mark.parametrize(("geometry", "exponent"), [("logit", 1.0), ("replicator", 0.5)])
def test_the_geometries_differ_in_their_power_of_T(geometry, exponent):
    """Local exponents at T = 4096, of flow and law."""
    lengths = np.array([4096 / 1.1, 4096 * 1.1])
    for strength in (6.25, 2.89):
        for times in _first_stage(geometry, T=lengths, m=strength):
            local = np.diff(np.log(times)) / np.diff(np.log(lengths))
            assert abs(local[0] - exponent) < 0.02


def test_a_value_below_the_root_never_turns():
    """Replicator flow from V0 below −√(2n/T): the law has no time, and the flow none either."""
    at = {"T": 100.0, "m": 8.0, "V0": [-0.1, -0.3]}
    prediction = predict(tensor_factorisation("replicator"), at, rho=0.25)
    assert np.isfinite(prediction.laws["started law"]).tolist() == [True, False]
    assert prediction.passages.reached.tolist() == [True, False]


def test_attention_may_become_certain():
    """Gaps of thousands, where e^g overflows: the rates' common factors are cancelled."""
    flow = tensor_factorisation("replicator").flow
    rates = symbolic_function(flow.rhs, flow.state + flow.parameters)
    value, gap = (np.asarray(rate) for rate in rates(10.0, 3000.0, 100.0, 16.0, 1.0, 1.0, 0.0))
    np.testing.assert_allclose([value, gap], [6.0, 60.0])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, 1, "logit"), "heads is 0: give a positive whole number"),
        ((1, 1.5, "logit"), "patterns is 1.5: give a positive whole number"),
        ((1, 1, "sphere"), "geometry is 'sphere': use one of logit, replicator"),
    ],
)
def test_bad_factorisations_are_named(arguments, message):
    with pytest.raises(InputError, match=message):
        factorisation_flow(*arguments)
    if arguments[2] == "sphere":
        with pytest.raises(InputError, match=message):
            factorisation_rates(jnp.ones((1, 1)), jnp.ones((1, 2)), jnp.ones((1, 2)), "sphere")
