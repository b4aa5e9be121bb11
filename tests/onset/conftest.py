"""What the tests of commands share: a cache of their own, and answers read as JSON."""

import json

import pytest

from onset.__main__ import main


@pytest.fixture(autouse=True)
def own_cache(shared_cache, monkeypatch):
    """Commands enable a compilation cache; here it is these tests' own."""
    monkeypatch.setenv("ONSET_CACHE_DIR", str(shared_cache))


@pytest.fixture
def answer(capsys):
    """Runs a command with --json and reads what it prints."""

    def run(*arguments):
        assert main([*arguments, "--json"]) == 0
        return json.loads(capsys.readouterr().out)

    return run
