"""Strict conditions for every test: float64, no rank promotion, no cache of the user's."""

import jax
import matplotlib
import pytest

import dynamics

matplotlib.use("Agg")
dynamics.enable_x64()
jax.config.update("jax_numpy_rank_promotion", "raise")


@pytest.fixture
def cache(tmp_path):
    """JAX's compilation cache, enabled in a folder of the test's own."""
    names = (
        "jax_compilation_cache_dir",
        "jax_persistent_cache_min_compile_time_secs",
        "jax_persistent_cache_min_entry_size_bytes",
    )
    before = {name: getattr(jax.config, name) for name in names}
    for name, value in zip(names, (str(tmp_path / "cache"), 0.0, -1), strict=True):
        jax.config.update(name, value)
    jax.experimental.compilation_cache.compilation_cache.reset_cache()
    yield tmp_path / "cache"
    for name, value in before.items():
        jax.config.update(name, value)
    jax.experimental.compilation_cache.compilation_cache.reset_cache()
