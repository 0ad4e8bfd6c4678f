"""What a user would pick instead, tuned on a validation part of the same training data."""

from __future__ import annotations

import warnings
from itertools import product

import numpy as np
from scipy.interpolate import RBFInterpolator
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel
from sklearn.neighbors import KNeighborsRegressor
from sklearn.preprocessing import StandardScaler


def rmse(error):
    return float(np.sqrt(np.mean(np.square(error))))


def validation_split(n, most=1000):
    """Indices to fit on and to judge by."""
    shuffled = np.random.default_rng(1).permutation(n)
    held = min(most, n // 5)
    return shuffled[held:], shuffled[:held]


def tuned(fits, X, y):
    """The function of X_test from the candidate with the least validation error, fitted on everything; fits: (X, y) -> predict."""
    fit, held = validation_split(len(X))
    errors = [rmse(candidate(X[fit], y[fit])(X[held]) - y[held]) for candidate in fits]
    return fits[int(np.nanargmin(errors))](X, y)


def knn(X, y):
    """scikit-learn KNN: neighbours, weights and scaling."""

    def candidate(k, weights, scale):
        def fit(X, y):
            scaler = StandardScaler(with_mean=scale, with_std=scale).fit(X)
            model = KNeighborsRegressor(min(k, len(X)), weights=weights, n_jobs=2).fit(scaler.transform(X), y)
            return lambda Q: model.predict(scaler.transform(Q))

        return fit

    return tuned([candidate(*c) for c in product((1, 3, 5, 8, 12, 20, 40), ("uniform", "distance"), (True, False))], X, y)


def xgboost(X, y):
    """XGBoost: trees, depth, learning rate."""
    from xgboost import XGBRegressor

    def candidate(trees, depth, rate):
        def fit(X, y):
            model = XGBRegressor(n_estimators=trees, max_depth=depth, learning_rate=rate, subsample=0.8, n_jobs=2, random_state=0)
            scale = np.ptp(y) or 1.0
            model.fit(X, (y - y.mean()) / scale)
            return lambda Q: model.predict(Q).astype(float) * scale + y.mean()

        return fit

    depths = (3, 6, 9) if len(X) < 10_000 else (6, 9)
    grid = product((500, 1500), depths, (0.05,)) if len(X) < 200_000 else [(1500, 9, 0.1)]
    return tuned([candidate(*c) for c in grid], X, y)


def rbf(X, y):
    """scipy's RBFInterpolator on 100 neighbours: kernel, scale, smoothing; in standardised coordinates."""
    _, first = np.unique(X, axis=0, return_index=True)
    X, y = X[np.sort(first)], y[np.sort(first)]

    def candidate(kernel, epsilon, smoothing):
        def fit(X, y):
            scaler = StandardScaler().fit(X)
            U = scaler.transform(X)
            spacing = np.ptp(U, axis=0).prod() ** (1 / U.shape[1]) * (100 / len(U)) ** (1 / U.shape[1])  # about a ball of 100
            options = {"epsilon": epsilon / spacing} if epsilon else {}

            def predict(Q):
                try:
                    return RBFInterpolator(U, y, neighbors=min(100, len(U)), kernel=kernel, smoothing=smoothing, **options)(
                        scaler.transform(Q)
                    )
                except np.linalg.LinAlgError:
                    return np.full(len(Q), np.nan)

            return predict

        return fit

    fits = [candidate(k, None, s) for k in ("thin_plate_spline", "linear", "cubic") for s in (0.0, 1e-2, 1.0)]
    fits += [candidate("gaussian", e, s) for e in (0.5, 1.0, 2.0) for s in (1e-12, 1e-6, 1e-3)]
    return tuned(fits, X, y)


def gaussian_process(X, y):
    """scikit-learn's Gaussian process: Matérn-5/2 with one length scale a feature and noise, by its likelihood; with deviations."""
    kernel = ConstantKernel() * Matern(np.ones(X.shape[1]), (1e-2, 1e4), nu=2.5) + WhiteKernel(0.1, (1e-8, 1e2))
    scaler = StandardScaler().fit(X)
    model = GaussianProcessRegressor(kernel, normalize_y=True, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # length scales of features without relevance grow to their bound
        model.fit(scaler.transform(X), y)
    return lambda Q, return_std=False: model.predict(scaler.transform(Q), return_std=return_std)


def natural_boosting(X, y):
    """NGBoost: Gaussian with 500 rounds, the number of rounds by early stopping on a validation part; with deviations."""
    from ngboost import NGBRegressor

    fit, held = validation_split(len(X))
    model = NGBRegressor(verbose=False, random_state=0).fit(X[fit], y[fit], X_val=X[held], Y_val=y[held], early_stopping_rounds=50)
    rounds = max(int(model.best_val_loss_itr or model.n_estimators), 1)
    model = NGBRegressor(n_estimators=rounds, verbose=False, random_state=0).fit(X, y)

    def predict(Q, return_std=False):
        found = model.pred_dist(Q)
        return (found.loc, found.scale) if return_std else found.loc

    return predict


PEERS = {"xgboost": xgboost, "knn": knn, "scipy rbf, 100 neighbours": rbf}
SURE_PEERS = {"ngboost": natural_boosting, "gaussian process": gaussian_process}  # those that say how sure they are
LARGEST_PROCESS = 1500  # rows: beyond it a Gaussian process takes minutes


def fit_vecchia(X, y, neighbours=20):
    """GPBoost: a Gaussian process with a constant mean and a nugget, by Vecchia's approximation.

    Its kernel is exponential or Matérn-3/2, by likelihood.
    """
    import gpboost

    settings = {"gp_approx": "vecchia", "num_neighbors": neighbours, "num_parallel_threads": 1}
    models = [gpboost.GPModel(gp_coords=X, cov_function="matern", cov_fct_shape=shape, **settings) for shape in (0.5, 1.5)]
    for one in models:
        one.fit(y=y, X=np.ones((len(y), 1)))
    model = min(models, key=lambda one: one.get_current_neg_log_likelihood())

    def predict(Q):
        found = model.predict(gp_coords_pred=Q, X_pred=np.ones((len(Q), 1)), predict_var=True)
        return found["mu"], np.sqrt(found["var"])

    return predict
