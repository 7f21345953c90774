"""Tables are read, split, encoded and scaled as the paper says."""

import numpy as np
import pytest

from experiments.data import EIGHT, encode_columns, load_table, make_parts, split_rows


def test_split_is_2000_rows_and_the_rest_halved():
    split = split_rows(30_000, seed=0)
    assert [len(part) for part in (split.train, split.valid, split.test)] == [2000, 9000, 9000]
    assert len(np.unique(np.concatenate([split.train, split.valid, split.test]))) == 20_000
    assert (split.train == split_rows(30_000, seed=0).train).all()
    assert not (split.train == split_rows(30_000, seed=1).train).all()


@pytest.mark.parametrize("name", EIGHT)
def test_table_is_encoded_and_scaled_by_its_training_rows(name, data_dir):
    table = load_table(name, data_dir)
    parts = make_parts(table, seed=0)
    assert len(parts.train.x) == 2000
    assert abs(len(parts.valid.x) - len(parts.test.x)) <= 1
    assert all(part.x.isfinite().all() for part in (parts.train, parts.valid, parts.test))
    if table.task == "regression":
        y = parts.train.y.double().numpy()
        low, median, high = np.quantile(y, [0.25, 0.5, 0.75])
        assert median == pytest.approx(0, abs=1e-5)
        assert (high - low) / 2 == pytest.approx(1, abs=1e-4)
    else:
        assert set(parts.train.y.unique().tolist()) == {0.0, 1.0}


def test_categories_become_columns_or_codes(data_dir):
    table = load_table("compas_two_years", data_dir)
    train = split_rows(len(table.y), seed=0).train
    categories = table.x.select_dtypes("category")
    assert len(categories.columns) > 0
    codes = encode_columns(table, train, codes=True)
    assert codes.shape[1] == table.x.shape[1]
    columns = encode_columns(table, train)
    levels = [len(categories[name].cat.categories) for name in categories]
    expected = table.x.shape[1] - len(levels) + sum(1 if k == 2 else k for k in levels)
    assert columns.shape[1] == expected


def test_unknown_table_is_refused(data_dir):
    with pytest.raises(ValueError, match=r"must be one of .* Got 'nothing' instead"):
        load_table("nothing", data_dir)
