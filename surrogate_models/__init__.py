"""Reduced models of training, one file each: assumptions, loss, flow, closed-form laws."""

from .attention_chain import attention_chain
from .blow_up import mills_ratio
from .cross_sample_repetition import cross_sample_repetition
from .model import RHO, Law, Parameter, SurrogateModel, Validity
from .prediction import Prediction, predict
from .registry import MODELS, model
from .relaxed_initialisation import relaxed_initialisation
from .single_location import single_location, single_location_shared
from .step_size import with_step_size

__all__ = [
    "MODELS",
    "RHO",
    "Law",
    "Parameter",
    "Prediction",
    "SurrogateModel",
    "Validity",
    "attention_chain",
    "cross_sample_repetition",
    "mills_ratio",
    "model",
    "predict",
    "relaxed_initialisation",
    "single_location",
    "single_location_shared",
    "with_step_size",
]
