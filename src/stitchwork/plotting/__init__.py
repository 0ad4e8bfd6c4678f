"""Pictures of fitted models with matplotlib, in scikit-learn's way: ``SomethingDisplay.from_estimator(model, ax=…)``.

Every display computes what it shows, keeps it, and draws it on an axis of yours or of its own. Models of more than two features are
shown on slices along two of them (see ``features`` and ``at``).
"""

from ._fields import FieldDisplay, GradientDisplay
from ._quality import CalibrationDisplay, ErrorDisplay, LeaveOneOutDisplay, RelevanceDisplay
from ._regions import RegionsDisplay, SettingsDisplay

__all__ = [
    "CalibrationDisplay",
    "ErrorDisplay",
    "FieldDisplay",
    "GradientDisplay",
    "LeaveOneOutDisplay",
    "RegionsDisplay",
    "RelevanceDisplay",
    "SettingsDisplay",
]
