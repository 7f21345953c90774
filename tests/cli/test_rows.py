"""Text in the files of commands is read alike in all of them, and never guessed."""

import datetime as dt

import numpy as np
import polars as pl
import pytest

from psilonnet import load
from psilonnet.cli.files import read_table
from psilonnet.cli.options import Task
from psilonnet.cli.rows import read_for, read_training
from psilonnet.tables import TextError, TextStyle, fit_encoder, read_columns
from typed import refusal, run

FIT = ("--max-steps", 5, "--target", "y")


def numbers(rows=60):
    rng = np.random.default_rng(0)
    return pl.DataFrame(
        {
            "price": (rng.uniform(1, 9999, rows) * 100).round() / 100,
            "rate": rng.integers(0, 100, rows) / 2,
            "sold": [dt.datetime(2023, 1 + k % 12, 1 + k % 28) for k in range(rows)],
            "city": rng.choice(["Oslo", "Rome", "Lima"], rows),
            "y": rng.normal(size=rows),
        }
    )


def as_text(table):
    """Return the same table as people write it."""
    return table.with_columns(
        pl.Series("price", [f"${x:,.2f}" for x in table["price"]]),
        pl.Series("rate", [f"{x:.1f} %".replace(".", ",") for x in table["rate"]]),
        pl.Series("sold", [f"{x:%d/%m/%Y}" for x in table["sold"]]),
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rows")
    numbers().write_parquet(folder / "numbers.parquet")
    as_text(numbers()).write_csv(folder / "text.csv")
    as_text(numbers()).write_parquet(folder / "text.parquet")
    run("fit", folder / "numbers.parquet", *FIT, "--out", folder / "numbers.psilon")
    return folder


@pytest.mark.parametrize("name", ["text.csv", "text.parquet"])
def test_a_model_of_text_is_the_model_of_its_numbers(folder, name):
    _, said = run("fit", folder / name, *FIT, "--out", folder / "text.psilon")
    assert "Read as numbers: 'price' (such as '$" in said
    assert "'rate' (such as '" in said
    assert "Read as dates: 'sold' (such as '" in said
    assert "city" not in said
    model = load(folder / "text.psilon")
    assert model.encoder_.kinds == ("number", "number", "time", "category")
    assert model.encoder_ == load(folder / "numbers.psilon").encoder_


def test_every_command_reads_text_as_the_model_was_taught(folder):
    model = folder / "numbers.psilon"
    wanted, said = run("predict", model, folder / "numbers.parquet")
    assert said == ""
    for name in ("text.csv", "text.parquet"):
        found, said = run("predict", model, folder / name)
        assert found == wanted
        assert "Read as numbers: 'price' (such as '$" in said
    moves = ("--delta", "price=5", "--delta", "sold=1")
    wanted, _ = run("certify", model, folder / "numbers.parquet", *moves)
    assert run("certify", model, folder / "text.csv", *moves)[0] == wanted
    _, said = run(
        "report", model, "--data", folder / "text.csv", "--target", "y", "--out", folder / "c.html"
    )
    assert "Read as dates: 'sold'" in said


def test_a_target_of_amounts_is_a_regression(folder, tmp_path):
    out = tmp_path / "m.psilon"
    printed, said = run(
        "fit", folder / "text.csv", "--target", "price", "--max-steps", 5, "--out", out
    )
    assert "(regression;" in printed
    assert "'price' (such as '$" in said
    card = tmp_path / "c.html"
    run("report", out, "--data", folder / "text.csv", "--target", "price", "--out", card)
    assert "60 rows given to this report" in card.read_text(encoding="utf-8")
    few = tmp_path / "few.csv"
    few.write_text("x,y\n" + "\n".join(f"{k},{k % 3}0%" for k in range(40)))
    fit = ("fit", few, "--target", "y", "--max-steps", 5, "--out", out)
    printed, _ = run(*fit, "--task", "classification")
    assert load(out).classes_.tolist() == ["00%", "10%", "20%"]
    assert "(regression;" in run("fit", few, "--target", "x", "--max-steps", 5, "--out", out)[0]


def table(tmp_path, header, *rows, name="t.csv"):
    path = tmp_path / name
    path.write_text("\n".join([header, *rows]), encoding="utf-8")
    return path


def read(path, **options):
    style = TextStyle(options.pop("decimal", None), options.pop("day_first", None))
    return read_training(path, style, target="y", **options)


def test_words_for_missing_cells_that_are_levels_stay_words(tmp_path):
    taught = pl.DataFrame({"alley": ["None", "Grvl", None] * 20, "code": ["1", "2", "NA"] * 20})
    columns = read_columns(taught)
    encoder = fit_encoder(columns, np.ones(60))
    path = tmp_path / "rows.csv"
    taught.with_columns(other=1).write_csv(path)
    path.write_text(path.read_text() + "\n?,None,1\n", encoding="utf-8")
    found = read_for(encoder, path, TextStyle())
    np.testing.assert_array_equal(encoder.encode(read_columns(found[:60])), encoder.encode(columns))
    assert found.rows()[60:] == [(None, None)]  # neither is a level of its column


def test_amounts_with_two_readings_ask_for_the_option(tmp_path):
    path = table(tmp_path, "a,y", *(f'"{k},{k}00",{k}' for k in range(1, 10)))
    said = refusal("fit", path, *FIT, "--out", tmp_path / "m")
    assert "'1,100' is 1100 or 1.1" in said
    assert "--decimal" in said
    assert "--words a, or leave it out with --drop a." in said
    target = ("fit", path, "--target", "a", "--out", tmp_path / "m")
    assert refusal(*target).endswith("keep it as words with --words a.")
    assert read(path, decimal=".")["a"][0] == 1100
    assert read(path, decimal=",")["a"][0] == 1.1
    assert read(path, words=["a"])["a"][0] == "1,100"
    assert run("fit", path, *FIT, "--out", tmp_path / "m", "--words", "a")[1] == ""
    model = tmp_path / "m.psilon"
    run("fit", path, *FIT, "--out", model, "--decimal", ",")
    assert load(model).encoder_.codes[0].high == 9.9
    assert "'1,100' is 1100 or 1.1" in refusal("predict", model, path)  # not otherwise than in fit
    run("predict", model, path, "--decimal", ",")


def test_dates_with_two_readings_ask_for_the_option(tmp_path):
    path = table(tmp_path, "a,y", *(f"0{1 + k % 9}/02/2023,{k}" for k in range(30)))
    said = refusal("fit", path, *FIT, "--out", tmp_path / "m")
    assert "'01/02/2023' is 2023-02-01 or 2023-01-02" in said
    assert "--day-first or --month-first" in said
    assert read(path, day_first=True)["a"][0] == dt.datetime(2023, 2, 1)
    assert read(path, day_first=False)["a"][0] == dt.datetime(2023, 1, 2)
    model = tmp_path / "m.psilon"
    run("fit", path, *FIT, "--out", model, "--month-first")
    assert "not guessed" in refusal("predict", model, path)
    assert "not guessed" in refusal("certify", model, path, "--delta", "a=1")
    assert "not guessed" in refusal("report", model, "--data", path, "--out", tmp_path / "c.html")
    for option in ("--day-first", "--month-first"):
        run("predict", model, path, option)
        run("certify", model, path, "--delta", "a=1", option)
        run("report", model, "--data", path, "--out", tmp_path / "c.html", option)
    decided = table(tmp_path, "a,y", "01/02/2023,1", "01/13/2023,2")
    assert read(decided)["a"][0] == dt.datetime(2023, 1, 2)


def test_a_point_may_separate_thousands_where_commas_do_not_separate_cells(tmp_path):
    path = table(tmp_path, "a;y", "1.435;1", "950;2", "2.100;3")
    with pytest.raises(TextError, match=r"'1\.435' is 1\.435 or 1435"):
        read(path)
    assert read(path, decimal=",")["a"].to_list() == [1435, 950, 2100]
    assert read(path, decimal=".")["a"].to_list() == [1.435, 950, 2.1]
    clear = table(tmp_path, "a;y", "1.435;1", "950;2", "2.1;3")
    assert read(clear)["a"].to_list() == [1.435, 950, 2.1]
    assert read(clear, decimal=",")["a"].to_list() == [1435, 950, 2.1]
    commas = table(tmp_path, "a,y", "1.435,1", "950,2")
    assert read(commas)["a"].to_list() == [1.435, 950]
    assert read(commas, decimal=",")["a"].to_list() == [1435, 950]


def test_codes_stay_words_and_are_named(tmp_path, capsys):
    path = table(tmp_path, "zip,month,n,y", "00123,01,7,1", "12345,12,8,2", ",02,9,3")
    found = read(path)
    assert found["zip"].to_list() == ["00123", "12345", None]
    assert found["month"].to_list() == ["01", "12", "02"]
    assert found["n"].to_list() == [7, 8, 9]
    assert "Read as words, since digits with leading zeros are codes: 'zip', 'month'" in (
        capsys.readouterr().err
    )
    assert read(path.rename(tmp_path / "u.csv"), words=["n"])["n"].to_list() == ["7", "8", "9"]


def test_codes_stay_words_as_a_target_and_as_the_key_of_groups(tmp_path, capsys):
    path = table(tmp_path, "store,a,y", "01,1,00", "1,2,0", "001,3,01", "7,4,1")
    found = read(path, by="store")
    assert found["store"].to_list() == ["01", "1", "001", "7"]
    assert found["y"].to_list() == ["00", "0", "01", "1"]
    assert "digits with leading zeros are codes: 'store', 'y'" in capsys.readouterr().err
    assert read(path, task=Task.regression)["y"].to_list() == [0, 0, 1, 1]


@pytest.mark.parametrize("options", [(), ("--words", "y")])
def test_a_report_reads_classes_as_the_model_was_taught(tmp_path, options):
    marks = ("0", "1") if options else ("00", "01")
    path = table(tmp_path, "a,y", *(f"{k},{marks[k % 2]}" for k in range(40)))
    model, card = tmp_path / "m.psilon", tmp_path / "c.html"
    run("fit", path, *FIT, *options, "--out", model)
    assert load(model).classes_.tolist() == list(marks)
    new = table(tmp_path, "a,y", *(f"{k},{k % 2}" for k in range(40))) if options else path
    run("report", model, "--data", new, "--target", "y", "--out", card)
    assert "40 rows given to this report" in card.read_text(encoding="utf-8")


def test_whole_numbers_with_a_fraction_of_zero_are_the_levels_that_they_were(tmp_path):
    model = tmp_path / "m.psilon"
    rows = (f"{('1', '2', 'x')[k % 3]},{k}" for k in range(40))
    run("fit", table(tmp_path, "a,y", *rows), *FIT, "--out", model)
    new = table(tmp_path, "a,b", "1.0,", "2.0,", ",1", "2.5,", name="new.csv")
    assert read_for(load(model).encoder_, new, TextStyle())["a"].to_list() == [
        "1",
        "2",
        None,
        "2.5",
    ]


def test_blank_lines_are_no_rows_and_are_counted(tmp_path):
    rows = [f"{k},{k}" for k in range(40)]
    path = table(tmp_path, "\n\na,y", *rows[:20], "", *rows[20:], ",", "", "")
    model = tmp_path / "m.psilon"
    printed, said = run("fit", path, *FIT, "--task", "regression", "--out", model)
    assert "Fitted 40 rows" in printed
    assert said.startswith("3 blank lines, or rows without any value, are left out.\n")
    printed, said = run("predict", model, path, "--keep", "y")
    assert len(printed.splitlines()) == 41
    assert said == "3 blank lines, or rows without any value, are left out.\n"
    one = read_table(table(tmp_path, "y", "1", "", "2"), TextStyle())
    assert one["y"].to_list() == [1, None, 2]  # a cell that is missing


def test_names_are_checked_and_separated_behind_blank_lines(tmp_path):
    assert read(table(tmp_path, "\r\n\na;y", "1,5;2"))["a"].to_list() == [1.5]
    with pytest.raises(ValueError, match=r"unique. These occur more than once .*\['a'\]"):
        read(table(tmp_path, "\na,a,y", "1,2,3"))


def test_indexes_of_rows_are_left_out_unless_they_are_named(tmp_path, capsys):
    path = tmp_path / "t.parquet"
    pl.DataFrame({"a": [1.0, 2.0], "y": [1.0, 2.0], "__index_level_0__": [1, 0]}).write_parquet(
        path
    )
    assert read(path).columns == ["a", "y"]
    assert "Left out as an index of rows: '__index_level_0__'." in capsys.readouterr().err
    assert read(path, by="__index_level_0__").width == 3
    text = table(tmp_path, ",a,,y", "0,5,1,2", "1,6,2,3")
    assert read(text).columns == ["a", "y"]
    assert read(text, words=[""]).columns == ["", "a", "y"]
    model, many = tmp_path / "m.psilon", [f"{k},{k},{k},{k}" for k in range(40)]
    text = table(tmp_path, ",a,,y", *many)
    run("fit", text, *FIT, "--out", model)
    assert len(run("predict", model, text)[0].splitlines()) == 41


def test_words_for_missing_do_not_make_numbers_words(tmp_path, capsys):
    path = table(tmp_path, "a,b,c,y", "1,1.5,2023-01-31,1", "-,n/a,-,2", "3,2.5,2023-02-01,3")
    found = read(path)
    assert found["a"].to_list() == [1, None, 3]
    assert found["a"].dtype == pl.Int64
    assert found["b"].to_list() == [1.5, None, 2.5]
    assert found["c"].to_list() == [dt.datetime(2023, 1, 31), None, dt.datetime(2023, 2, 1)]
    assert capsys.readouterr().err == ""  # nothing was assumed


def test_cells_that_are_no_numbers_are_missing_and_counted(tmp_path, capsys):
    rows = [f"${k}.50,{k}" for k in range(8)]
    path = table(tmp_path, "a,y", *rows, "on request,8", "on request,9")
    assert read(path)["a"].null_count() == 2
    said = capsys.readouterr().err
    assert "2 cells of 'a' (such as 'on request') are no numbers and count as missing." in said
    model = tmp_path / "m.psilon"
    run("fit", path, *FIT, "--out", model)
    assert "2 cells of 'a'" in run("predict", model, path)[1]
    other = table(tmp_path, "a,y", "cheap,1", "dear,2", "$5.50,3")
    assert "Most cells of column 'a' must be readable as numbers" in refusal(
        "predict", model, other
    )


def test_several_units_are_refused_with_a_way_out(tmp_path):
    path = table(tmp_path, "a,y", "$5.50,1", "6.50 EUR,2")
    said = refusal("fit", path, *FIT, "--out", tmp_path / "m")
    assert "must have one unit" in said
    assert "--words a" in said


def test_levels_of_words_are_read_as_words_whatever_they_look_like(tmp_path):
    rows = [
        f"{('true', 'false', 'maybe')[k % 3]},{('2023-01-31', 'later')[k % 2]},{k}"
        for k in range(40)
    ]
    model = tmp_path / "m.psilon"
    run("fit", table(tmp_path, "a,b,y", *rows), *FIT, "--out", model)
    estimator = load(model)
    assert estimator.encoder_.codes[0].levels == ("false", "maybe", "true")
    new = table(tmp_path, "a,b", "true,2023-01-31", "false,2023-01-31", name="new.csv")
    assert read_for(estimator.encoder_, new, TextStyle())["a"].to_list() == ["true", "false"]
    assert read_for(estimator.encoder_, new, TextStyle())["b"].to_list() == ["2023-01-31"] * 2
    yes = table(tmp_path, "a,y", *(f"{('true', 'false')[k % 2]},{k}" for k in range(40)))
    run("fit", yes, *FIT, "--out", model)
    assert load(model).encoder_.codes[0].levels == ("False", "True")
    assert read_for(load(model).encoder_, new, TextStyle())["a"].to_list() == [True, False]


def test_groups_are_read_like_a_whole_table(tmp_path):
    text = as_text(numbers(80)).with_columns(
        store=pl.Series([f"0{1 + k % 2}" for k in range(80)]),
        day=pl.Series([f"2023-01-0{1 + k % 2}" for k in range(80)]),
    )
    text.write_csv(tmp_path / "text.csv")
    fit = ("fit-many", tmp_path / "text.csv", "--target", "y", "--width", 4, "--max-steps", 2)
    fit = (*fit, "--strength", 0.001)
    _, said = run(*fit, "--by", "store", "--drop", "day", "--out", tmp_path / "a")
    assert "Read as numbers: 'price' (such as '$" in said
    assert pl.read_parquet(tmp_path / "a" / "index.parquet")["group"].to_list() == ["01", "02"]
    run(*fit, "--by", "day", "--words", "rate", "--month-first", "--out", tmp_path / "b")
    index = pl.read_parquet(tmp_path / "b" / "index.parquet")
    assert index["group"].to_list() == [dt.date(2023, 1, 1), dt.date(2023, 1, 2)]
    kinds = load(tmp_path / "b" / index["path"][0]).encoder_.kinds
    assert kinds == ("number", "category", "time", "category", "category")


def test_numbers_of_a_file_with_types_can_be_words(tmp_path):
    path = tmp_path / "t.parquet"
    pl.DataFrame({"a": [1, 2, None], "b": [1.0, 2.0, 2.5], "y": [1.0, 2.0, 3.0]}).write_parquet(
        path
    )
    assert read(path, words=["a", "b"])["a"].to_list() == ["1", "2", None]
    assert read(path, words=["b"])["b"].to_list() == ["1", "2", "2.5"]
    with pytest.raises(ValueError, match="has no column 'c'"):
        read(path, words=["c"])
    pl.DataFrame({"a": ["1", "2", "3"], "y": [1.0, 2.0, 3.0]}).write_parquet(path)
    assert read(path)["a"].to_list() == ["1", "2", "3"]  # the type says so


def test_names_of_columns_are_read_as_they_are_written(tmp_path):
    data, rows = tmp_path / "data.csv", [f"{k};{k * k};{k}" for k in range(40)]

    def names(first, coding="utf-8"):
        data.write_bytes("\n".join([first, *rows]).encode(coding))
        return read_training(data, TextStyle(), target="y").columns

    assert names('"price, net, in euro";"size, in m";y') == [
        "price, net, in euro",
        "size, in m",
        "y",
    ]
    assert names("größe;b;y", "utf-8-sig") == ["größe", "b", "y"]
    assert names(";b;y") == ["b", "y"]  # columns without a name, as spreadsheets leave them
    with pytest.raises(ValueError, match="invalid UTF-8"):
        names("größe;b;y", "latin-1")
    with pytest.raises(ValueError, match=r"unique. These occur more than once .*\['a'\]"):
        names("a;a;y")
