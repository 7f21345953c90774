"""scikit-learn's own tools run our estimators in parallel, on any back end of joblib."""

from contextlib import contextmanager
from importlib import import_module

import joblib
import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV, cross_validate

from psilonnet import Design, PSiLONClassifier, PSiLONRegressor

QUICK = {
    "width": 8,
    "depth": 1,
    "max_steps": 20,
    "reg_strength": 1e-3,
    "designs": [Design()],
    "cv": 2,
    "random_state": 0,
}


@contextmanager
def loky():
    yield
    # Idle workers would outlive the test.
    joblib.externals.loky.get_reusable_executor().shutdown(wait=True)


@contextmanager
def dask():
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster),
    ):
        yield


@contextmanager
def ray():
    ray = pytest.importorskip("ray")
    import_module("ray.util.joblib").register_ray()
    ray.init(address="local", num_cpus=2, include_dashboard=False)
    try:
        yield
    finally:
        ray.shutdown()


@pytest.mark.filterwarnings("ignore")  # of the back ends
@pytest.mark.parametrize(
    "backend", [loky, *(pytest.param(cluster, marks=pytest.mark.long) for cluster in (dask, ray))]
)
def test_parallel_tools_give_what_one_process_gives(backend):
    x = np.random.default_rng(0).normal(size=(60, 2))
    classifier, regressor = PSiLONClassifier(**QUICK), PSiLONRegressor(**QUICK)
    grid = {"reg_strength": [1e-3, 1e-1]}
    with backend(), joblib.parallel_config(backend=backend.__name__, n_jobs=2):
        scores = cross_validate(regressor, x, x[:, 0], cv=2)["test_score"]
        search = GridSearchCV(classifier, grid, cv=2).fit(x, x[:, 0] > 0)
    np.testing.assert_allclose(
        scores, cross_validate(regressor, x, x[:, 0], cv=2)["test_score"], atol=1e-6
    )
    alone = GridSearchCV(classifier, grid, cv=2).fit(x, x[:, 0] > 0)
    assert search.best_params_ == alone.best_params_
    np.testing.assert_allclose(search.predict_proba(x), alone.predict_proba(x), atol=1e-6)
