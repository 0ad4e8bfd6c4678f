"""The methods that the paper compares with, as scikit-learn estimators.

Bandwidths are in units of b, the mean pairwise distance of the points of a model, and ridges are those of kernel ridge regression,
as in `stitchwork.StitchedRegressor`. Random forests, boosted trees and the sigmoid network are other libraries' own, and not here.
"""

from ._kernel_ridge import GlobalKRR, LocalKRR
from ._nadaraya_watson import NadarayaWatson
from ._rbf import NeighborRBF
from ._siren import Siren
from ._svm import KNNSVM, LocalSVM

__all__ = ["KNNSVM", "GlobalKRR", "LocalKRR", "LocalSVM", "NadarayaWatson", "NeighborRBF", "Siren"]
