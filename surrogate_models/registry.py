"""The models by name."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from dynamics import InputError

from .attention_chain import attention_chain
from .cross_sample_repetition import cross_sample_repetition
from .first_stage import tensor_factorisation
from .model import SurrogateModel
from .model_file import load_model
from .relaxed_cross_sample import relaxed_cross_sample
from .relaxed_initialisation import relaxed_initialisation
from .single_location import single_location, single_location_shared

MODELS: dict[str, Callable[[], SurrogateModel]] = {
    "single-location": single_location,
    "single-location-shared": single_location_shared,
    "relaxed-initialisation": relaxed_initialisation,
    "cross-sample-repetition": cross_sample_repetition,
    "relaxed-cross-sample": relaxed_cross_sample,
    "attention-chain": attention_chain,
    "tensor-factorisation": tensor_factorisation,
    "tensor-factorisation-replicator": partial(tensor_factorisation, "replicator"),
}


def register(name: str, build: Callable[[], SurrogateModel]) -> None:
    """Make a model of one's own known by name; raises `InputError` if the name is taken."""
    if name in MODELS:
        raise InputError(f"model {name!r} is taken: give another name")
    MODELS[name] = build


def model(name: str) -> SurrogateModel:
    """The model of that name, or the one that a TOML file of that path describes.

    Raises `InputError`, listing the names, if there is none, and as `load_model` does.
    """
    if name.endswith(".toml"):
        return load_model(name)
    if name not in MODELS:
        known = ", ".join(MODELS)
        raise InputError(f"model {name!r} is unknown: use one of {known}, or a .toml file")
    return MODELS[name]()
