"""Bad inputs, each with the error and the words that it must give: rule, value, remedy."""

import datetime as dt

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from scipy import sparse

from psilonnet import Design, PSiLONClassifier, PSiLONRegressor

RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 3))
Y = (X[:, 0] > 0).astype(int)
FRAME = pd.DataFrame(X, columns=["a", "b", "c"])

TINY = {
    "width": 8, "depth": 1, "max_steps": 3, "random_state": 0, "reg_strength": 1e-3, "cv": 2,
    "designs": [Design()],
}  # fmt: skip


def classifier(**parameters):
    return PSiLONClassifier(**{**TINY, **parameters})


def regressor(**parameters):
    return PSiLONRegressor(**{**TINY, **parameters})


def with_cell(value, kind=float):
    table = X.astype(kind)
    table[4, 1] = value
    return table


def fit(table=X, target=Y, model=classifier, **options):
    parameters = options.pop("parameters", {})
    return lambda: model(**parameters).fit(table, target, **options)


def quantity(target):
    return fit(X, target, regressor)


def predict(table, train=FRAME):
    return lambda: classifier().fit(train, Y).predict(table)


def parameter(**parameters):
    return fit(parameters=parameters)


# name: (what is done, error, words of its message)
BAD_INPUTS = {
    # cells
    "infinity": (fit(with_cell(np.inf)), ValueError, r"must be finite or missing"),
    "minus infinity": (fit(with_cell(-np.inf)), ValueError, r"'x1' contains infinity in row 4"),
    "infinity at prediction": (predict(FRAME * np.inf), ValueError, r"contains infinity"),
    "dict in a cell": (fit(with_cell({"k": 1}, object)), TypeError, r"of type dict"),
    "list in a cell": (fit(with_cell([1], object)), TypeError, r"holds \[1\] of type list"),
    "complex array": (fit(X + 1j), ValueError, "Complex data not supported"),
    "complex cell": (fit(with_cell(1j, object)), ValueError, "Complex data not supported"),
    "list column": (
        fit(pl.DataFrame({"a": [[1]] * 30})), TypeError, r"Column 'a' holds List.*turn it into",
    ),
    # shapes
    "no rows": (fit(np.empty((0, 3)), []), ValueError, r"0 sample\(s\).*minimum of 1"),
    "no columns": (fit(np.empty((30, 0))), ValueError, r"0 feature\(s\).*minimum of 1"),
    "empty frame": (fit(pd.DataFrame(), []), ValueError, r"0 sample\(s\) and 0 feature\(s\)"),
    "empty polars frame": (fit(pl.DataFrame(), []), ValueError, r"0 sample\(s\) and 0 feature"),
    "one dimension": (fit(X[:, 0]), ValueError, "Reshape your data"),
    "three dimensions": (fit(X[:, :, None]), ValueError, r"dim 3"),
    "a number": (fit(3.0), ValueError, r"Expected 2D array, got scalar array|Expected"),
    "a word": (fit("table.csv"), ValueError, r"Expected 2D array|could not convert|Reshape"),
    "nothing": (fit(None), ValueError, r"Expected 2D array|Reshape"),
    "ragged lists": (fit([[1, 2], [3]] * 15), ValueError, r"same number of cells"),
    "lists in lists in lists": (fit([[[1], 2]] * 30), TypeError, r"holds \[1\] of type list"),
    "lazy frame": (fit(pl.LazyFrame({"a": [1, 2]})), TypeError, r"in memory.*collect\(\)"),
    "sparse": (fit(sparse.csr_matrix(X)), TypeError, r"Sparse input .*toarray\(\)"),
    "sparse array": (fit(sparse.csr_array(X)), TypeError, r"Sparse input .*toarray\(\)"),
    "a name for labels": (fit(FRAME, "a"), ValueError, r"'y' .* each row.*such as table\['a'\]"),
    "a name for weights": (fit(FRAME, sample_weight="a"), ValueError, r"'sample_weight' .*'a'"),
    "a name for groups": (fit(FRAME, groups="a"), ValueError, r"'groups' of a fit .*word 'a'"),
    "fewer labels": (fit(X, Y[:20]), ValueError, r"inconsistent numbers of samples"),
    "fewer weights": (fit(sample_weight=np.ones(3)), ValueError, r"inconsistent numbers"),
    "fewer groups": (fit(groups=np.ones(3)), ValueError, r"inconsistent numbers of samples"),
    "missing group": (
        fit(groups=["a", np.nan, "b"] * 10), ValueError, r"not be missing. That of row 1.*its own",
    ),
    "missing group of numbers": (
        fit(groups=np.r_[np.nan, np.ones(29)]), ValueError, r"'groups' must not be missing.*row 0",
    ),
    "missing group of dates": (
        fit(groups=np.array(["NaT"] * 30, "datetime64[D]")), ValueError, r"missing.*row 0",
    ),
    "missing group of pandas": (
        fit(groups=pd.Series([1, None] * 15, dtype="Int64")), ValueError, r"missing.*row 1",
    ),
    # columns
    "duplicate names": (
        fit(pd.DataFrame(X, columns=["a", "a", "b"])), ValueError, r"unique.*\['a'\].*Rename",
    ),
    "mixed kinds of names": (
        fit(pd.DataFrame(X, columns=["a", 1, "b"])), TypeError, r"Feature names.*strings",
    ),
    "all constant": (fit(np.ones((30, 2))), ValueError, r"two different values.*All 2 columns"),
    "one row": (fit(X[:1], [1.0], regressor), ValueError, r"n_samples = 1"),
    "typo in a name": (
        predict(FRAME.rename(columns={"a": "A"})), ValueError, r"unseen at fit time:\n- A.*\n- a",
    ),
    "column missing": (predict(FRAME[["a", "b"]]), ValueError, r"missing:\n- c"),
    "columns reordered": (predict(FRAME[["c", "a", "b"]]), ValueError, r"same order"),
    "column too many": (predict(FRAME.assign(d=1.0)), ValueError, r"unseen at fit time:\n- d"),
    "too few columns": (predict(X[:, :2], X), ValueError, r"2 features, but .* expecting 3"),
    "words for numbers": (
        predict(FRAME.assign(a="x")), ValueError, r"'a' must hold the same kind.*convert it",
    ),
    "not fitted": (lambda: classifier().predict(X), ValueError, r"not fitted yet"),
    "not fitted, saved": (lambda: classifier().save("m"), ValueError, r"not fitted yet"),
    # targets
    "no target": (fit(X, None), ValueError, r"requires y to be passed"),
    "one class": (fit(X, np.ones(30)), ValueError, r"at least 2 classes.*one class only: .*1"),
    "one class of weight": (
        fit(sample_weight=(Y == 1).astype(float)), ValueError, r"one class only",
    ),
    "numbers as labels": (
        fit(X, X[:, 0]), ValueError, r"Unknown label type: continuous.*Got 0.12.*PSiLONRegressor",
    ),
    "missing word in a list of labels": (
        fit(X, ["a", "b", np.nan] * 10), ValueError, r"must not be missing.*row 2.*Drop",
    ),
    "masked labels": (
        fit(X, np.ma.masked_array(Y, mask=[1] + [0] * 29)), ValueError, r"not be missing.*row 0",
    ),
    "missing labels from Arrow": (
        fit(X, pa.array([None, "a", "b"] * 10)), ValueError, r"must not be missing.*row 0",
    ),
    "labels of two types in a list": (
        fit(X, ["a", 1] * 15), ValueError, r"of one type.*\['int', 'str'\]: turn all of them",
    ),
    "labels beyond 64 bits": (
        fit(X, [10**20, 1] * 15), ValueError, r"within 64 bits. Got one of 21 figures: turn them",
    ),
    "complex labels": (fit(X, X[:, 0] + 1j), ValueError, r"Labels must be words.*Got .*1j\)"),
    "booleans and numbers as labels": (
        fit(X, [True, 2] * 15), ValueError, r"of one type.*\['bool', 'int'\]: turn all of them",
    ),
    "labels in two columns of a list": (fit(X, [[0, 1]] * 30), ValueError, r"should be a 1d arr"),
    "dates as Python labels": (
        fit(X, [dt.date(2020, 1, 1), dt.date(2021, 1, 1)] * 15), ValueError,
        r"Labels must be words, numbers or booleans. Got .*2020, 1, 1.*: turn them into words",
    ),
    "bytes as labels": (
        fit(X, np.array([b"a", b"b"] * 15)), ValueError, r"Labels must be words.*b'a'.*into words",
    ),
    "lists as labels": (
        fit(X, pl.Series([[1], [2]] * 15)), ValueError, r"Labels must be words.*turn them into",
    ),
    "NaN among labels": (fit(X, np.where(Y, 1.0, np.nan)), ValueError, r"y contains NaN.*Drop"),
    "None among labels": (
        fit(X, np.where(Y, "a", None).astype(object)), ValueError, r"NaN or None.*class of",
    ),
    "two columns of labels": (fit(X, np.stack([Y, Y], 1)), ValueError, r"should be a 1d array"),
    "labels of two types": (
        fit(X, np.array(["a", 1] * 15, dtype=object)), ValueError, r"Labels must be of one type",
    ),
    "NaN among numbers": (
        quantity(np.r_[X[:29, 0], np.nan]), ValueError, r"y contains NaN.*in row 29. Drop",
    ),
    "None among numbers": (quantity([1.0, None] * 15), ValueError, r"y contains NaN.*in row 1\."),
    "masked numbers": (
        quantity(np.ma.masked_array(X[:, 0], mask=[1] + [0] * 29)), ValueError, r"NaN.*in row 0",
    ),
    "NA among numbers": (
        quantity(pd.Series([1, None] * 15, dtype="Int64")), ValueError, r"contains NaN.*in row 1",
    ),
    "null among numbers": (
        quantity(pl.DataFrame({"a": X[:, 0], "b": [1, None] * 15})), ValueError, r"NaN.*in row 1",
    ),
    "infinite number": (
        quantity(np.where(Y, 1.0, np.inf)), ValueError, r"y contains infinity in row \d+\. Replace",
    ),
    "words as numbers": (
        quantity(["a", "b"] * 15), ValueError, r"must be numbers. Got words.*'a'.*PSiLONClassifier",
    ),
    "words among numbers": (
        quantity(np.array([1.5, "n/a"] * 15, dtype=object)), ValueError,
        r"must be numbers. Got words such as 'n/a' among others: turn them into numbers, or drop",
    ),
    "numbers as words": (
        quantity(["1.5", "2"] * 15), ValueError, r"numbers as words.*'1.5'.*astype\(float\)",
    ),
    "numbers as words in polars": (
        quantity(pl.Series(["1.5", "2"] * 15)), ValueError, r"such as '1.5': convert.*float",
    ),
    "words in a frame": (
        quantity(pd.DataFrame({"a": X[:, 0], "b": ["x", "y"] * 15})), ValueError, r"words.*'x'",
    ),
    "words from Arrow": (quantity(pa.array(["x", "y"] * 15)), ValueError, r"Got words.*'x'"),
    "bytes as numbers": (quantity(np.array([b"x"] * 30)), ValueError, r"Got words.*b'x'"),
    "booleans as numbers": (
        quantity(Y == 1), ValueError, r"Got booleans: use PSiLONClassifier.*astype\(float\)",
    ),
    "booleans of pandas": (
        quantity(pd.Series(Y == 1, dtype="boolean")), ValueError, r"Got booleans: use PSiLONCla",
    ),
    "categories as numbers": (
        quantity(pd.Series(Y, dtype="category")), ValueError, r"Got categories: use PSiLONClassi",
    ),
    "categories in a frame": (
        quantity(pl.DataFrame({"a": pl.Series(["x", "y"] * 15, dtype=pl.Categorical)})), ValueError,
        r"Got categories: use PSiLONClassifier",
    ),
    "dates as numbers": (
        quantity(pd.Series(pd.date_range("2020-01-01", periods=30, tz="UTC"))), ValueError,
        r"Got times: turn them into numbers, such as days",
    ),
    "Python dates as numbers": (quantity([dt.date(2020, 1, 1)] * 30), ValueError, r"Got times"),
    "durations as numbers": (quantity([dt.timedelta(1)] * 30), ValueError, r"Got times: turn"),
    "complex numbers": (quantity(X[:, 0] + 1j), ValueError, r"Complex data not supported.*parts"),
    "complex cells": (
        quantity(np.array([1j, 2.0] * 15, dtype=object)), ValueError, r"Complex data not supported",
    ),
    "lists as numbers": (quantity(pl.Series([[1], [2]] * 15)), ValueError, r"Got .* of type"),
    "number beyond all floats": (quantity([10**400, 1] * 15), ValueError, r"below 1.8e308. Got"),
    "ragged target": (quantity([[1, 2], [3]] * 15), ValueError, r"shape \(rows,\).*length"),
    "target without columns": (quantity(np.empty((30, 0))), ValueError, r"\(30, 0\) instead"),
    "target of three dimensions": (
        quantity(np.ones((30, 1, 1))), ValueError, r"shape \(rows,\) or .*Got \(30, 1, 1\)",
    ),
    # weights
    "negative weight": (fit(sample_weight=-np.ones(30)), ValueError, r"[Nn]egative"),
    "NaN weight": (fit(sample_weight=np.full(30, np.nan)), ValueError, r"contains NaN"),
    "infinite weight": (fit(sample_weight=np.full(30, np.inf)), ValueError, r"infinity"),
    "weights all zero": (fit(sample_weight=np.zeros(30)), ValueError, r"above 0|non-zero"),
    "two columns of weights": (fit(sample_weight=np.ones((30, 2))), ValueError, r"1D array|1d"),
    "words as weights": (
        fit(sample_weight=["1"] * 30), ValueError, r"'sample_weight' must be numbers.*'1': convert",
    ),
    "words among weights": (
        fit(sample_weight=np.array([1.0, "n/a"] * 15, dtype=object)), ValueError, r"such as 'n/a'",
    ),
    "negative class weight": (
        parameter(class_weight={0: -1.0}), ValueError, r"must be a number of at least 0",
    ),
    "word as class weight": (
        parameter(class_weight={0: "2", 1: 1}), ValueError, r"'class_weight' must be a number",
    ),
    "weight of an unknown class": (
        parameter(class_weight={"yes": 5.0}), ValueError, r"not: \['yes'\]. The classes are",
    ),
    # validation data
    "validation not a tuple": (fit(validation_data=X), ValueError, r"must be a tuple \(X, y\)"),
    "unknown class in validation": (
        fit(validation_data=(X[:2], [0, 7])), ValueError, r"training rows.*\[7\]",
    ),
    "validation of another width": (
        fit(validation_data=(X[:, :1], Y)), ValueError, r"1 features, but",
    ),
    "validation with more targets": (
        fit(X, X[:, 0], regressor, validation_data=(X[:4], X[:4])), ValueError, r"1 targets.*Got",
    ),
    "validation without rows": (
        fit(validation_data=(X[:0], Y[:0])), ValueError, r"0 sample\(s\)",
    ),
    # parameters
    "designs": (parameter(designs="all"), ValueError, r"'auto', or a list.*Got 'all'"),
    "no designs": (parameter(designs=[]), ValueError, r"'designs'.*list of different.*Got \[\]"),
    "design alone": (parameter(designs=Design()), ValueError, r"'designs'.*list of.*Got Design\("),
    "set of designs": (parameter(designs={Design()}), ValueError, r"'designs'.*list.*Got \{"),
    "design twice": (
        parameter(designs=[Design(), {"columns": "log_tails"}]), ValueError, r"of different psilon",
    ),
    "design of unknown fields": (
        parameter(designs=[{"knots": 4}]), ValueError, r"dicts of their fields.*'knots'",
    ),
    "architecture": (
        parameter(designs=[{"architecture": "cnn"}]), ValueError, r"'mlp'.*Got 'cnn'",
    ),
    "columns": (parameter(designs=[{"columns": "ranks"}]), ValueError, r"'columns'.*'clipped'"),
    "directions": (
        parameter(designs=[{"directions": "l3"}]), ValueError, r"'directions'.*'l1', 'l2'.*'l3'",
    ),
    "pieces": (parameter(designs=[{"pieces": 0}]), ValueError, r"'pieces'.*at least 1. Got 0"),
    "pieces as a float": (
        parameter(designs=[{"pieces": 2.0}]), ValueError, r"'pieces'.*whole number.*Got 2.0",
    ),
    "pruning without L1 designs": (
        parameter(prune=True, designs=[Design(directions="l2")]), ValueError,
        r"Pruning needs a design with directions 'l1'.*Got designs \['L2'\]: add one, or",
    ),
    "width": (parameter(width=0), ValueError, r"'width'.*at least 1. Got 0"),
    "width as a word": (parameter(width="wide"), ValueError, r"'width'.*'auto' or a whole.*'wide'"),
    "width as a float": (parameter(width=8.0), ValueError, r"'width'.*whole number.*Got 8.0"),
    "depth": (parameter(depth=True), ValueError, r"'depth'.*whole number.*Got True"),
    "reg_strength": (parameter(reg_strength=-1), ValueError, r"'reg_strength'.*at least 0.*Got -1"),
    "reg_strength word": (parameter(reg_strength="best"), ValueError, r"'auto'.*Got 'best'"),
    "reg_strength empty": (parameter(reg_strength=[]), ValueError, r"'reg_strength'.*Got \[\]"),
    "reg_strength twice": (parameter(reg_strength=[1, 1]), ValueError, r"different such numbers"),
    "cv": (parameter(cv=0.2), ValueError, r"'cv'.*folds of at least 2.*Got 0.2"),
    "cv as a word": (parameter(cv="five"), ValueError, r"'cv'.*a splitter.*Got 'five'"),
    "one fold": (parameter(cv=1), ValueError, r"'cv'.*folds of at least 2.*Got 1"),
    "no splits": (parameter(cv=[]), ValueError, r"'cv'.*at least one split. Got none"),
    "used iterator of splits": (
        parameter(cv=iter(())), ValueError, r"Got none: an iterator can be used once.*give a list",
    ),
    "prune": (parameter(prune="yes"), ValueError, r"'prune'.*True or False. Got 'yes'"),
    "class_weight": (parameter(class_weight=3), ValueError, r"'class_weight'.*'balanced'.*Got 3"),
    "loss": (
        fit(X, X[:, 0], regressor, parameters={"loss": "mse"}), ValueError, r"'huber'.*'mse'",
    ),
    "max_steps": (parameter(max_steps=0), ValueError, r"'max_steps'.*at least 1"),
    "batch_size": (parameter(batch_size="all"), ValueError, r"'batch_size'.*Got 'all'"),
    "learning_rate": (parameter(learning_rate=0), ValueError, r"'learning_rate'.*above 0. Got 0"),
    "learning_rate NaN": (parameter(learning_rate=np.nan), ValueError, r"'learning_rate'.*nan"),
    "device without memory": (
        parameter(device="meta"), ValueError, r"'device'.*Got 'meta'.*no memory.*device='cpu'",
    ),
    "CUDA device that is not there": (
        parameter(device="cuda:99"), ValueError,
        r"Got 'cuda:99' instead: (this build of PyTorch|PyTorch) .*There is 'cpu'.*device='cpu'",
    ),
    "Apple device that is not there": (
        parameter(device="mps:99"), ValueError, r"Got 'mps:99' instead: .*PyTorch.*device='cpu'",
    ),
    "Intel device that is not there": (
        parameter(device="xpu:99"), ValueError, r"Got 'xpu:99' instead: .*no .*xpu.*device='cpu'",
    ),
    "device of a plug-in": (
        parameter(device="privateuseone"), ValueError, r"knows no such device here.*device='cpu'",
    ),
    "device that is no word": (parameter(device=0), ValueError, r"Got 0 instead: give its name"),
    "width beyond all memory": (
        parameter(width=10**6, depth=3, reg_strength=1e-3), MemoryError, r"needs.*smaller width",
    ),
    "grid beyond all memory": (
        parameter(width=10**5, depth=3), MemoryError, r"needs about.*smaller width",
    ),
    "dates as labels": (
        fit(X, np.array(["2020-01-01", "2021-01-01"] * 15, dtype="datetime64[D]")), ValueError,
        r"Labels must be words, numbers or booleans. Got|Unknown label type",
    ),
    "device": (
        parameter(device="gpu7"), ValueError, r"Got 'gpu7' .* knows no such device.*device='cpu'",
    ),
    "selection": (parameter(selection="worst"), ValueError, r"'provable'.*Got 'worst'"),
    "negative weight of the bound": (
        parameter(selection=-0.1), ValueError, r"'selection'.*a weight.*at least 0. Got -0.1",
    ),
    "weight of the bound NaN": (parameter(selection=np.nan), ValueError, r"'selection'.*Got nan"),
    "verbose": (parameter(verbose="loud"), ValueError, r"'verbose'.*'auto'. Got 'loud'"),
    "verbose as a level": (parameter(verbose=3), ValueError, r"'verbose'.*2 .*'auto'. Got 3"),
    "verbose below 0": (parameter(verbose=-1), ValueError, r"'verbose'.*'auto'. Got -1"),
    "random_state": (
        parameter(random_state="seed"), ValueError, r"'random_state'.*from 0 to .*Got 'seed'",
    ),
    "random_state below 0": (parameter(random_state=-1), ValueError, r"'random_state'.*Got -1"),
    "random_state too large": (parameter(random_state=2**40), ValueError, r"to 4294967295.*Got 10"),
    "random_state as a flag": (parameter(random_state=True), ValueError, r"'random_state'.*Got Tr"),
    "random_state as a Generator": (
        parameter(random_state=np.random.default_rng(0)), ValueError,
        r"'random_state'.*Got Generator.*draw a number of it",
    ),
    "unknown parameter": (lambda: PSiLONClassifier(widht=3), TypeError, r"widht"),
}  # fmt: skip
