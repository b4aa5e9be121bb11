"""What the README shows is what happens."""

import doctest
import importlib
import re
from pathlib import Path

import pytest

README = Path(__file__).parent.parent / "README.md"


def test_the_models_of_the_readme_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    assert blocks
    for block in blocks:
        exec(block, {})


@pytest.mark.parametrize("name", ["dynamics.identities", "dynamics.reduction", "dynamics.settings"])
def test_examples_in_docstrings(name):
    failed, tried = doctest.testmod(importlib.import_module(name))
    assert tried and not failed
