"""Reduced models of training, one file each: assumptions, loss, flow, closed-form laws."""

from .attention_chain import attention_chain
from .blow_up import mills_ratio
from .cross_sample_repetition import cross_sample_repetition
from .first_stage import tensor_factorisation
from .inverse import Inverse, Within, invert_flow, invert_law
from .ledger import Chapter, Equation, Source, Step, derive, equations
from .model import RHO, Law, Parameter, SurrogateModel, Validity
from .model_file import load_model
from .prediction import Prediction, predict
from .registry import MODELS, model, register
from .relaxed_cross_sample import relaxed_cross_sample
from .relaxed_initialisation import relaxed_initialisation
from .single_location import single_location, single_location_shared
from .step_size import with_step_size

__all__ = [
    "MODELS",
    "RHO",
    "Chapter",
    "Equation",
    "Inverse",
    "Law",
    "Parameter",
    "Prediction",
    "Source",
    "Step",
    "SurrogateModel",
    "Validity",
    "Within",
    "attention_chain",
    "cross_sample_repetition",
    "derive",
    "equations",
    "invert_flow",
    "invert_law",
    "load_model",
    "mills_ratio",
    "model",
    "predict",
    "register",
    "relaxed_cross_sample",
    "relaxed_initialisation",
    "single_location",
    "tensor_factorisation",
    "single_location_shared",
    "with_step_size",
]
