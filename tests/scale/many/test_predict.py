import pytest

from made_tables import stores
from psilonnet import Design, PSiLONRegressor
from psilonnet.scale import fit_many, predict_many
from psilonnet.tables import OutOfRangeWarning

QUICK = {"width": 16, "depth": 1, "max_steps": 40, "learning_rate": 2e-2, "random_state": 0}
FIXED = PSiLONRegressor(**QUICK, reg_strength=1e-3, designs=[Design()], cv=2)


def test_far_rows_are_counted_in_one_warning(tmp_path):
    frame = stores(groups=2)
    fit_many(frame, by="store", target="y", estimator=FIXED, out=tmp_path, progress=False)
    with pytest.warns(OutOfRangeWarning, match="In 2 groups"):
        predict_many(frame.assign(size=1e6), by="store", models=tmp_path)


def test_folder_without_models_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="not a folder of models"):
        predict_many(stores(2), by="store", models=tmp_path)
