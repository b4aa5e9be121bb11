from .attention_layer import AttentionLayer, batch_loss, expected_loss, initial_overlap
from .comparison import Comparison, compare
from .plateau import PlateauLengths, median_interval, plateau_lengths
from .run_folder import RunFolder
from .single_location import SingleLocationStudy, StudyResults
from .single_location_report import write_report
from .single_location_task import SingleLocationTask
from .training import Descent, initial_nets, train

__all__ = [
    "AttentionLayer",
    "Comparison",
    "Descent",
    "PlateauLengths",
    "RunFolder",
    "SingleLocationStudy",
    "SingleLocationTask",
    "StudyResults",
    "batch_loss",
    "compare",
    "expected_loss",
    "initial_nets",
    "initial_overlap",
    "median_interval",
    "plateau_lengths",
    "train",
    "write_report",
]
