"""The estimator is a scikit-learn citizen."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from stitchwork import StitchedRegressor


@parametrize_with_checks([StitchedRegressor(), StitchedRegressor.paper(), StitchedRegressor(selection=None, local_model="krr")])
def test_scikit_learn_checks(estimator, check):
    check(estimator)
