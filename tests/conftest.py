"""Strict conditions for every test: float64, no rank promotion, no cache of the user's."""

from contextlib import contextmanager

import jax
import matplotlib
import pytest
from jax.experimental.compilation_cache.compilation_cache import reset_cache

import dynamics

matplotlib.use("Agg")
dynamics.enable_x64()
jax.config.update("jax_numpy_rank_promotion", "raise")


_CACHE = (
    "jax_compilation_cache_dir",
    "jax_persistent_cache_min_compile_time_secs",
    "jax_persistent_cache_min_entry_size_bytes",
)


@contextmanager
def compilation_cache(folder):
    """JAX's compilation cache, enabled in that folder for as long as the context lasts."""
    before = {name: getattr(jax.config, name) for name in _CACHE}
    for name, value in zip(_CACHE, (str(folder), 0.0, -1), strict=True):
        jax.config.update(name, value)
    reset_cache()
    yield folder
    for name, value in before.items():
        jax.config.update(name, value)
    reset_cache()


@pytest.fixture
def cache(tmp_path):
    """A compilation cache of the test's own."""
    with compilation_cache(tmp_path / "cache") as folder:
        yield folder


@pytest.fixture(scope="module")
def shared_cache(tmp_path_factory):
    """A compilation cache for the tests of one module."""
    with compilation_cache(tmp_path_factory.mktemp("cache")) as folder:
        yield folder
