"""
A metric learned from gradients
===============================

In several dimensions balls hold few points, and most features may not matter. The average outer product of the model's own
gradients says along which directions the response varies; ``metric="learned"`` measures distance by it, and regions become long
where nothing happens. ``metric="auto"``, the default, tries it and keeps it if the leave-one-out error falls.
"""

import matplotlib.pyplot as plt
import numpy as np

from stitchwork import StitchedRegressor

d = 6
direction = np.array([2.0, 1.0, 0.0, 0.0, 0.0, 0.0]) / np.sqrt(5)


def truth(X):
    """A wave along one direction, a gentle slope along the third feature, nothing else."""
    return np.sin(6 * X @ direction) + 0.3 * X[:, 2]


rng = np.random.default_rng(0)
X, Q = rng.uniform(-1, 1, (1200, d)), rng.uniform(-0.9, 0.9, (500, d))
models = {
    metric: StitchedRegressor(metric=metric, kernel="gaussian", region_size=100).fit(X, truth(X))
    for metric in ("euclidean", "learned")
}
errors = {metric: np.sqrt(np.mean((model.predict(Q) - truth(Q)) ** 2)) for metric, model in models.items()}
print({metric: f"{error:.4f}" for metric, error in errors.items()}, f"deviation of the response {truth(Q).std():.2f}")

# %%
# ``feature_relevance_`` is each feature's share in what the response depends on, from the slopes of the model: an answer to "which
# features matter?". The metric knows more: its first eigenvector is the direction of the wave.

relevance = models["learned"].feature_relevance_
_, vectors = np.linalg.eigh(models["learned"].metric_)
alignment = abs(vectors[:, -1] @ direction)
print("relevance", relevance.round(3))
print(f"cosine between the first eigenvector and the direction of the wave {alignment:.4f}")

# %%

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
left.bar(range(1, d + 1), relevance)
left.set(xlabel="feature", title="relevance")
for metric, model in models.items():
    right.plot(truth(Q), model.predict(Q), ".", markersize=4, label=f"{metric}, RMSE {errors[metric]:.3f}")
right.plot([-1.3, 1.3], [-1.3, 1.3], "k-", linewidth=0.8)
right.set(xlabel="truth", ylabel="prediction", title="500 queries")
right.legend()
plt.show()
