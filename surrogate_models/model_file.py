"""A surrogate model of a user's own, from one TOML file.

Formulas are text, read by `dynamics.parse`. `docs/your-own-model.md` explains each entry.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from keyword import iskeyword
from pathlib import Path
from typing import Any

import sympy as sp

from dynamics import SMALL, Claim, GradientFlow, InputError, InvarianceError, Reduction, parse

from .ledger import Equation, Step, equations
from .model import RHO, Law, Parameter, SurrogateModel, Validity

_ENTRIES = {
    "name": str,
    "title": str,
    "source": str,
    "assumptions": list,
    "loss": str,
    "plateau_of": str,
    "timescale": str,
    "clock": str,
    "parameters": dict,
    "define": dict,
    "state": dict,
    "embedding": dict,
    "multiplicity": dict,
    "observables": dict,
    "constraints": list,
    "laws": dict,
    "claims": list,
}
_PARAMETER = {"meaning": str, "default": (str, int, float), "minimum": (int, float)}
_PARAMETER |= {"positive": bool, "integer": bool}
_LAW = {"time": str, "derivation": str, "measured": str, "validity": list}
_CLAIM = {"text": str, "claimed": str, "derived": str, "scale": str, "limit": dict}
_VALIDITY = {"minimum": dict, "maximum": dict, "error": list}
_CONSTRAINT = {"smaller": str, "larger": str, "remedy": str}


def load_model(path: str | Path) -> SurrogateModel:
    """The model that a TOML file describes, its reduction proved.

    Raises `InputError`, naming file and entry, on a file that is missing or no TOML, on unknown
    or missing entries, on formulas that cannot be read, and where the gradient leaves the
    embedding.
    """
    path = Path(path)
    try:
        with path.open("rb") as file:
            entries = tomllib.load(file)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"model file {path}: {reason}: give a TOML file") from None
    try:
        model = _model(entries, path.stem)
        model.prove()
        equations(model)  # reads the claims, without judging them
    except (InputError, InvarianceError) as error:
        raise InputError(f"{path}: {error}") from None
    return model


def _model(entries: Mapping[str, Any], stem: str) -> SurrogateModel:
    _check(entries, _ENTRIES, "the file", required=("loss", "state", "parameters"))
    parameters = {}
    for name, options in entries["parameters"].items():
        _unused(name, {}, "parameters")
        _check(options, _PARAMETER, f"parameters.{name}")
        lower = options.get("minimum")
        signed = lower is not None and (lower > 0 or (lower == 0 and options.get("positive")))
        parameters[name] = sp.Symbol(name, positive=True) if signed else sp.Symbol(name, real=True)
    state = {name: sp.Symbol(name, real=True) for name in entries["state"]}
    groups = {name: sp.Symbol(name, real=True) for name in entries.get("embedding", {})}
    if not state:
        raise InputError("state is empty: give each coordinate its initial value")
    for name in state:
        _unused(name, parameters, "state")
    for name in groups:
        _unused(name, parameters | state, "embedding")

    names: dict[str, sp.Expr] = {**parameters, **state}
    for name, text in entries.get("define", {}).items():
        _unused(name, names | groups, "define")
        names[name] = parse(text, names | groups, what=f"define.{name}")

    def read(text: Any, what: str, known: Mapping[str, sp.Expr] | None = None) -> sp.Expr:
        text = str(text) if isinstance(text, int | float) else text
        return parse(text, names if known is None else known, what=what)

    # Without an embedding each state is a trained parameter itself.
    loss = read(entries["loss"], "loss", names | groups)
    if groups:
        if stray := sorted(loss.free_symbols & set(state.values()), key=str):
            raise InputError(
                f"loss holds {', '.join(map(str, stray))}, which the embedding replaces: "
                f"write it in {', '.join(groups)}"
            )
        embedding = {
            groups[name]: read(text, f"embedding.{name}")
            for name, text in entries["embedding"].items()
        }
    else:
        # Of the same names; their assumptions tell them apart.
        groups = {name: sp.Symbol(name, extended_real=True) for name in state}
        embedding = {groups[name]: state[name] for name in state}
        loss = loss.subs({state[name]: groups[name] for name in state})
    counts = {}
    for name, text in entries.get("multiplicity", {}).items():
        if name not in groups:
            raise InputError(f"multiplicity.{name}: name one of {', '.join(groups)}")
        counts[groups[name]] = read(text, f"multiplicity.{name}", parameters)
    coordinates = tuple(state.values())
    reduction = Reduction(loss, embedding, coordinates, counts)
    scales = {name: read(entries[name], name) for name in ("timescale", "clock") if name in entries}
    flow = GradientFlow(
        reduction.reduced_loss,
        metric=reduction.metric,
        state=coordinates,
        parameters=tuple(parameters.values()),
        initial={
            state[name]: read(text, f"state.{name}", parameters)
            for name, text in entries["state"].items()
        },
        observables={
            name: read(text, f"observables.{name}")
            for name, text in entries.get("observables", {}).items()
        },
        **scales,
    )
    plateau_of = entries.get("plateau_of", "loss")
    flow.observable(plateau_of)
    described = tuple(
        Parameter(
            parameters[name],
            options.get("meaning", name),
            default=(
                read(options["default"], f"parameters.{name}.default", parameters)
                if "default" in options
                else None
            ),
            **{k: options[k] for k in ("minimum", "positive", "integer") if k in options},
        )
        for name, options in entries["parameters"].items()
    )
    # Random points keep to the parameters' own minima.
    half = sp.Rational(1, 2)
    domain = {
        parameter.symbol: (parameter.minimum + half, parameter.minimum + 3 * half)
        for parameter in described
        if parameter.minimum is not None
    }
    for parameter in described:
        if parameter.default is not None and parameter.default.is_number:
            parameter.check(float(parameter.default), integers=True)
    return SurrogateModel(
        name=entries.get("name", stem),
        title=entries.get("title", entries.get("name", stem)),
        source=entries.get("source", "your own"),
        assumptions=tuple(map(str, entries.get("assumptions", ()))),
        parameters=described,
        constraints=tuple(
            _constraint(entry, parameters) for entry in entries.get("constraints", ())
        ),
        reduction=reduction,
        flow=flow,
        laws=tuple(
            _law(name, options, parameters) for name, options in entries.get("laws", {}).items()
        ),
        plateau_of=plateau_of,
        ledger=lambda _: [_claim(c, names, flow, domain) for c in entries.get("claims", ())],
    )


def _claim(
    entry: Any, names: Mapping[str, sp.Expr], flow: GradientFlow, domain: Mapping[sp.Symbol, Any]
) -> Equation:
    """A claim about the model, to be judged in its derivation."""
    _check(entry, _CLAIM, "claims", required=("claimed", "derived"))
    rates = {f"rate_{z}": rate for z, rate in zip(flow.state, flow.rhs, strict=True)}
    known = {**names, **rates, "loss": flow.loss, "epsilon": SMALL}
    sides = {
        side: parse(entry[side], known, what=f"claims.{side}")
        for side in ("claimed", "derived", "scale")
        if side in entry
    }
    limit = {}
    for name, text in entry.get("limit", {}).items():
        if not isinstance(names.get(name), sp.Symbol):
            raise InputError(f"claims.limit names {name}, which is no parameter or state")
        limit[names[name]] = parse(text, known, what=f"claims.limit.{name}")
    text = entry.get("text", f"{entry['derived']} = {entry['claimed']}")
    return Equation(Step.LAW, text, Claim(limit=limit, domain=domain, **sides))


def _law(name: str, options: Mapping[str, Any], parameters: Mapping[str, sp.Expr]) -> Law:
    where = f"laws.{name}"
    _check(options, _LAW, where, required=("time",))
    return Law(
        name=name,
        time=parse(options["time"], {**parameters, "rho": RHO}, what=f"{where}.time"),
        derivation=options.get("derivation", "stated by the model's file"),
        validity=tuple(_validity(v, where, parameters) for v in options.get("validity", ())),
        limits=sp.true,
        measured=options.get("measured", "stated by the model's file"),
    )


def _validity(entry: Any, where: str, parameters: Mapping[str, sp.Expr]) -> Validity:
    _check(entry, _VALIDITY, f"{where}.validity", required=("error",))
    bounds = []
    for side, relation in (("minimum", sp.Ge), ("maximum", sp.Le)):
        for name, text in entry.get(side, {}).items():
            if name not in parameters:
                raise InputError(f"{where}.validity names {name}, which is no parameter")
            bound = parse(str(text), parameters, what=f"{where}.validity.{side}.{name}")
            bounds.append(relation(parameters[name], bound))
    error = entry["error"]
    if len(error) != 2 or not all(isinstance(e, int | float) for e in error):
        raise InputError(f"{where}.validity.error is {error}: give the least and the greatest")
    return Validity(sp.And(*bounds), (float(error[0]), float(error[1])))


def _constraint(entry: Any, parameters: Mapping[str, sp.Expr]) -> tuple[Any, str]:
    _check(entry, _CONSTRAINT, "constraints", required=("smaller", "larger"))
    smaller, larger = (
        parse(entry[side], parameters, what=f"constraints.{side}") for side in ("smaller", "larger")
    )
    default = f"give {entry['smaller']} < {entry['larger']}"
    return sp.Lt(smaller, larger), entry.get("remedy", default)


def _unused(name: str, taken: Mapping[str, Any], where: str) -> None:
    if name in taken:
        raise InputError(f"{where}.{name}: the name is taken; give another")
    if not name.isidentifier() or iskeyword(name):
        raise InputError(f"{where}.{name}: give letters, digits and underscores, and no keyword")


def _check(
    entries: Any, known: Mapping[str, Any], where: str, required: tuple[str, ...] = ()
) -> None:
    """Raise `InputError` on unknown, missing or mistyped entries of a TOML table."""
    if not isinstance(entries, Mapping):
        raise InputError(f"{where} is {entries!r}: give a table")
    for name, value in entries.items():
        if name not in known:
            raise InputError(f"{where} has an entry {name}: the entries are {', '.join(known)}")
        kinds = known[name]
        wrong = isinstance(value, bool) and kinds is not bool
        if wrong or not isinstance(value, kinds):
            kind = getattr(kinds, "__name__", "number or text")
            words = {"str": "text", "dict": "a table", "list": "a list", "bool": "true or false"}
            raise InputError(f"{where}.{name} is {value!r}: give {words.get(kind, kind)}")
    if missing := [name for name in required if name not in entries]:
        raise InputError(f"{where} lacks {', '.join(missing)}: add what is missing")
