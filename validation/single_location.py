"""The single-location study: attention layers trained over a grid of T, d, B and seeds."""

from __future__ import annotations

from dataclasses import dataclass, fields
from itertools import product
from pathlib import Path

import jax
import numpy as np
from tqdm import tqdm

from dynamics import InputError, PassageStatus, PassageTimes
from dynamics.parallel import on_all_cores
from surrogate_models import (
    Law,
    SurrogateModel,
    predict,
    relaxed_initialisation,
    single_location,
    single_location_shared,
    with_step_size,
)

from .attention_layer import initial_overlap
from .comparison import Comparison, compare
from .plateau import PlateauLengths, plateau_lengths
from .run_folder import RunFolder
from .single_location_task import SingleLocationTask
from .training import Descent, initial_nets, train

NAME = "single-location"


@dataclass(frozen=True)
class SingleLocationStudy:
    """What is trained, and until when. Every combination of T, d and B is a cell."""

    T: tuple[int, ...] = (16, 32, 64, 128)
    """Sequence lengths."""
    d: tuple[int, ...] = (8, 16, 32)
    """Token dimensions."""
    B: tuple[int, ...] = (1, 4)
    """Copies of the relevant token in a sequence."""
    seeds: int = 5
    """Nets per cell."""
    seed: int = 0
    """The first net's seed; the others count up from it."""
    lr: float = 1.0
    """Learning rate; t = lr × steps."""
    batch: int = 32
    """Fresh sequences per step; 0 descends the exact expected loss."""
    weight_scale: float = 0.0
    """Standard deviation of the initial weights, in units of 1/√d."""
    ratio: float = 0.2
    """The plateau ends when the expected loss falls to this fraction of its start."""
    budget: float = 12.0
    """Censor a net after this many times the plateau law's length for its cell."""

    def __post_init__(self) -> None:
        for name in ("T", "d", "B"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
            values = getattr(self, name)
            if not values or len(set(values)) < len(values):
                raise InputError(f"{name} is {values}: give at least one value, each once")
        for name, least in (("seeds", 1), ("batch", 0), ("seed", 0)):
            if getattr(self, name) < least:
                raise InputError(f"{name} is {getattr(self, name)}: give {least} or more")
        for name in ("lr", "budget"):
            if not 0 < getattr(self, name) < np.inf:
                raise InputError(f"{name} is {getattr(self, name)}: give a positive number")
        if not 0 <= self.weight_scale < np.inf:
            raise InputError(f"weight_scale is {self.weight_scale}: give 0 or a positive number")
        if not 0 < self.ratio < 1:
            raise InputError(f"ratio is {self.ratio}: give a number between 0 and 1")
        if self.seed + self.seeds > 2**31 or self.seeds > 10_000:
            raise InputError(
                f"seeds is {self.seeds} from seed {self.seed}: give at most 10000, below 2**31"
            )
        for task in self.tasks.values():  # each combination is checked as its task is made
            T, d = task.sequence_length, task.dimension
            numbers = self.seeds * (max(self.batch, 1) * T * d + d * d)
            if numbers > 2e9:
                raise InputError(
                    f"T = {T}, d = {d}, batch = {self.batch}, seeds = {self.seeds}: a step would "
                    f"hold {numbers:.2g} numbers, give a smaller one of them"
                )

    @property
    def tasks(self) -> dict[str, SingleLocationTask]:
        """The cells, by name."""
        return {
            f"T{T}-d{d}-B{B}": SingleLocationTask(T, d, B)
            for T, d, B in product(self.T, self.d, self.B)
        }

    @property
    def seed_list(self) -> np.ndarray:
        return np.arange(self.seed, self.seed + self.seeds)


PRESETS = {
    "quick": SingleLocationStudy(T=(16, 32), d=(8, 16), seeds=3),
    "demo": SingleLocationStudy(),
    "full-batch": SingleLocationStudy(
        T=(64, 128), d=(16, 32), B=(1,), seeds=8, lr=0.1, batch=0, weight_scale=1.0
    ),
}


def run(study: SingleLocationStudy, root: Path, *, progress: bool = True) -> RunFolder:
    """Train every cell that the study's folder under `root` does not hold yet.

    Cells are trained on all cores, the longest first. An interrupted run is taken up where it
    stopped, and ends with the same files as any other.
    """
    tasks = study.tasks
    expected = {cell: _expected_steps(task, study) for cell, task in tasks.items()}
    if (steps := max(expected.values())) > 1e8:
        raise InputError(
            f"lr is {study.lr}: a cell would take {steps:.2g} steps, give a larger one"
        )
    folder = RunFolder(root, NAME, study)
    pending = [cell for cell in tasks if cell not in folder.results]

    def cost(cell: str) -> float:
        task = tasks[cell]
        return expected[cell] * task.others * task.dimension

    pending.sort(key=cost, reverse=True)
    total = sum(map(cost, pending))
    bar = tqdm(
        total=100,
        desc=f"training {len(pending)} of {len(tasks)} cells",
        bar_format="{desc}: {percentage:3.0f}%|{bar}| {elapsed}<{remaining}",
        disable=None if progress and pending else True,
    )

    def work(cell: str) -> None:
        shown = 0.0

        def advance(fraction: float) -> None:
            nonlocal shown
            bar.update(min(100 * cost(cell) / total * (fraction - shown), 100 - bar.n))
            shown = fraction

        result, arrays = _train_cell(
            tasks[cell],
            study,
            max_steps=int(np.ceil(study.budget * expected[cell])),
            progress=lambda steps: advance(min(steps / expected[cell], 1.0)),
        )
        folder.add(cell, result, arrays)
        advance(1.0)

    with bar:
        list(on_all_cores(work, pending))
    folder.finish(list(tasks))
    return folder


def _expected_steps(task: SingleLocationTask, study: SingleLocationStudy) -> float:
    model = single_location()
    at = model.settings(
        {"T": task.sequence_length, "d": task.dimension, "B": task.repetition}, integers=True
    )
    return float(model.law_times(model.laws[0], at, study.ratio)) / study.lr


def _train_cell(task: SingleLocationTask, study: SingleLocationStudy, **options):
    """One cell's plateau lengths, each net's own initial overlap, and its thinned loss curves."""
    descent = Descent(study.lr, study.batch)
    nets = initial_nets(task, study.seed_list, study.weight_scale, descent.dtype)
    losses = train(task, descent, *nets, ratio=study.ratio, **options)
    measured = plateau_lengths(losses, ratio=study.ratio, lr=study.lr)
    overlap = jax.vmap(initial_overlap)(nets[0], nets[1])
    result = {
        "seeds": study.seed_list.tolist(),
        "time": measured.time.tolist(),
        "status": measured.status.tolist(),
        **{name: np.asarray(values, float).tolist() for name, values in overlap.items()},
    }
    kept = np.unique(np.linspace(0, losses.shape[1] - 1, 400).astype(int))
    return result, {"steps": kept, "losses": losses[:, kept].astype(np.float32)}


@dataclass(frozen=True)
class StudyResults:
    """A finished study: measurements and predictions, all of shape (cells, nets).

    - `settings`: each net's T, d, B, and its own M, w0, r0.
    - `predicted`: plateau lengths by predictor, in units of t; NaN where it has none.
    - `compared`: each predictor's errors, by the same names.
    """

    study: SingleLocationStudy
    cells: tuple[str, ...]
    settings: dict[str, np.ndarray]
    measured: PlateauLengths
    law: Law
    predicted: dict[str, np.ndarray]
    compared: dict[str, Comparison]


# What each prediction is, in the order of the report.
PREDICTORS = {
    "law": "the closed form, from each net's own M and w0",
    "flow": "the ODE, gradient flow from each net's own M, w0 and r0",
    "descent": "the same, with the error of a finite step to first order in lr",
    "shared": "the flow with one shared score, which the paper prints, from the same",
}


def results(folder: RunFolder) -> StudyResults:
    """Set every net of a finished run beside its predictions, none of which is fitted.

    Raises `InputError` if the run is not of this study, or not finished.
    """
    config = dict(folder.config)
    known = {field.name for field in fields(SingleLocationStudy)}
    if config.pop("run", None) != NAME or set(config) != known:
        raise InputError(f"{folder.path} is not a run of {NAME}: name one that is")
    try:
        study = SingleLocationStudy(**config)
    except TypeError as error:
        raise InputError(f"{folder.path / 'config.toml'} is damaged ({error})") from None
    tasks = study.tasks
    if missing := [cell for cell in tasks if cell not in folder.results]:
        raise InputError(
            f"{folder.path} lacks {len(missing)} of {len(tasks)} cells: "
            "run the same validate command again to finish it"
        )

    def column(name: str) -> np.ndarray:
        rows = [folder.results[cell].get(name) for cell in tasks]
        try:
            values = np.array(rows, float)
        except (TypeError, ValueError):
            values = np.empty(0)
        if values.shape != (len(tasks), study.seeds):
            file = folder.path / "results.jsonl"
            raise InputError(
                f"{file} lacks {study.seeds} numbers of {name} for some cell: "
                "remove that cell's line to compute it again"
            )
        return values

    status = column("status")
    if not np.isin(status, list(PassageStatus)).all():
        file = folder.path / "results.jsonl"
        raise InputError(f"{file} holds a status that is none: remove its line to compute it again")
    measured = PlateauLengths(column("time"), status.astype(int))
    sizes = np.array([(t.sequence_length, t.dimension, t.repetition) for t in tasks.values()])
    of_cell = {name: sizes[:, [i]] for i, name in enumerate(("T", "d", "B"))}
    own = {name: column(name) for name in ("M", "w0", "r0")}
    at = {
        name: np.broadcast_to(np.asarray(values, float), measured.time.shape)
        for name, values in {**of_cell, **own}.items()
    }
    zero = study.weight_scale == 0
    relaxed = relaxed_initialisation()
    lawful = single_location() if zero else relaxed
    law = lawful.laws[0]
    predicted: dict[str, np.ndarray | PassageTimes] = {
        "law": lawful.law_times(law, at, study.ratio),
        "flow": _passages(relaxed, at, study),
        "descent": _passages(with_step_size(relaxed), {**at, "lr": study.lr}, study),
    }
    if zero:
        predicted["shared"] = _passages(single_location_shared(), at, study)
    return StudyResults(
        study=study,
        cells=tuple(tasks),
        settings=at,
        measured=measured,
        law=law,
        predicted={
            name: np.where(times.reached, times.time, np.nan)
            if isinstance(times, PassageTimes)
            else times
            for name, times in predicted.items()
        },
        compared={name: compare(times, measured) for name, times in predicted.items()},
    )


def _passages(model: SurrogateModel, at: dict, study: SingleLocationStudy) -> PassageTimes:
    names = {parameter.name for parameter in model.parameters}
    chosen = {name: value for name, value in at.items() if name in names}
    return predict(model, chosen, rho=study.ratio).passages
