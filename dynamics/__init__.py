"""Symbolic dynamical systems, compiled to JAX: trajectories and first-passage times.

Names load on first use, so that importing the package costs no more than numpy.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
