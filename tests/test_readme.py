"""What the README shows is what happens."""

import doctest
import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"


def test_the_models_of_the_readme_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    assert blocks
    for block in blocks:
        exec(block, {})


def test_the_models_page_shows_its_file():
    page = (ROOT / "docs" / "your-own-model.md").read_text()
    (shown,) = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    assert shown == (ROOT / "docs" / "examples" / "series-weights.toml").read_text()


DOCUMENTED = ["claims", "equilibria", "expressions", "identities", "reduction", "settings"]


@pytest.mark.parametrize("name", [f"dynamics.{name}" for name in DOCUMENTED])
def test_examples_in_docstrings(name):
    failed, tried = doctest.testmod(importlib.import_module(name))
    assert tried and not failed
