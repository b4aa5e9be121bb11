"""Systems whose equilibria are known: all found, all labelled rightly, degenerate ones named."""

import numpy as np
import pytest
import sympy as sp

from dynamics import GradientFlow, InputError, Kind, VectorField, classify, equilibria
from surrogate_models import single_location

x, y, z = sp.symbols("x y z", real=True)
r = sp.Symbol("r", real=True)
LINE = {"x": (-3, 3)}
PLANE = {"x": (-3, 3), "y": (-3, 3)}


def plane(*field):
    return VectorField(field, state=(x, y))


def line(field):
    return VectorField((field,), state=(x,), parameters=(r,))


PENDULUM = [((np.pi * k, 0), "centre of the linearisation" if k % 2 == 0 else "saddle")
            for k in (-2, -1, 0, 1, 2)]  # fmt: skip
KNOWN = {
    "pendulum": (plane(y, -sp.sin(x)), {"x": (-7, 7), "y": (-3, 3)}, {}, PENDULUM),
    "damped pendulum": (
        plane(y, -sp.sin(x) - y / 2), PLANE, {}, [((0, 0), "stable focus")],
    ),
    "Lotka–Volterra": (
        plane(x * (1 - y), y * (x - 1)),
        {"x": (-1, 3), "y": (-1, 3)},
        {},
        [((0, 0), "saddle"), ((1, 1), "centre of the linearisation")],
    ),
    "pitchfork": (
        line(r * x - x**3), LINE, {"r": 1},
        [((-1,), "stable node"), ((0,), "unstable node"), ((1,), "stable node")],
    ),
    "pitchfork at its point": (line(r * x - x**3), LINE, {"r": 0}, [((0,), "non-hyperbolic")]),
    "fold": (line(r - x**2), LINE, {"r": 1}, [((-1,), "unstable node"), ((1,), "stable node")]),
    "fold at its bifurcation": (line(r - x**2), LINE, {"r": 0}, [((0,), "non-hyperbolic")]),
    "fold just gone": (line(r - x**2), LINE, {"r": -1e-6}, []),
    "fold just there": (
        line(r - x**2), LINE, {"r": 1e-6}, [((-1e-3,), "unstable node"), ((1e-3,), "stable node")],
    ),
    "star": (plane(-x, -y), PLANE, {}, [((0, 0), "stable star node")]),
    "degenerate node": (plane(-x + y, -y), PLANE, {}, [((0, 0), "stable degenerate node")]),
    "unstable focus": (plane(x - y, x + y), PLANE, {}, [((0, 0), "unstable focus")]),
    "on the edges": (plane(x + 3, y - 3), PLANE, {}, [((-3, 3), "unstable star node")]),
    "cusp of two curves": (
        plane(y - x**2, y), PLANE, {}, [((0, 0), "non-hyperbolic")],
    ),
    "none": (plane(x**2 + 1, y), PLANE, {}, []),
}  # fmt: skip


@pytest.mark.parametrize("name", KNOWN)
def test_known_equilibria(name):
    system, box, at, expected = KNOWN[name]
    found = equilibria(system, box, at=at)
    assert found.complete and not found.sets and not len(found.undecided)
    assert len(found.points) == len(expected)
    for point, (position, kind) in zip(found.points, expected, strict=True):
        np.testing.assert_allclose(list(point.state.values()), position, atol=1e-6)
        assert point.kind == kind
        assert point.proved == (kind != "non-hyperbolic")
        there = {symbol: point.state[symbol.name] for symbol in system.state}
        jacobian = np.array(system.jacobian().subs({**there, r: at.get("r", 0)}), float)
        moved = jacobian @ point.eigenvectors
        np.testing.assert_allclose(moved, point.eigenvectors * point.eigenvalues, atol=1e-9)


def test_fitzhugh_nagumo():
    """One equilibrium, against the real roots of its cubic; it turns unstable with the current."""
    for current, kind in ((0.0, Kind.STABLE_FOCUS), (0.5, Kind.UNSTABLE_FOCUS)):
        system = plane(x - x**3 / 3 - y + current, (x + sp.Rational(7, 10) - 0.8 * y) * 0.08)
        (point,) = equilibria(system, PLANE).points
        roots = np.roots([-1 / 3, 0, 1 - 1 / 0.8, current - 0.7 / 0.8])
        (real,) = roots[np.abs(roots.imag) < 1e-9].real
        assert abs(point.state["x"] - real) < 1e-9 and point.kind is kind


def test_a_line_and_a_circle_of_equilibria_are_sets():
    found = equilibria(plane(x * (1 - y), 1 - y), PLANE)
    (whole,) = found.sets
    assert found.points == () and found.complete
    np.testing.assert_allclose(whole.points["y"], 1, atol=1e-12)
    assert whole.extent["x"] == (-3, 3)
    circle = x**2 + y**2 - 1
    found = equilibria(plane(-x * circle, -y * circle), PLANE)
    (origin,), (ring,) = found.points, found.sets
    assert origin.kind is Kind.UNSTABLE_STAR
    np.testing.assert_allclose(ring.points["x"] ** 2 + ring.points["y"] ** 2, 1, atol=1e-9)
    np.testing.assert_allclose(ring.extent["x"], (-1, 1), atol=0.02)


def test_the_minimum_at_infinite_attention():
    """The single-location flow ends at Δa → ∞, w = √d, and has no other equilibrium."""
    flow = single_location().flow
    at = {"T": 256, "d": 64, "B": 1, "M": 8}
    found = equilibria(flow, {"w": (-5, 30), "Delta_a": (-5, np.inf)}, at=at)
    (point,) = found.points
    assert point.state == {"w": pytest.approx(8, abs=1e-9), "Delta_a": np.inf}
    assert point.kind is Kind.STABLE_AT_INFINITY
    np.testing.assert_allclose(point.eigenvalues, [-1 / 64])
    # On the way there the rates fall below what intervals can tell from 0: that is said.
    assert not found.sets and len(found.undecided)
    assert (found.undecided[:, 1, 0] > 5).all() and (abs(found.undecided[:, 0] - 8) < 1).all()
    bounded = equilibria(flow, {"w": (-5, 30), "Delta_a": (-5, 5)}, at=at)
    assert bounded.points == () and bounded.complete and not len(bounded.undecided)


def test_a_limit_may_repel():
    found = equilibria(plane(-x, -sp.exp(-y)), {"x": (-1, 1), "y": (0, np.inf)})
    (point,) = found.points
    assert point.kind is Kind.UNSTABLE_AT_INFINITY and point.state == {"x": 0, "y": np.inf}
    alone = VectorField((sp.exp(-x),), state=(x,))
    (point,) = equilibria(alone, {"x": (0, np.inf)}).points
    assert point.kind is Kind.STABLE_AT_INFINITY


def test_three_dimensions():
    """Lorenz's equations: the origin and the two wings, by their closed form."""
    system = VectorField(
        (10 * (y - x), x * (28 - z) - y, x * y - sp.Rational(8, 3) * z), state=(x, y, z)
    )
    box = {"x": (-20, 21), "y": (-25, 26), "z": (-1, 40)}
    found = equilibria(system, box)
    wing = np.sqrt(8 / 3 * 27)
    assert found.complete
    positions = [list(point.state.values()) for point in found.points]
    np.testing.assert_allclose(
        positions, [[-wing, -wing, 27], [0, 0, 0], [wing, wing, 27]], atol=1e-9
    )
    assert [point.kind for point in found.points] == [Kind.SADDLE] * 3


def test_a_gradient_flow_and_its_minima():
    loss = (x**2 - 1) ** 2 + (y - x) ** 2
    flow = GradientFlow(loss, state=(x, y), metric={x: 2})
    kinds = [point.kind for point in equilibria(flow, PLANE).points]
    assert kinds == [Kind.STABLE_NODE, Kind.SADDLE, Kind.STABLE_NODE]


def test_giving_up_is_said():
    assert not equilibria(plane(y, -sp.sin(20 * x)), PLANE, max_boxes=5).complete


def test_kinds_of_larger_linearisations():
    for matrix, kind in (
        (np.diag([-1.0, -2, -3]), Kind.STABLE_NODE),
        (np.diag([1.0, -2, -3]), Kind.SADDLE),
        (np.diag([-1.0, -2, 0]), Kind.NON_HYPERBOLIC),
        (-np.eye(3), Kind.STABLE_STAR),
        (np.array([[-1.0, 5, 0], [-5, -1, 0], [0, 0, -2]]), Kind.STABLE_FOCUS),
        (np.array([[0.0, 5, 0], [-5, 0, 0], [0, 0, -2]]), Kind.NON_HYPERBOLIC),
        (np.zeros((2, 2)), Kind.NON_HYPERBOLIC),
    ):
        assert classify(*(part.astype(complex) for part in np.linalg.eig(matrix))) is kind


@pytest.mark.parametrize(
    ("box", "at", "message"),
    [
        ({"x": (0, 1)}, {}, "box lacks y: give every state its two ends"),
        ({**PLANE, "q": (0, 1)}, {}, "box names q: the states are x, y"),
        ({**PLANE, "y": (1, 1)}, {}, r"box of y is \(1, 1\): give two increasing numbers"),
        ({**PLANE, "y": (0, np.nan)}, {}, "box of y is"),
        ({**PLANE, "y": 3}, {}, "box of y is 3"),
        (PLANE, {"r": 1}, "at names r, which is no parameter"),
    ],
)
def test_bad_boxes_are_named(box, at, message):
    with pytest.raises(InputError, match=message):
        equilibria(plane(y, -x), box, at=at)


def test_what_intervals_lack_is_named():
    with pytest.raises(InputError, match="the rates hold erf, which interval arithmetic lacks"):
        equilibria(plane(sp.erf(x), y), PLANE)
    with pytest.raises(InputError, match="at holds several settings"):
        equilibria(line(r - x), LINE, at={"r": [1, 2]})
