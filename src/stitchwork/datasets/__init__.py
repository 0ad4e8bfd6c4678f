"""Data sets: generators of test functions, and loaders of real data from the data home.

Every function returns a scikit-learn `Bunch` with ``data`` (n, d), ``target`` (n,), ``feature_names`` and ``DESCR``.
"""

from ._combustion import make_combustion
from ._generated import make_2d
from ._home import DATASETS, data_home, load_dataset
from ._sphere import make_sphere, sphere_solution

__all__ = ["DATASETS", "data_home", "load_dataset", "make_2d", "make_combustion", "make_sphere", "sphere_solution"]
