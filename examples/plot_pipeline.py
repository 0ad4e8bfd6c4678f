"""
In a scikit-learn pipeline
==========================

The model is a scikit-learn regressor: pipelines, cross-validation, grid searches and data frames work. Choosing is usually left
to the model itself, which needs no folds; a grid search is for what it does not choose, such as the size of regions.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from stitchwork import StitchedRegressor

rng = np.random.default_rng(0)
frame = pd.DataFrame({"depth": rng.uniform(0, 3000, 500), "salinity": rng.uniform(33, 37, 500)})
temperature = 4 + 20 * np.exp(-frame["depth"] / 600) * (1 + 0.3 * np.sin(2 * frame["salinity"])) + 0.2 * rng.normal(size=500)

# %%
# Depth in metres and salinity in parts per thousand are not comparable, so a scaler comes first. Kernel, degree, bandwidth and
# metric are fixed to be quick; the ridge is still chosen in each fit.

regressor = StitchedRegressor(kernel="matern52", degree=1, bandwidth=4.0, metric="euclidean")
model = make_pipeline(StandardScaler(), regressor)
folds = KFold(3, shuffle=True, random_state=0)
scores = cross_val_score(model, frame, temperature, cv=folds, scoring="neg_root_mean_squared_error", n_jobs=1)
cross_validated = -scores.mean()
print(f"RMSE in three folds: {np.round(-scores, 3)}")

# %%
# The closed form of leave-one-out says nearly the same, after one fit.

model.fit(frame, temperature)
leave_one_out = model[-1].loo_error_
print(f"cross-validation {cross_validated:.3f}, leave-one-out {leave_one_out:.3f}, noise 0.2")

# %%
# A grid search over the size of regions.

sizes = [30, 100, 200]
search = GridSearchCV(model, {"stitchedregressor__region_size": sizes}, cv=folds, scoring="neg_root_mean_squared_error")
search.fit(frame, temperature)
found = -search.cv_results_["mean_test_score"]
print("region sizes", dict(zip(sizes, found.round(4).tolist(), strict=True)))

figure, ax = plt.subplots(figsize=(6, 3.6), layout="constrained")
ax.errorbar(sizes, found, search.cv_results_["std_test_score"], marker="o", capsize=3, label="cross-validation")
ax.axhline(0.2, color="0.5", linestyle="--", label="noise")
ax.set(xlabel="points per region", ylabel="RMSE", xticks=sizes)
ax.legend()
plt.show()
