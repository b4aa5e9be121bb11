"""The equations of [Z, App. A.4] on cross-sample repetition, beside what follows from its loss.

Numbers and markings as in `single_location_ledger`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import sympy as sp

from dynamics import SMALL, Claim

from .cross_sample_loss import FRESH, REPEATED, alpha, p, w_repeated
from .expected_loss import T, d, w
from .ledger import Equation, Source, Step
from .model import SurrogateModel


def equations(model: SurrogateModel) -> Iterator[Equation]:
    """Z8 and Z17–Z21, the Hessian, and the linear flow of A.4.2."""
    flow = model.flow
    repeated, fresh = REPEATED, FRESH
    share = alpha * (1 - alpha)
    noise = (1 - alpha) ** 2 / (d * (T - 1))
    repeated_gap, fresh_gap = 1 - alpha * w_repeated, sp.sqrt(d - 1) - alpha * w
    domain = {T: (20, 60), d: (5, 20), p: (0.1, 0.9)}
    long_and_wide = {T: T / SMALL**2, d: d / SMALL**2}

    def equation(
        step: Step, label: str, text: str, claimed: Any, derived: Any, **options: Any
    ) -> Equation:
        source = options.pop("source", Source.RESTATED)
        corrected = options.pop("corrected", None)
        claim = Claim(claimed, derived, domain=domain, **options)
        return Equation(step, text, claim, label, source, corrected)

    loss = (noise * (w**2 + w_repeated**2) + repeated * repeated_gap**2 + fresh * fresh_gap**2) / 2
    yield equation(
        Step.REDUCTION, "Z17", "the reduced loss", loss, model.reduction.reduced_loss,
        source=Source.PRINTED,
    )  # fmt: skip
    yield equation(
        Step.FLOW, "Z18", "dw̃/dt",
        repeated * alpha * repeated_gap - noise * w_repeated, flow.rhs[0],
    )  # fmt: skip
    yield equation(Step.FLOW, "Z19", "dw/dt", fresh * alpha * fresh_gap - noise * w, flow.rhs[1])
    gap_rate = share * (
        repeated * w_repeated * repeated_gap
        + fresh * w * fresh_gap
        + noise / (1 - alpha) * (w**2 + w_repeated**2)
    )
    yield equation(
        Step.FLOW, "Z20", "dΔa/dt, without the induced metric", gap_rate, flow.rhs[2],
        limit={T: T / SMALL},
    )  # fmt: skip
    fit = (repeated_gap**2 + fresh_gap**2) / d
    yield equation(
        Step.FLOW, "Z21", "the loss on fresh tokens",
        (noise * (w**2 + w_repeated**2) + fit) / 2, flow.observable("test_loss"),
    )  # fmt: skip

    # Derivatives in Δa, through dα/dΔa = α(1 − α).
    slope = -gap_rate
    second = (1 - 2 * alpha) * slope + share**2 * (
        (w**2 + w_repeated**2) / (d * (T - 1)) + repeated * w_repeated**2 + fresh * w**2
    )
    mixed = -2 * noise / (1 - alpha)
    hessian = flow.hessian()
    entries = (
        ("∂²L/∂w̃²", (0, 0), noise + repeated * alpha**2),
        ("∂²L/∂w²", (1, 1), noise + fresh * alpha**2),
        ("∂²L/∂w̃∂w", (0, 1), 0),
        (
            "∂²L/∂w̃∂Δa",
            (0, 2),
            share * (mixed * w_repeated + repeated * (2 * alpha * w_repeated - 1)),
        ),
        (
            "∂²L/∂w∂Δa",
            (1, 2),
            share * (mixed * w + fresh * (2 * alpha * w - sp.sqrt(d - 1))),
        ),
        ("∂²L/∂Δa²", (2, 2), second),
    )
    for text, index, claimed in entries:
        yield equation(Step.HESSIAN, "Hessian", text, claimed, hessian[index])

    start = dict.fromkeys(flow.state, 0)
    slopes = flow.jacobian().subs(start)
    exact = sp.sqrt(repeated**2 + fresh**2 * (d - 1)) / T
    options = {"limit": {T: T / SMALL}, "scale": exact}
    # The damping of the weights by noise, 1/(dT), is small beside the rate in √d only.
    wide = {"limit": long_and_wide, "scale": exact}
    yield equation(Step.START, "A.4.2", "∂(dw̃/dt)/∂Δa", repeated / T, slopes[0, 2], **options)
    yield equation(
        Step.START, "A.4.2", "∂(dw/dt)/∂Δa, with p for 1 − p", p * sp.sqrt(d - 1) / (d * T),
        slopes[1, 2], source=Source.PRINTED, corrected=fresh * sp.sqrt(d - 1) / T, **options,
    )  # fmt: skip
    yield equation(Step.START, "A.4.2", "∂(dΔa/dt)/∂w̃", repeated / T, slopes[2, 0], **options)
    yield equation(
        Step.START, "A.4.2", "∂(dΔa/dt)/∂w, without √(d − 1)", fresh / T, slopes[2, 1],
        source=Source.PRINTED, corrected=fresh * sp.sqrt(d - 1) / T, **options,
    )  # fmt: skip
    for text, index in (
        ("∂(dw̃/dt)/∂w̃", (0, 0)),
        ("∂(dw/dt)/∂w", (1, 1)),
        ("∂(dΔa/dt)/∂Δa", (2, 2)),
    ):
        yield equation(Step.START, "A.4.2", text, 0, slopes[index], **wide)
    growth, across = repeated / T, fresh * sp.sqrt(d - 1) / T
    matrix = sp.Matrix([[0, 0, growth], [0, 0, across], [growth, across, 0]])
    for text, eigenvalue in (("0", sp.S.Zero), ("λ", exact), ("−λ", -exact)):
        yield equation(
            Step.START, "A.4.2", f"{text} is an eigenvalue, λ² = (σ̃² + σ²(d − 1))/T²",
            0, (matrix - eigenvalue * sp.eye(3)).det(),
        )  # fmt: skip
    approximate = sp.sqrt(p**2 * d + (1 - p) ** 2) / (sp.sqrt(d) * T)
    yield equation(Step.START, "A.4.2", "λ at large d", approximate, exact, limit={d: d / SMALL})
    yield equation(
        Step.ESCAPE, "Z8", "the time that repetition shortens, at large d",
        1 / approximate, 1 / exact, source=Source.PRINTED, limit={d: d / SMALL},
    )  # fmt: skip
