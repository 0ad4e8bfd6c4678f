"""What a user would pick instead, for speed: each is `fit(X, y)` returning `predict(Q)`, with plain settings, not tuned."""

from __future__ import annotations

import numpy as np


def scipy_rbf(neighbors):
    """scipy's RBFInterpolator on the nearest points; a Gaussian in two and three dimensions, tuned by hand, else its default."""

    def fit(X, y):
        from scipy.interpolate import RBFInterpolator

        n, d = X.shape
        if d > 3:
            return RBFInterpolator(X, y, neighbors=neighbors, degree=1)
        # The Gaussian's width, in mean distances of the points: the best of a grid on the 2-D function at 10^5 points.
        spacing = (np.ptp(X, axis=0).prod() / n) ** (1 / d)
        return RBFInterpolator(X, y, neighbors=neighbors, degree=2, kernel="gaussian", epsilon=0.15 / spacing)

    return fit


def knn(X, y):
    """scikit-learn, eight neighbours by distance."""
    from sklearn.neighbors import KNeighborsRegressor

    return KNeighborsRegressor(8, weights="distance").fit(X, y).predict


def kernel_ridge(X, y):
    """scikit-learn's kernel ridge regression on all points at once."""
    from sklearn.kernel_ridge import KernelRidge

    spacing = (np.ptp(X, axis=0).prod() / len(X)) ** (1 / X.shape[1])
    return KernelRidge(alpha=1e-8, kernel="rbf", gamma=(0.15 / spacing) ** 2).fit(X, y).predict


def xgboost(X, y):
    """500 trees of depth 8."""
    from xgboost import XGBRegressor

    return XGBRegressor(n_estimators=500, max_depth=8, learning_rate=0.1, n_jobs=1).fit(X, y).predict


def lightgbm(X, y):
    """500 trees of 255 leaves."""
    from lightgbm import LGBMRegressor

    model = LGBMRegressor(n_estimators=500, num_leaves=255, learning_rate=0.1, n_jobs=1, verbose=-1).fit(X, y)
    return lambda Q: model.predict(Q, num_threads=1)


def svgp(X, y):
    """GPyTorch's sparse variational process: 500 inducing points, Matérn 5/2, at most 3,000 steps of 1,024 points."""
    import gpytorch
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(0)
    centre, spread, mean, scale = X.mean(axis=0), X.std(axis=0), y.mean(), y.std()
    T = torch.tensor((X - centre) / spread, dtype=torch.float32)
    Y = torch.tensor((y - mean) / scale, dtype=torch.float32)

    class Model(gpytorch.models.ApproximateGP):
        def __init__(self, inducing):
            distribution = gpytorch.variational.CholeskyVariationalDistribution(len(inducing))
            super().__init__(gpytorch.variational.VariationalStrategy(self, inducing, distribution))
            self.mean_module = gpytorch.means.ConstantMean()
            self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.MaternKernel(2.5, ard_num_dims=inducing.shape[1]))

        def forward(self, x):
            return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))

    model, likelihood = Model(T[torch.randperm(len(T))[:500]].clone()), gpytorch.likelihoods.GaussianLikelihood()
    optimizer = torch.optim.Adam([*model.parameters(), *likelihood.parameters()], lr=0.01)
    objective = gpytorch.mlls.VariationalELBO(likelihood, model, len(T))
    for _ in range(min(3000, 10 * len(T) // 1024)):
        rows = torch.randint(len(T), (1024,))
        optimizer.zero_grad()
        (-objective(model(T[rows]), Y[rows])).backward()
        optimizer.step()
    model.eval()

    def predict(Q):
        with torch.no_grad():
            queries = torch.tensor((Q - centre) / spread, dtype=torch.float32)
            return torch.cat([model(part).mean for part in queries.split(4096)]).numpy() * scale + mean

    return predict


def muygpys(X, y):
    """MuyGPyS, 50 neighbours, Matérn 5/2 with a length scale of twenty spacings."""
    from MuyGPyS.gp import MuyGPS
    from MuyGPyS.gp.deformation import F2, Isotropy
    from MuyGPyS.gp.hyperparameter import Parameter
    from MuyGPyS.gp.kernels import Matern
    from MuyGPyS.gp.noise import HomoscedasticNoise
    from MuyGPyS.neighbors import NN_Wrapper

    spacing = (np.ptp(X, axis=0).prod() / len(X)) ** (1 / X.shape[1])
    neighbours = NN_Wrapper(X, 50, nn_method="exact", algorithm="ball_tree")
    kernel = Matern(smoothness=Parameter(2.5), deformation=Isotropy(F2, length_scale=Parameter(20 * spacing)))
    model = MuyGPS(kernel=kernel, noise=HomoscedasticNoise(1e-8))
    mean = y.mean()

    def predict(Q):
        found = []
        for start in range(0, len(Q), 2000):
            part = Q[start : start + 2000]
            near, _ = neighbours.get_nns(part)
            tensors = model.make_predict_tensors(np.arange(len(part)), near, part, X, (y - mean)[:, None])
            cross, pairwise, targets = tensors[-3:]
            found.append(np.ravel(model.posterior_mean(model.kernel(pairwise), model.kernel(cross), targets)))
        return np.concatenate(found) + mean

    return predict


def ferreus(X, y):
    """ferreus_rbf: one cubic spline through all points, by fast multipoles."""
    from ferreus_rbf import RBFInterpolator
    from ferreus_rbf.interpolant_config import InterpolantSettings, RBFKernelType

    model = RBFInterpolator(np.ascontiguousarray(X), y[:, None], InterpolantSettings(RBFKernelType.Cubic))
    return lambda Q: np.ravel(model.evaluate(Q))
