import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from made_tables import stores
from psilonnet import Design, PSiLONRegressor
from psilonnet.scale import fit_many, predict_many
from psilonnet.tables import LossWarning, OutOfRangeWarning

QUICK = {"width": 16, "depth": 1, "max_steps": 40, "learning_rate": 2e-2, "random_state": 0}
FIXED = PSiLONRegressor(**QUICK, reg_strength=1e-3, designs=[Design()], cv=2)


def test_far_rows_are_counted_in_one_warning(tmp_path):
    frame = stores(groups=2)
    fit_many(frame, by="store", target="y", estimator=FIXED, out=tmp_path, progress=False)
    with pytest.warns(OutOfRangeWarning, match="In 2 groups"):
        predict_many(frame.assign(size=1e6), by="store", models=tmp_path)


def test_unknown_levels_are_said_once_with_the_number_of_groups(tmp_path):
    frame = stores(groups=2)
    fit_many(frame, by="store", target="y", estimator=FIXED, out=tmp_path, progress=False)
    with pytest.warns(LossWarning, match=r"'town' \(such as 'A'\).* in 2 groups") as said:
        predict_many(frame.assign(town="A"), by="store", models=tmp_path)
    assert len(said) == 1


def test_keys_of_another_kind_are_refused(tmp_path):
    frame = stores(groups=2).assign(store=lambda table: [*[1, 2] * 30])
    fit_many(frame, by="store", target="y", estimator=FIXED, out=tmp_path, progress=False)
    as_floats = predict_many(frame.astype({"store": float}), by="store", models=tmp_path)
    assert np.isfinite(as_floats).all()
    with pytest.raises(ValueError, match=r"'store' held int64, and holds string now: convert it"):
        predict_many(frame.astype({"store": str}), by="store", models=tmp_path)


def test_folder_without_models_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="not a folder of models"):
        predict_many(stores(2), by="store", models=tmp_path)


def test_several_quantiles_of_each_group(tmp_path):
    frame = stores(groups=2)
    estimator = clone(FIXED).set_params(loss="quantile", quantile=(0.1, 0.9))
    fit_many(frame, by="store", target="y", estimator=estimator, out=tmp_path, progress=False)
    more = pd.concat([frame, frame.tail(3).assign(store="none of them")])
    with pytest.warns(UserWarning, match="3 of .* rows have no prediction"):
        found = predict_many(more, by="store", models=tmp_path)
    assert found.shape == (len(more), 2)
    assert np.isnan(found[-3:]).all()
    assert (found[:-3, 0] <= found[:-3, 1]).all()
    other = clone(FIXED).set_params(loss="quantile", quantile=(0.2, 0.9))
    with pytest.raises(ValueError, match="parameters"):  # not of the models that are there
        fit_many(frame, by="store", target="y", estimator=other, out=tmp_path, progress=False)
