"""Equilibria in a box: all of them, with a proof of completeness where there can be one.

A box in which the rates' interval enclosure leaves 0 out holds no equilibrium. Where Krawczyk's
operator maps a box into its own interior it holds exactly one (Krawczyk 1969; Moore 1977). Boxes
are halved until one of the two is so, or until they are too small: what is left then, near points
where the Jacobian is singular, is reported as degenerate points or as connected sets. Interval
arithmetic is mpmath's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import mpmath
import numpy as np
import sympy as sp
from jaxtyping import Complex, Float
from sympy.functions.elementary.hyperbolic import HyperbolicFunction

from .errors import InputError
from .settings import settings
from .system import System

_iv: Any = mpmath.iv
_INTERVAL_FUNCTIONS = {"exp": _iv.exp, "log": _iv.log, "sin": _iv.sin, "cos": _iv.cos}

_REACH = 30.0  # how far an infinite side is searched
_CUT = 0.4871
_SHOWN = 64
_SAME = 1e-7


class Kind(StrEnum):
    """What the linearisation says of an equilibrium."""

    STABLE_NODE = "stable node"
    UNSTABLE_NODE = "unstable node"
    STABLE_STAR = "stable star node"
    UNSTABLE_STAR = "unstable star node"
    STABLE_DEGENERATE = "stable degenerate node"
    UNSTABLE_DEGENERATE = "unstable degenerate node"
    STABLE_FOCUS = "stable focus"
    UNSTABLE_FOCUS = "unstable focus"
    SADDLE = "saddle"
    CENTRE = "centre of the linearisation"  # nonlinear terms may turn it into a focus
    NON_HYPERBOLIC = "non-hyperbolic"  # a zero eigenvalue: the linearisation does not decide
    STABLE_AT_INFINITY = "stable, at infinity"
    UNSTABLE_AT_INFINITY = "unstable, at infinity"


@dataclass(frozen=True)
class Equilibrium:
    """A point where all rates vanish.

    - `state`: its coordinates by name; ±infinity where the rates vanish in that limit.
    - `eigenvalues`, `eigenvectors`: of the Jacobian there, in units of 1/t, one column each; of the
      finite coordinates alone for an equilibrium at infinity.
    - `kind`: what they say.
    - `proved`: whether it was proved to exist, and to be alone in a box around it; for one at
      infinity, within the limiting system of the other coordinates.
    """

    state: dict[str, float]
    eigenvalues: Complex[np.ndarray, " n"]
    eigenvectors: Complex[np.ndarray, "n n"]
    kind: Kind
    proved: bool


@dataclass(frozen=True)
class EquilibriumSet:
    """A connected set of equilibria that are not isolated, such as a line.

    - `points`: points of it by state name, shape (k,), along its longest extent.
    - `extent`: the least and greatest value of each state on it.
    """

    points: dict[str, Float[np.ndarray, " k"]]
    extent: dict[str, tuple[float, float]]


@dataclass(frozen=True)
class Equilibria:
    """All equilibria found in a box.

    - `points`: isolated ones, and those at infinity.
    - `sets`: connected sets of others.
    - `undecided`: boxes, (k, n, 2), that may hold others: the rates there are smaller than
      interval arithmetic can tell from 0, as on the way to an equilibrium at infinity.
    - `complete`: whether it was proved that the box holds none but these, outside `undecided`.
    """

    points: tuple[Equilibrium, ...]
    sets: tuple[EquilibriumSet, ...]
    undecided: Float[np.ndarray, "k n 2"]
    complete: bool


def equilibria(
    system: System,
    box: Mapping[str, tuple[float, float]],
    *,
    at: Mapping[str, Any] | None = None,
    resolution: float = 1 / 512,
    max_boxes: int = 20_000,
) -> Equilibria:
    """All equilibria of a system in a box, at one setting of its parameters.

    Limits of the box at infinity are admitted: along a state whose side ends there, the rates'
    limits are looked at too, for equilibria that no finite time reaches.

    Arguments:

    - `system`: any `System`.
    - `box`: the least and greatest value of every state, by name; a side may end at ±infinity,
      and then its finite part is searched up to 30 beyond its other end (or ±30).
    - `at`: one value for every parameter.
    - `resolution`: boxes are halved down to this fraction of the box; what is left in small
      clusters is then searched in the same way again.
    - `max_boxes`: the search gives up, incomplete, after so many.

    Raises `InputError` on a bad box or setting, and on rates that interval arithmetic lacks.

    ```python
    >>> import sympy as sp
    >>> from dynamics import VectorField, equilibria
    >>> x, r = sp.symbols("x r")
    >>> found = equilibria(VectorField((r * x - x**3,), state=(x,), parameters=(r,)),
    ...                    {"x": (-3, 3)}, at={"r": 1})
    >>> [(round(p.state["x"], 6), p.kind.value) for p in found.points], found.complete
    ([(-1.0, 'stable node'), (0.0, 'unstable node'), (1.0, 'stable node')], True)

    ```
    """
    sides = _sides(system, box)
    values = settings(system, at)
    if any(value.ndim for value in values.values()):
        raise InputError("at holds several settings: give one value per parameter")
    numbers = {symbol: sp.Rational(float(values[symbol.name])) for symbol in system.parameters}
    rates: Any = [_exact(rate.xreplace(numbers)) for rate in system.rhs]
    finite = np.array([_finite(low, high) for low, high in sides])
    inside = _search(system.state, rates, finite, resolution, max_boxes)
    points, sets, complete = inside.points, inside.sets, inside.complete
    for index, side in enumerate(sides):
        for end in filter(np.isinf, side):
            far = _beyond(system.state, rates, finite, index, end, resolution, max_boxes)
            points, sets = points + far.points, sets + far.sets
            complete &= far.complete
    return Equilibria(points, sets, inside.undecided, complete)


def _sides(system: System, box: Mapping[str, tuple[float, float]]) -> list[tuple[float, float]]:
    names = [symbol.name for symbol in system.state]
    box = {str(name): side for name, side in box.items()}
    if missing := [name for name in names if name not in box]:
        raise InputError(f"box lacks {', '.join(missing)}: give every state its two ends")
    if unknown := [name for name in box if name not in names]:
        raise InputError(f"box names {', '.join(unknown)}: the states are {', '.join(names)}")
    sides = []
    for name in names:
        try:
            low, high = map(float, box[name])
        except (TypeError, ValueError):
            low, high = np.nan, np.nan
        if not low < high:
            raise InputError(f"box of {name} is {box[name]}: give two increasing numbers")
        sides.append((low, high))
    return sides


def _exact(expression: Any) -> Any:
    """Decimal numbers as the fractions they are in floating point."""
    return expression.xreplace({f: sp.Rational(f) for f in expression.atoms(sp.Float)})


def _finite(low: float, high: float) -> tuple[float, float]:
    """The part of a side that is searched."""
    if np.isinf(low) and np.isinf(high):
        return -_REACH, _REACH
    return (high - _REACH if np.isinf(low) else low), (low + _REACH if np.isinf(high) else high)


@dataclass(frozen=True)
class _Rates:
    """Rates and Jacobian as functions of numbers and of intervals."""

    state: tuple[sp.Symbol, ...]
    rates: Any
    jacobian: Any
    rates_over: Any
    jacobian_over: Any


def _compile(state: tuple[sp.Symbol, ...], rates: Sequence[sp.Expr]) -> _Rates:
    rates = [rate.rewrite(HyperbolicFunction, sp.exp) for rate in rates]
    entries = list(sp.Matrix(rates).jacobian(state))
    unknown = {
        function.func.__name__
        for rate in (*rates, *entries)
        for function in rate.atoms(sp.Function)
        if function.func.__name__ not in _INTERVAL_FUNCTIONS
    }
    if unknown:
        raise InputError(
            f"the rates hold {', '.join(sorted(unknown))}, which interval arithmetic lacks: "
            f"write them in {', '.join(_INTERVAL_FUNCTIONS)}"
        )
    modules = [{**_INTERVAL_FUNCTIONS, "mpf": _iv.mpf, "pi": _iv.pi, "sqrt": _iv.sqrt}, "mpmath"]
    n = len(state)

    def numbers(expressions: Sequence[sp.Expr], shape: tuple[int, ...]) -> Any:
        function = sp.lambdify(state, expressions, "numpy", cse=True)
        return lambda z: np.array(function(*z), float).reshape(shape)

    def over(expressions: Sequence[sp.Expr]) -> Any:
        function = sp.lambdify(state, expressions, modules, cse=True)
        return lambda box: [_iv.mpf(value) for value in function(*(_iv.mpf(side) for side in box))]

    return _Rates(state, numbers(rates, (n,)), numbers(entries, (n, n)), over(rates), over(entries))


def _search(
    state: tuple[sp.Symbol, ...],
    rates: Sequence[sp.Expr],
    box: Float[np.ndarray, "n 2"],
    resolution: float,
    max_boxes: int,
) -> Equilibria:
    functions = _compile(state, rates)
    roots, left, complete = _halve(functions, box, resolution, max_boxes)
    points = [(root, True) for root in roots]
    sets, undecided = [], []
    for cluster in _clusters(left):
        hull = np.stack([cluster[..., 0].min(0), cluster[..., 1].max(0)], axis=1)
        if len(cluster) <= 4 * 3 ** len(state):
            found, known = _settle(functions, hull, resolution, max_boxes)
            points += found
            complete &= known
        elif (found := _as_set(functions, cluster, hull)) is not None:
            sets.append(found)
        else:
            undecided += list(cluster)
    distinct: list[tuple[np.ndarray, bool]] = []
    width = box[:, 1] - box[:, 0]
    for root, proved in sorted(points, key=lambda point: (not point[1], *point[0])):
        inside = (root >= box[:, 0] - 1e-9 * width) & (root <= box[:, 1] + 1e-9 * width)
        if inside.all() and not any(
            (np.abs(root - other) < 1e-7 * width).all() for other, _ in distinct
        ):
            distinct.append((root, proved))
    distinct.sort(key=lambda point: tuple(point[0]))
    return Equilibria(
        tuple(_equilibrium(functions, root, proved) for root, proved in distinct),
        tuple(sets),
        np.array(undecided).reshape(-1, *box.shape),
        complete,
    )


def _halve(
    functions: _Rates, box: np.ndarray, resolution: float, max_boxes: int
) -> tuple[list[np.ndarray], np.ndarray, bool]:
    """Proved roots, the smallest boxes that were not decided, and whether all were looked at."""
    least = resolution * (box[:, 1] - box[:, 0])
    queue, roots, left = [box], [], []
    for _ in range(max_boxes):
        if not queue:
            break
        side = queue.pop()
        if not all(0 in value for value in functions.rates_over(side)):
            continue
        outcome, image = _krawczyk(functions, side)
        if outcome == "one":
            roots.append(_polish(functions, image.mean(1)))
        elif outcome == "none":
            continue
        else:
            side = image if outcome == "smaller" else side
            widths = side[:, 1] - side[:, 0]
            if (widths <= least).all():
                left.append(side)
                continue
            # Off the middle: equilibria like to sit on middles, and there no box contains them.
            axis = int(np.argmax(widths / least))
            cut = side[axis, 0] + _CUT * widths[axis]
            for low, high in ((side[axis, 0], cut), (cut, side[axis, 1])):
                half = side.copy()
                half[axis] = low, high
                queue.append(half)
    n = len(box)
    return roots, np.array([*left, *queue]).reshape(-1, n, 2), not queue


def _krawczyk(functions: _Rates, box: np.ndarray) -> tuple[str, np.ndarray]:
    """Whether Krawczyk's operator proves one root in the box, or none, or shrinks it."""
    middle = box.mean(1)
    try:
        inverse = np.linalg.inv(functions.jacobian(middle))
    except np.linalg.LinAlgError:
        return "undecided", box
    n = len(middle)
    there = functions.rates_over(np.stack([middle, middle], axis=1))
    slopes = functions.jacobian_over(box)
    offset = [_iv.mpf(side) - _iv.mpf(m) for side, m in zip(box.tolist(), middle, strict=True)]
    image = np.empty_like(box)
    for i in range(n):
        value = _iv.mpf(float(middle[i]))
        for j in range(n):
            value -= _iv.mpf(float(inverse[i, j])) * there[j]
            slope = _iv.mpf(float(i == j))
            for k in range(n):
                slope -= _iv.mpf(float(inverse[i, k])) * slopes[k * n + j]
            value += slope * offset[j]
        image[i] = float(value.a), float(value.b)
    if not np.isfinite(image).all():
        return "undecided", box
    if ((image[:, 0] > box[:, 0]) & (image[:, 1] < box[:, 1])).all():
        return "one", image
    common = np.stack([np.maximum(image[:, 0], box[:, 0]), np.minimum(image[:, 1], box[:, 1])], 1)
    if (common[:, 0] > common[:, 1]).any():
        return "none", box
    # A linear rate pins its coordinate: keep an interior for the next image to fall into.
    slack = 1e-3 * np.maximum(box[:, 1] - box[:, 0] - (common[:, 1] - common[:, 0]), 0)
    return "smaller", np.stack(
        [np.maximum(common[:, 0] - slack, box[:, 0]), np.minimum(common[:, 1] + slack, box[:, 1])],
        1,
    )


def _polish(functions: _Rates, point: np.ndarray) -> np.ndarray:
    """Newton's method to rounding, in least squares where the Jacobian is singular."""
    for _ in range(50):
        step = np.linalg.lstsq(functions.jacobian(point), functions.rates(point), rcond=1e-12)[0]
        point = point - step
        if np.abs(step).max() <= 1e-15 * (1 + np.abs(point).max()):
            break
    return point


def _settle(
    functions: _Rates, hull: np.ndarray, resolution: float, max_boxes: int
) -> tuple[list[tuple[np.ndarray, bool]], bool]:
    """A small cluster of undecided boxes: one root on their seam, none, or a degenerate one."""
    for _ in range(4):
        centre, half = hull.mean(1), (hull[:, 1] - hull[:, 0]) / 2
        wider = np.stack([centre - 3 * half, centre + 3 * half], axis=1)
        if _krawczyk(functions, wider)[0] == "one":
            return [(_polish(functions, centre), True)], True
        roots, left, complete = _halve(functions, hull, resolution, max_boxes)
        if roots or not len(left):
            found = [(root, True) for root in roots]
            for cluster in _clusters(left):
                middle = _polish(functions, cluster.mean((0, 2)))
                if not any(np.allclose(middle, root, atol=half.max()) for root in roots):
                    found.append((middle, False))
            return found, complete
        hull = np.stack([left[..., 0].min(0), left[..., 1].max(0)], axis=1)
    return [(_polish(functions, hull.mean(1)), False)], True


def _clusters(boxes: np.ndarray) -> list[np.ndarray]:
    """Boxes that touch, together."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    if not len(boxes):
        return []
    slack = 1e-9 * (boxes[..., 1].max(0) - boxes[..., 0].min(0))
    touching = np.ones((len(boxes), len(boxes)), bool)
    for axis in range(boxes.shape[1]):
        low, high = boxes[:, axis, 0], boxes[:, axis, 1]
        touching &= low[:, None] <= high[None, :] + slack[axis]
    touching &= touching.T
    count, label = connected_components(csr_array(touching), directed=False)
    return [boxes[label == index] for index in range(count)]


def _as_set(functions: _Rates, cluster: np.ndarray, hull: np.ndarray) -> EquilibriumSet | None:
    """The cluster as a set of equilibria, if there are such all along it."""
    names = [symbol.name for symbol in functions.state]
    longest = int(np.argmax(hull[:, 1] - hull[:, 0]))
    middles = cluster.mean(2)
    order = np.argsort(middles[:, longest])[:: max(1, len(cluster) // _SHOWN)]
    points = np.array([_polish(functions, middle) for middle in middles[order]])
    moved = np.abs(points - middles[order])
    near = (moved <= 4 * (cluster[order, :, 1] - cluster[order, :, 0])).all(1)
    still = [np.abs(functions.rates(point)).max() < 1e-12 for point in points]
    if not (near & still).all():
        return None
    ends = np.stack([points.min(0), points.max(0)], axis=1)
    ends[longest] = hull[longest]
    return EquilibriumSet(
        points=dict(zip(names, points.T, strict=True)),
        extent={name: (low, high) for name, (low, high) in zip(names, ends.tolist(), strict=True)},
    )


def _beyond(
    state: tuple[sp.Symbol, ...],
    rates: Sequence[sp.Expr],
    box: np.ndarray,
    index: int,
    end: float,
    resolution: float,
    max_boxes: int,
) -> Equilibria:
    """Equilibria in the limit of one state at infinity, where its own rate vanishes too."""
    symbol, target = state[index], sp.oo if end > 0 else -sp.oo
    limits = [sp.limit(rate, symbol, target) for rate in rates]
    unbounded = (sp.oo, sp.zoo, sp.nan, sp.AccumBounds)
    if limits[index] != 0 or any(limit.has(*unbounded) for limit in limits):
        return Equilibria((), (), np.empty((0, len(state), 2)), True)
    others = [i for i in range(len(state)) if i != index]
    names = tuple(state[i] for i in others)
    if others:
        rest = _search(names, [limits[i] for i in others], box[others], resolution, max_boxes)
    else:
        none: Any = np.empty(0, complex)
        alone = Equilibrium({}, none, none.reshape(0, 0), Kind.NON_HYPERBOLIC, True)
        rest = Equilibria((alone,), (), np.empty((0, 0, 2)), True)
    points = []
    for point in rest.points:
        far = {s: sp.Rational(point.state[s.name]) for s in names}
        far[symbol] = sp.Integer(int(np.sign(end) * _REACH))
        outward = sp.N(rates[index].xreplace(far), 30) * np.sign(end) > 0
        stable = outward and (np.real(point.eigenvalues) < 0).all()
        kind = Kind.STABLE_AT_INFINITY if stable else Kind.UNSTABLE_AT_INFINITY
        everywhere = {**point.state, symbol.name: end}
        points.append(replace(point, state={s.name: everywhere[s.name] for s in state}, kind=kind))
    sets = [
        EquilibriumSet(
            {**each.points, symbol.name: np.full(len(next(iter(each.points.values()))), end)},
            {**each.extent, symbol.name: (end, end)},
        )
        for each in rest.sets
    ]
    known = rest.complete and not len(rest.undecided)
    return replace(rest, points=tuple(points), sets=tuple(sets), complete=known)


def _equilibrium(functions: _Rates, root: np.ndarray, proved: bool) -> Equilibrium:
    values, vectors = (part.astype(complex) for part in np.linalg.eig(functions.jacobian(root)))
    # What could not be proved alone has a Jacobian that is singular to the search's resolution.
    kind = classify(values, vectors) if proved else Kind.NON_HYPERBOLIC
    state = {s.name: float(z) for s, z in zip(functions.state, root, strict=True)}
    return Equilibrium(state, values, vectors, kind, proved)


def classify(
    eigenvalues: Complex[np.ndarray, " n"], eigenvectors: Complex[np.ndarray, "n n"]
) -> Kind:
    """What a linearisation's eigenvalues say, equal to 1e-7 of the largest counting as equal.

    With complex pairs that grow or decay alike it is a focus, whatever the other eigenvalues are.
    """
    size = np.abs(eigenvalues).max(initial=0)
    small = _SAME * size
    growth = np.real(eigenvalues)
    if size == 0 or (np.abs(eigenvalues) <= small).any():
        return Kind.NON_HYPERBOLIC
    if (np.abs(growth) <= small).all():
        return Kind.CENTRE
    if (np.abs(growth) <= small).any():
        return Kind.NON_HYPERBOLIC
    if (growth > 0).any() and (growth < 0).any():
        return Kind.SADDLE
    stable = bool((growth < 0).all())
    # A double root splits by the square root of rounding: compare in that scale.
    spread = np.abs(eigenvalues[:, None] - eigenvalues[None, :]).max()
    if len(eigenvalues) > 1 and spread <= np.sqrt(_SAME) * size:
        full = np.linalg.svd(eigenvectors, compute_uv=False).min() > np.sqrt(_SAME)
        if full:
            return Kind.STABLE_STAR if stable else Kind.UNSTABLE_STAR
        return Kind.STABLE_DEGENERATE if stable else Kind.UNSTABLE_DEGENERATE
    if (np.abs(np.imag(eigenvalues)) > small).any():
        return Kind.STABLE_FOCUS if stable else Kind.UNSTABLE_FOCUS
    return Kind.STABLE_NODE if stable else Kind.UNSTABLE_NODE
