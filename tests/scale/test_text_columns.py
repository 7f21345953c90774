import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from psilonnet import Design, PSiLONClassifier, PSiLONRegressor
from psilonnet.scale import FilesFailedError, fit_many, predict_files
from psilonnet.scale.text_columns import is_text, with_text_read
from psilonnet.tables import LossWarning, TextStyle


@pytest.fixture(scope="module")
def model():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "income": np.where(np.arange(300) % 9, rng.uniform(-2000, 2000, 300), np.nan),
            "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, 300), "D"),
            "city": rng.choice(["Rome", "Oslo"], 300),
        }
    )
    model = PSiLONClassifier(
        width=16, max_steps=40, reg_strength=1e-3, designs=[Design()], cv=2, verbose=False
    )
    return model.fit(table, rng.choice(["no", "yes"], 300))


def quietly(*arguments, **options):
    return predict_files(*arguments, progress=False, **options)


def text_file(path, income, since):
    """Write four rows with numbers and times as text."""
    cells = {"income": income, "since": since, "city": ["Rome"] * 4}
    pq.write_table(pa.table(cells), path, row_group_size=2)


CLEAR = ["$1,435.00", "$7.50", "n/a", None]
DATES = ["2020-01-31", "31 Jan 2020", "13/02/2020", "-"]


@pytest.mark.parametrize("runtime", ["numpy", "onnx"])
def test_text_is_read_where_the_model_takes_numbers_and_times(model, tmp_path, runtime):
    (tmp_path / "in").mkdir()
    text_file(tmp_path / "in" / "0.parquet", CLEAR, DATES)
    text_file(tmp_path / "in" / "1.parquet", pa.array(CLEAR).dictionary_encode(), DATES)
    numbers = pd.DataFrame(
        {
            "income": [1435.0, 7.5, np.nan, np.nan],
            "since": pd.to_datetime(["2020-01-31", "2020-01-31", "2020-02-13", None]),
            "city": "Rome",
        }
    )
    with pytest.raises(ValueError, match="'income' holds string, and the model takes"):
        quietly(model, tmp_path / "in", tmp_path / "out", runtime=runtime)
    done = quietly(model, tmp_path / "in", tmp_path / "out", runtime=runtime, text=TextStyle())
    assert done.text == {"income": "number", "since": "time"}
    found = pq.read_table(tmp_path / "out").to_pandas()
    np.testing.assert_allclose(found.iloc[:4, 1:], model.predict_proba(numbers), atol=1e-5)
    assert found.iloc[4:, 0].tolist() == found.iloc[:4, 0].tolist()
    again = found.iloc[4:, 1:].to_numpy()  # products round as their memory happens to lie
    np.testing.assert_allclose(again, found.iloc[:4, 1:], rtol=1e-12)


def test_text_is_read_the_same_in_every_block(model, tmp_path):
    text_file(tmp_path / "a.parquet", ["7.5", "8.5", "1,435", "2,435"], DATES)
    words = (model, tmp_path / "a.parquet", tmp_path / "out")
    with pytest.raises(FilesFailedError, match=r"rows 2 to 3: .*'1,435' is 1435 or 1\.435, and"):
        quietly(*words, block_rows=2, text=TextStyle())
    assert quietly(*words, block_rows=2, text=TextStyle(decimal=",")).new_rows == 2
    quietly(model, words[1], tmp_path / "whole", text=TextStyle(decimal=","))
    blocks, whole = (pq.read_table(tmp_path / name) for name in ("out", "whole"))
    np.testing.assert_allclose(blocks["probability of no"], whole["probability of no"], rtol=1e-12)
    with pytest.raises(ValueError, match="made with another decimal sign, or order of days"):
        quietly(*words, block_rows=2, text=TextStyle(decimal="."))
    with pytest.raises(ValueError, match="made with another decimal sign"):
        quietly(*words, block_rows=2, text=TextStyle())


@pytest.mark.parametrize("cluster", [None, pytest.param("local", marks=pytest.mark.long)])
def test_cells_that_cannot_be_read_are_counted(model, tmp_path, cluster):
    text_file(tmp_path / "a.parquet", ["$7", "$8", "on request", "$9"], DATES)
    with pytest.warns(LossWarning, match="count as missing: 1 of 'income'"):
        quietly(model, tmp_path / "a.parquet", tmp_path / "a", text=TextStyle(), cluster=cluster)
    text_file(tmp_path / "b.parquet", ["$7", "much", "more", "most"], DATES)
    with pytest.raises(FilesFailedError, match="Most cells of column 'income' must be readable"):
        quietly(model, tmp_path / "b.parquet", tmp_path / "b", text=TextStyle(), cluster=cluster)


def test_only_columns_of_text_are_read():
    words = ["$7", None]
    table = pa.table(
        {
            "a": pa.array(words, pa.large_string()),
            "b": words,
            "c": [1.0, 2.0],
            "d": pa.array([1, 2]).dictionary_encode(),
        }
    )
    assert [is_text(field.type) for field in table.schema] == [True, True, False, False]
    kinds = {"a": "number", "b": "category", "c": "number", "d": "number", "e": "number"}
    read, readings = with_text_read(table, kinds, TextStyle())
    assert list(readings) == ["a"]
    assert read["a"].type == pa.float64()
    assert read.drop_columns("a").equals(table.drop_columns("a"))
    assert read.column_names == table.column_names


def test_text_is_told_once_for_many_models(tmp_path):
    table = pd.DataFrame({"store": ["a", "b"] * 30, "price": [f"${k}" for k in range(60)]})
    table["rate"] = pd.Categorical([f"{k % 3}%" for k in range(60)])
    table["y"] = table["x"] = np.arange(60.0)
    model = PSiLONRegressor(
        width=4, max_steps=2, reg_strength=1e-3, designs=[Design()], cv=2, verbose=False
    )
    with pytest.warns(LossWarning, match=r"lost: 'price' \(such as '\$") as said:
        fit_many(table, by="store", target="y", estimator=model, out=tmp_path, progress=False)
    assert len(said) == 1
    assert "rate" not in str(said[0].message)
    assert said[0].filename == __file__
