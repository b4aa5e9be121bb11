"""A model under gradient descent with a finite step, instead of gradient flow."""

from __future__ import annotations

from dataclasses import replace

import sympy as sp

from .model import Parameter, SurrogateModel

lr = sp.Symbol("lr", positive=True)


def with_step_size(model: SurrogateModel) -> SurrogateModel:
    """The model whose flow full-batch descent at learning rate `lr` follows to second order.

    The learning rate becomes a parameter, in units of t. The flow is that of the loss plus
    (lr/4)‖gradient‖² (`GradientFlow.modified`); thresholds still apply to the loss itself.
    """
    return replace(
        model,
        name=f"{model.name}-descent",
        title=f"{model.title}, descended in steps of lr",
        assumptions=(
            *(text.replace("gradient flow", "gradient descent") for text in model.assumptions),
            "terms of order lr² are left out",
        ),
        parameters=(*model.parameters, Parameter(lr, "learning rate", minimum=0, positive=True)),
        flow=model.flow.modified(lr),
    )
