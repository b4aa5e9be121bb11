"""A model's plateau lengths: the closed forms at once, the flow's own first passages beside."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Float

from dynamics import PassageTimes, Settings, Threshold, first_passage

from .model import SurrogateModel


@dataclass(frozen=True)
class Prediction:
    """Plateau lengths of one model over a batch of settings, in units of t.

    - `laws`: closed-form times by law name, shape (*lanes).
    - `passages`: the reduced flow's first passages.
    """

    model: SurrogateModel
    rho: float
    settings: Settings
    laws: dict[str, Float[np.ndarray, "*lanes"]]
    passages: PassageTimes


def predict(
    model: SurrogateModel, at: Mapping[str, Any], *, rho: float = 0.2, **options: Any
) -> Prediction:
    """When the model's loss first falls to rho times its initial value.

    Arguments:

    - `at`: values by parameter name, of shapes that broadcast; parameters with a default may
      be left out.
    - `rho`: the loss ratio at which the plateau ends, within (0, 1).
    - `options`: those of `dynamics.first_passage` (horizon, derivatives, tolerances, …).

    Raises `InputError` as `SurrogateModel.settings` and `first_passage` do.
    """
    settings = model.settings(at)
    threshold = replace(Threshold.loss_ratio(rho), observable=model.plateau_of)
    passages = first_passage(model.flow, threshold, at=settings, **options)
    laws = {law.name: model.law_times(law, settings, rho) for law in model.laws}
    return Prediction(model, rho, settings, laws, passages)
