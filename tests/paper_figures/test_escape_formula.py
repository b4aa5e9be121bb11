"""The escape formula's overestimate, as a figure with its numbers."""

import json

from paper_figures.escape_formula import DIMENSIONS, LENGTHS, main


def test_the_formula_overestimates_and_the_laws_do_not(tmp_path):
    main(tmp_path / "figures")
    numbers = json.loads((tmp_path / "figures" / "escape-formula.json").read_text())
    assert numbers["T"] == LENGTHS.tolist() and numbers["d"] == DIMENSIONS.tolist()
    formula = [value for row in numbers["escape formula"] for value in row]
    assert 1.6 < min(formula) < 1.7 and 7.0 < max(formula) < 7.1
    for law, most in (("plateau law", 0.04), ("second-order law", 0.02)):
        assert all(1 - most < value < 1.001 for row in numbers[law] for value in row)
    for suffix in (".png", ".pdf"):
        assert (tmp_path / "figures" / f"escape-formula{suffix}").stat().st_size > 5000
