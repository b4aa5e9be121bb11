from .claims import SMALL, Claim, Judgement, Verdict, Witness, judge
from .compilation import CompiledSystem, compile_system, symbolic_function
from .equilibria import Equilibria, Equilibrium, EquilibriumSet, Kind, classify, equilibria
from .errors import ContradictionError, InputError, InvarianceError, PrecisionError
from .expressions import FUNCTIONS, parse
from .identities import is_zero
from .passage import PassageStatus, PassageTimes, Threshold, first_passage, passage_time
from .precision import enable_x64
from .reduction import Reduction, reduce
from .settings import Settings, grid
from .system import GradientFlow, System, VectorField
from .trajectory import Trajectory, solve

__all__ = [
    "FUNCTIONS",
    "SMALL",
    "Claim",
    "CompiledSystem",
    "ContradictionError",
    "Equilibria",
    "Equilibrium",
    "EquilibriumSet",
    "GradientFlow",
    "InputError",
    "InvarianceError",
    "Judgement",
    "Kind",
    "PassageStatus",
    "PassageTimes",
    "PrecisionError",
    "Reduction",
    "Settings",
    "System",
    "Threshold",
    "Trajectory",
    "VectorField",
    "Verdict",
    "Witness",
    "classify",
    "compile_system",
    "enable_x64",
    "equilibria",
    "first_passage",
    "grid",
    "is_zero",
    "judge",
    "parse",
    "passage_time",
    "reduce",
    "solve",
    "symbolic_function",
]
