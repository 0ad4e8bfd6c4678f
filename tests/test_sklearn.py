"""The estimator is a scikit-learn citizen."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from stitchwork import StitchedRegressor


@parametrize_with_checks([StitchedRegressor(), StitchedRegressor.paper(local_model="krr"), StitchedRegressor(selection=None)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)
