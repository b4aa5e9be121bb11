"""Flags from dataclasses, errors as one sentence, and JAX set up for a command."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeVar

import numpy as np
import platformdirs
import tyro

import dynamics
from dynamics import InputError, Threshold
from surrogate_models import MODELS, SurrogateModel, model

Config = TypeVar("Config")


def parse(
    config: type[Config], arguments: Sequence[str], *, prog: str, default: Config | None = None
) -> Config:
    """The config dataclass that the arguments spell; raises `InputError` if they do not."""
    errors = io.StringIO()
    try:
        with contextlib.redirect_stderr(errors):
            return tyro.cli(
                config,
                args=list(arguments),
                prog=prog,
                default=tyro.MISSING_NONPROP if default is None else default,
                config=(tyro.conf.FlagCreatePairsOff, tyro.conf.OmitArgPrefixes),
            )
    except SystemExit as stop:
        if not stop.code:
            raise
        raise InputError(f"{_sentence(errors.getvalue())} (see {prog} --help)") from None


def _sentence(box: str) -> str:
    """The first paragraph of tyro's framed error message, on one line.

    tyro prints and exits; what it says is kept, only its frame is taken off.
    """
    lines = [line.strip(" │") for line in box.splitlines() if line.startswith("│")]
    end = next((i for i, line in enumerate(lines) if set(line) <= {"─"}), len(lines))
    text = re.sub(r"\s+", " ", " ".join(lines[:end]) or box).strip(" .")
    return text.removeprefix("Error parsing study: ").removeprefix("Error parsing ")


def choose(arguments: Sequence[str], usage: str, known: Sequence[str], what: str) -> str | None:
    """The first argument, one of `known`; None after printing `usage` when help was asked for."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print(usage)
        return None
    if arguments[0] not in known:
        raise InputError(f"{what} {arguments[0]!r} is unknown: use one of {', '.join(known)}")
    return arguments[0]


def choose_model(arguments: Sequence[str], usage: str) -> SurrogateModel | None:
    """The model that the first argument names; None after printing what there is."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print(f"{usage}\n\nmodels, or a file of your own (MODEL.toml):")
        for each in MODELS:
            print(f"  {each:32}{model(each).title}")
        return None
    return model(arguments[0])


@dataclass(frozen=True)
class QuestionOptions:
    """What every question about plateau lengths may say, beside the model's parameters."""

    ratio: float = 0.2
    """The plateau ends at this fraction of the initial loss."""
    lr: float | None = None
    """Learning rate; times are then given in steps too."""

    def check(self) -> None:
        """Raise `InputError` on a value that makes no sense."""
        Threshold.loss_ratio(self.ratio)
        for name in ("lr", "horizon"):
            value = getattr(self, name, None)
            if value is not None and not (np.isfinite(value) and value > 0):
                raise InputError(f"{name} is {value}: give a positive number")


@dataclass(frozen=True)
class PassageOptions(QuestionOptions):
    """What a question to a model's flow may say too."""

    horizon: float | None = None
    """Give up at this time, in units of t; ten thousand timescales of the model by default."""


Options = TypeVar("Options", bound=QuestionOptions)


def number(value: float) -> str:
    """A time or a count of steps to read: two decimals where it is large, six digits else."""
    return f"{value:,.2f}" if abs(value) >= 1000 else f"{value:.6g}"


def parse_question(
    command: str, arguments: Sequence[str], options: type[Options], value: type, *, usage: str
) -> tuple[SurrogateModel, dict[str, Any], Options] | None:
    """The model named first, its parameters given as flags of type `value`, and the options.

    Returns None after printing `usage` and the models, when that was asked for.
    """
    chosen = choose_model(arguments, usage)
    if chosen is None:
        return None
    return chosen, *parse_parameters(command, chosen, arguments, options, value)


def parse_parameters(
    command: str,
    chosen: SurrogateModel,
    arguments: Sequence[str],
    options: type[Options],
    value: type,
    *,
    leave_out: Sequence[str] = (),
) -> tuple[dict[str, Any], Options]:
    """A model's parameters given as flags of type `value`, and the options.

    Parameters in `leave_out` have no flag.
    """
    flags: Any = parse(
        _flags(chosen, options, value, leave_out),
        arguments[1:],
        prog=f"onset {command} {arguments[0]}",
    )
    flags.options.check()
    names = [p.name for p in chosen.parameters if p.name not in leave_out]
    given = {name: getattr(flags, name) for name in names}
    return {name: v for name, v in given.items() if v is not None}, flags.options


def _flags(chosen: SurrogateModel, options: type, value: type, leave_out: Sequence[str]) -> type:
    """A dataclass of one flag per parameter of the model, and `options`, whose flags follow."""
    required, optional = [], []
    for parameter in chosen.parameters:
        name, default = parameter.name, parameter.default
        if name in leave_out:
            continue
        if default is None:
            flag = tyro.conf.arg(name=name, help=parameter.meaning)
            required.append((name, Annotated[value, flag]))
        else:
            hint = f"(default: {default})"
            flag = tyro.conf.arg(name=name, help=parameter.meaning, help_behavior_hint=hint)
            optional.append((name, Annotated[value | None, flag], None))
    fields = [*required, *optional, ("options", options, options())]
    return dataclasses.make_dataclass(
        options.__name__, fields, frozen=True, namespace={"__doc__": options.__doc__}
    )


def axis(name: str, text: str) -> np.ndarray:
    """Values spelled as a number, a comma-separated list, or low:high:count.

    A range is even in the logarithm where both ends are positive, and else evenly spaced.
    """
    try:
        if ":" not in text:
            return np.array([float(part) for part in text.split(",")])
        low, high, count = text.split(":")
        if int(count) > 100_000_000:
            raise ValueError
        space = np.geomspace if float(low) > 0 and float(high) > 0 else np.linspace
        if int(count) < 1:
            raise ValueError
        return space(float(low), float(high), int(count))
    except ValueError:
        raise InputError(
            f"{name} is {text!r}: give a number, a list like 16,64,256, "
            "or low:high:count like 16:4096:100"
        ) from None


def set_up_jax() -> None:
    """float64, and compiled functions kept on disk for the next command.

    They lie in ONSET_CACHE_DIR, by default the user's cache folder. Equinox is told to answer an
    error with NaN, which a passage's status reports: raising takes a callback to Python, and such
    functions cannot be kept.
    """
    os.environ.setdefault("EQX_ON_ERROR", "nan")
    import jax

    dynamics.enable_x64()
    folder = os.environ.get("ONSET_CACHE_DIR") or platformdirs.user_cache_dir("onset")
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
        writable = os.access(folder, os.W_OK)
    except OSError:
        writable = False
    if not writable:
        return  # a read-only home costs the next command some seconds, and nothing else
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
