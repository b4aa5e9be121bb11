from .compilation import CompiledSystem, compile_system, symbolic_function
from .errors import InputError, InvarianceError, PrecisionError
from .identities import is_zero
from .passage import PassageStatus, PassageTimes, Threshold, first_passage, passage_time
from .precision import enable_x64
from .reduction import Reduction, reduce
from .settings import Settings, grid
from .system import GradientFlow, System, VectorField
from .trajectory import Trajectory, solve

__all__ = [
    "CompiledSystem",
    "GradientFlow",
    "InputError",
    "InvarianceError",
    "PassageStatus",
    "PassageTimes",
    "PrecisionError",
    "Reduction",
    "Settings",
    "System",
    "Threshold",
    "Trajectory",
    "VectorField",
    "compile_system",
    "enable_x64",
    "first_passage",
    "grid",
    "is_zero",
    "passage_time",
    "reduce",
    "solve",
    "symbolic_function",
]
