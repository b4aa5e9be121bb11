"""`onset derive MODEL`: its derivation from loss to laws, each equation with its verdict."""

from __future__ import annotations

import json
import sys
import textwrap
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Any

import sympy as sp
from tqdm import tqdm

from dynamics import InputError, Verdict
from surrogate_models import (
    MODELS,
    Chapter,
    Equation,
    Source,
    SurrogateModel,
    derive,
    equations,
    model,
)

from .arguments import choose_model, parse

USAGE = """\
usage: onset derive MODEL [--latex | --markdown | --json]
       onset derive --all [--markdown | --json]

From the loss of all trained parameters to the reduced flow, its Hessian, its linearisation and
its laws; each published equation beside what follows here. Verdicts are computed. With --all, one
table over every model. The exit code is 1 if a claim of ours fails, and only then."""

_STARRED = "the number is the paper's, the wording ours"
_MARKS = {
    Verdict.PROVED: "✓",
    Verdict.LEADING: "≈",
    Verdict.DIFFERS: "✗",
    Verdict.UNDECIDED: "?",
}


@dataclass(frozen=True)
class Derive:
    """A model's derivation, step by step, each published equation beside ours."""

    latex: bool = False
    """Print a LaTeX document."""
    markdown: bool = False
    """Print Markdown, formulas as LaTeX."""
    json: bool = False
    """Print one JSON object."""


def main(arguments: Sequence[str]) -> int:
    whole = bool(arguments) and arguments[0] == "--all"
    chosen = None if whole else choose_model(arguments, USAGE)
    if not whole and chosen is None:
        return 0
    config = parse(Derive, arguments[1:], prog=f"onset derive {arguments[0]}")
    forms = [name for name in ("latex", "markdown", "json") if getattr(config, name)]
    if len(forms) > 1:
        raise InputError(f"--{forms[0]} and --{forms[1]} are both given: choose one form")
    if whole and config.latex:
        raise InputError("--latex is given with --all: choose --markdown or --json")
    if chosen is None:
        return _table(forms[0] if forms else "text")
    chapters = derive(chosen)
    found = [equation for chapter in chapters for equation in chapter.equations]
    for equation in tqdm(found, desc="judging", leave=False, disable=None):
        _ = equation.judgement, equation.correction  # kept by the equation
    if config.json:
        print(json.dumps(_as_json(chosen, chapters)))
    elif config.latex:
        print(_as_latex(chosen, chapters))
    elif config.markdown:
        print(_as_markdown(chosen, chapters))
    else:
        print(_as_text(chosen, chapters))
    return _verdict(found)


def _verdict(found: Iterable[Equation]) -> int:
    return _complain(_summary(equation) for equation in found)


def _complain(rows: Iterable[dict[str, Any]]) -> int:
    """The exit code, after naming the claims of ours that fail."""
    failed = [row for row in rows if not row["sound"]]
    for row in failed:
        print(f"onset: a claim fails: {row['text']}: {row['verdict']}", file=sys.stderr)
    return 1 if failed else 0


def _summary(equation: Equation) -> dict[str, Any]:
    """All that is known of an equation, as JSON has it."""
    judgement, correction = equation.judgement, equation.correction
    claim = equation.claim
    return {
        "step": equation.step.value,
        "label": equation.label,
        "source": equation.source.value,
        "text": equation.text,
        "claimed": str(claim.claimed),
        "derived": str(claim.derived),
        "scale": str(claim.scale),
        "verdict": judgement.verdict.value,
        "grounds": str(judgement),
        "limit": {str(symbol): str(value) for symbol, value in claim.limit},
        "error": None if judgement.error is None else str(judgement.error),
        "witness": {
            "point": {str(symbol): str(value) for symbol, value in judgement.witness.point.items()},
            "claimed": str(judgement.witness.claimed),
            "derived": str(judgement.witness.derived),
        },
        "corrected": None if correction is None else str(correction.claim.claimed),
        "correction": None if correction is None else str(correction),
        "sound": equation.sound,
    }


def _summaries(name: str) -> tuple[str, list[dict[str, Any]]]:
    return name, [_summary(equation) for equation in equations(model(name))]


def _table(form: str) -> int:
    """Every model's equations; the models are judged in processes of their own."""
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        results = pool.map(_summaries, MODELS)
        results = dict(tqdm(results, total=len(MODELS), unit="model", leave=False, disable=None))
    if form == "json":
        print(json.dumps(results))
    else:
        print(_rows(results, markdown=form == "markdown"))
    return _complain(row for rows in results.values() for row in rows)


def _rows(results: dict[str, list[dict[str, Any]]], *, markdown: bool) -> str:
    """A line per published equation; ours are counted."""
    lines = []
    for name, rows in results.items():
        ours = [row for row in rows if row["source"] == Source.OURS]
        counts = [
            f"{sum(row['verdict'] == verdict for row in ours)} {verdict.value}"
            for verdict in Verdict
            if any(row["verdict"] == verdict for row in ours)
        ]
        lines.append([name, "", f"our derivation: {', '.join(counts)}", ""])
        for row in rows:
            if row["source"] != Source.OURS:
                verdict = row["verdict"]
                lines.append(
                    ["", row["label"], row["text"], f"{_MARKS[Verdict(verdict)]} {verdict}"]
                )
    if markdown:
        head = ["| model | equation | says | verdict |", "| --- | --- | --- | --- |"]
        rows = ("| " + " | ".join(map(_plain, line)) + " |" for line in lines)
        return "\n".join([*head, *rows, "", f"{_plain('*')} {_STARRED}"])
    widths = [2, *(max(len(line[i]) for line in lines) for i in (1, 2))]
    text = []
    for name, *cells in lines:
        if name:
            text.append(f"{name}: {cells[1]}")
        else:
            padded = [cell.ljust(width) for cell, width in zip(["", *cells], widths, strict=False)]
            text.append("".join([padded[0], "  ".join([*padded[1:], cells[-1]])]).rstrip())
    return "\n".join([*text, f"* {_STARRED}"] if any(line[1] for line in lines) else text)


def _left(side: sp.Basic) -> str:
    """A left-hand side in words: derivatives as dw/dt and ∂²L/∂w∂Δa."""
    if not isinstance(side, sp.Derivative):
        return str(side)
    inner, variables = side.expr, side.variables
    if len(variables) == 1:
        return f"d{inner.func}/d{variables[0]}"
    if len(set(variables)) == 1:
        return f"∂²{inner.func}/∂{variables[0]}²"
    return f"∂²{inner.func}/" + "".join(f"∂{variable}" for variable in variables)


def _name(equation: Equation) -> str:
    marks = {Source.OURS: "", Source.PRINTED: "", Source.RESTATED: ", restated"}
    label = f"[{equation.label}{marks[equation.source]}] " if equation.label else ""
    return label + equation.text


def _forms(chosen: SurrogateModel, equation: Equation) -> list[tuple[str, sp.Expr]]:
    """The formulas to show: a published one beside what follows here, and our own that fails.

    The attention stands as a symbol of its own.
    """
    observed = dict(chosen.flow.observables)
    alpha = {observed["alpha"]: sp.Symbol("alpha")} if "alpha" in observed else {}
    claim, judgement = equation.claim, equation.judgement
    forms = []
    if equation.source is not Source.OURS or not equation.sound:
        word = "claimed" if equation.source is Source.OURS else equation.source.value
        forms.append((word, claim.claimed.subs(alpha)))
        if judgement.verdict is not Verdict.PROVED and equation.correction is None:
            forms.append(("here", claim.derived.subs(alpha)))
    if equation.correction is not None:
        forms.append(("corrected", equation.correction.claim.claimed.subs(alpha)))
    return forms


def _as_text(chosen: SurrogateModel, chapters: Sequence[Chapter]) -> str:
    lines = [f"{chosen.name}: {chosen.title}", f"source: {chosen.source}"]
    for number, chapter in enumerate(chapters, 1):
        lines += ["", f"{number}. {chapter.step}"]
        lines += textwrap.wrap(chapter.text, 96, initial_indent="   ", subsequent_indent="   ")
        for left, right in chapter.formulas:
            right = right.tolist() if isinstance(right, sp.MatrixBase) else right
            lines.append(f"      {_left(left)} = {right}")
        for equation in chapter.equations:
            mark = _MARKS[equation.judgement.verdict]
            lines.append(f"   {mark} {_name(equation)}: {equation.judgement}")
            lines += [f"       {word + ':':11}{form}" for word, form in _forms(chosen, equation)]
            if equation.correction is not None:
                lines.append(f"       the correction: {equation.correction}")
    return "\n".join(lines)


def _math(left: sp.Basic, right: sp.Basic) -> str:
    return sp.latex(sp.Eq(left, right, evaluate=False))


def _plain(words: str) -> str:
    """Text that Markdown leaves as it is."""
    return words.replace("\\", "\\\\").replace("*", r"\*").replace("_", r"\_")


def _as_markdown(chosen: SurrogateModel, chapters: Sequence[Chapter]) -> str:
    lines = [f"# {_plain(chosen.name)}", "", _plain(f"{chosen.title}. Source: {chosen.source}.")]
    for chapter in chapters:
        title = chapter.step[0].upper() + chapter.step[1:]
        lines += ["", f"## {title}", "", _plain(chapter.text)]
        for left, right in chapter.formulas:
            lines += ["", f"$${_math(left, right)}$$"]
        if chapter.equations:
            lines.append("")
        for equation in chapter.equations:
            verdict, grounds = _grounds(equation)
            lines.append(f"- {_plain(_name(equation))}: **{verdict}**{_plain(grounds)}")
            for word, form in _forms(chosen, equation):
                lines.append(f"  - {word} ${sp.latex(form)}$")
            if equation.correction is not None:
                lines.append(f"  - the correction: {_plain(str(equation.correction))}")
    return "\n".join(lines)


def _grounds(equation: Equation) -> tuple[str, str]:
    """The verdict, and what its sentence says beyond it."""
    verdict = equation.judgement.verdict.value
    return verdict, str(equation.judgement).removeprefix(verdict)


_LATEX_TEXT = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "^": r"\textasciicircum{}",
        "~": r"\textasciitilde{}",
        **{character: rf"\{character}" for character in "&%_#${}"},
    }
)


def _as_latex(chosen: SurrogateModel, chapters: Sequence[Chapter]) -> str:
    """A document for lualatex or xelatex, with a font that has the text's symbols."""

    def text(words: str) -> str:
        return words.translate(_LATEX_TEXT)

    lines = [
        "% compile with lualatex or xelatex",
        r"\documentclass{article}",
        r"\usepackage{amsmath,unicode-math}",
        r"\setmainfont{DejaVu Serif}",
        r"\begin{document}",
        rf"\section*{{{text(chosen.name)}}}",
        text(f"{chosen.title}. Source: {chosen.source}."),
    ]
    for chapter in chapters:
        lines += ["", rf"\subsection*{{{chapter.step}}}", text(chapter.text)]
        lines += [rf"\[ {_math(left, right)} \]" for left, right in chapter.formulas]
        if chapter.equations:
            lines.append(r"\begin{itemize}")
            for equation in chapter.equations:
                verdict, grounds = _grounds(equation)
                # The empty group keeps a label in brackets from being the item's own.
                name = text(_name(equation))
                lines.append(rf"\item {{}}{name}: \emph{{{verdict}}}{text(grounds)}")
                for word, form in _forms(chosen, equation):
                    lines.append(rf"\[ \text{{{word}: }} {sp.latex(form)} \]")
                if equation.correction is not None:
                    lines.append(f"the correction: {text(str(equation.correction))}")
            lines.append(r"\end{itemize}")
    return "\n".join([*lines, r"\end{document}"])


def _as_json(chosen: SurrogateModel, chapters: Sequence[Chapter]) -> dict[str, Any]:
    return {
        "model": chosen.name,
        "title": chosen.title,
        "source": chosen.source,
        "assumptions": list(chosen.assumptions),
        "chapters": [
            {
                "step": chapter.step.value,
                "text": chapter.text,
                "formulas": [
                    {"left": _left(left), "right": str(right), "latex": _math(left, right)}
                    for left, right in chapter.formulas
                ],
                "equations": [_summary(equation) for equation in chapter.equations],
            }
            for chapter in chapters
        ],
    }
