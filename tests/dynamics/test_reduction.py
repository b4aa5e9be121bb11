import pytest
import sympy as sp

from dynamics import InputError, InvarianceError, Reduction, is_zero, reduce

u, v, z = sp.symbols("u v z", real=True)
n = sp.Symbol("n", positive=True)


def test_metric_counts_the_parameters_that_move_together():
    a = sp.symbols("a1:4", real=True)
    explicit = reduce(sum(x**4 for x in a), dict.fromkeys(a, z), coordinates=(z,))
    lumped = reduce(
        n * u**4, {u: z}, coordinates=(z,), multiplicity={u: n}, parameters=(n,)
    ).substitute({n: 3})
    assert explicit.metric == lumped.metric == sp.Matrix([[3]])
    assert explicit.rhs == lumped.rhs == (-4 * z**3,)


def test_metric_of_a_curved_embedding():
    """u = v = z²: u̇ = −u must come out as ż = −z/2."""
    flow = reduce((u**2 + v**2) / 2, {u: z**2, v: z**2}, coordinates=(z,))
    assert flow.metric == sp.Matrix([[8 * z**2]])
    assert sp.simplify(flow.rhs[0] + z / 2) == 0


def test_embeddings_that_the_flow_leaves_are_refused():
    with pytest.raises(InvarianceError, match="leaves the embedding along u, v"):
        reduce(u**2 + 2 * v**2, {u: z, v: z}, coordinates=(z,))
    with pytest.raises(InvarianceError, match="along v"):
        reduce(u**2 + v, {u: z, v: 0}, coordinates=(z,))
    with pytest.raises(InputError, match="multiplicity names v"):
        Reduction(u**2, {u: z}, (z,), {v: n})


def test_a_direction_that_the_loss_ignores_is_divided_out():
    """Two scores of a softmax: their difference flows twice as fast as either alone."""
    loss = 1 / (1 + sp.exp(v - u))
    both = reduce(loss, {u: z / 2, v: -z / 2}, coordinates=(z,))
    assert both.metric == sp.Matrix([[sp.Rational(1, 2)]])
    with pytest.raises(InvarianceError):
        reduce(loss, {u: z, v: 0}, coordinates=(z,))


@pytest.mark.parametrize(
    ("expression", "zero"),
    [
        (sp.exp(2 * u) * sp.exp(v) - sp.exp(u + v) * sp.exp(u), True),
        (sp.exp(u * (1 - 1 / n)) - sp.exp(u) / sp.exp(u / n), True),
        (1 / (1 + sp.exp(-u)) + 1 / (1 + sp.exp(u)) - 1, True),
        (sp.sqrt(n) ** 2 / n - 1, True),
        (sp.cos(u) ** 2 + sp.sin(u) ** 2 - 1, True),
        (sp.tanh(u) - sp.sinh(u) / sp.cosh(u), True),
        ((u + v) ** 2 - u**2 - v**2 - 2 * u * v, True),
        (sp.exp(u + v) - sp.exp(u) - sp.exp(v), False),
        (1 / (1 + sp.exp(-u)) + 1 / (1 + sp.exp(u)) - 1 - sp.Rational(1, 10**9) * u, False),
    ],
)
def test_zero_is_decided(expression, zero):
    assert is_zero(expression) is zero
