"""The error that a coverage asks for, against sorted lists and against chance."""

import math

import numpy as np
import pytest

from psilonnet.estimators.conformal import (
    GROUPS,
    KEPT,
    ROWS,
    Errors,
    check_coverage,
    possible_classes,
    rows_needed,
)


def plain(errors):
    return Errors.of(np.asarray(errors)[:, None], np.ones(len(errors)), 1.0, ROWS)


@pytest.mark.parametrize("n", [1, 9, 10, 57])
@pytest.mark.parametrize("coverage", [0.05, 0.5, 0.8, 0.9, 0.99])
def test_threshold_is_that_of_split_conformal_prediction(n, coverage):
    errors = np.random.default_rng(n).exponential(size=n)
    rank = math.ceil(round(coverage * (n + 1), 9))
    expected = np.sort(errors)[rank - 1] if rank <= n else np.inf
    found = plain(errors)
    assert found.threshold(coverage)[0] == expected
    assert (n >= rows_needed(coverage)) == np.isfinite(expected) == (coverage <= found.most)


def test_new_row_is_covered_with_the_asked_probability_whatever_the_errors():
    rng = np.random.default_rng(0)
    hits, n, coverage = [], 19, 0.8
    for _ in range(4000):
        errors = rng.standard_cauchy(n + 1) ** 2
        hits.append(errors[-1] <= plain(errors[:-1]).threshold(coverage)[0])
    off = np.mean(hits) - coverage  # without ties it is met exactly: 16 of 20
    assert abs(off) < 3.5 * math.sqrt(0.16 / 4000)


def test_weight_is_so_many_rows():
    rng = np.random.default_rng(0)
    errors, counts = rng.exponential(size=30), rng.integers(1, 4, 30)
    weighted = Errors.of(errors[:, None], counts.astype(float), 1.0, ROWS)
    for coverage in (0.1, 0.5, 0.9, 0.97):
        copies = plain(np.repeat(errors, counts))
        assert weighted.threshold(coverage) == copies.threshold(coverage)


def test_many_errors_are_thinned_and_rounded_up():
    errors = np.random.default_rng(0).exponential(size=7003)
    thin = plain(errors)
    assert thin.values.shape == thin.mass.shape == (1, KEPT)
    for coverage in (0.001, 0.5, 0.9, 0.95, 0.999):
        share = (errors <= thin.threshold(coverage)[0]).mean()
        assert coverage <= share <= coverage + 1 / KEPT + 2 / len(errors)
    assert thin.threshold(0.9999)[0] == np.inf or thin.threshold(0.9999)[0] == errors.max()


def test_kinds_are_sorted_each_by_itself():
    errors = np.array([[1.0, 30.0], [3.0, 10.0], [2.0, 20.0]])
    found = Errors.of(errors, np.ones(3), 1.0, ROWS)
    assert found.threshold(0.5).tolist() == [2.0, 20.0]
    assert found.threshold(0.9).tolist() == [np.inf, np.inf]


def draw_groups(rng, groups):
    """Groups of 1 or 30 rows, where the rows of small groups have larger errors."""
    sizes = rng.choice([1, 30], groups)
    level = np.where(sizes == 1, 3.0, 1.0) * rng.exponential(size=groups)
    of = np.repeat(np.arange(groups), sizes)
    return level[of] + 0.1 * rng.exponential(size=len(of)), of


def test_rows_of_new_groups_are_covered_if_groups_count_alike():
    rng = np.random.default_rng(0)
    hits = {"rows": [], "groups": []}
    for _ in range(1500):
        errors, of = draw_groups(rng, 20)
        known, new = of < 19, errors[of == 19][0]
        weight = 1 / np.bincount(of[known])[of[known]]
        grouped = Errors.of(errors[known, None], weight, 1.0, GROUPS)
        hits["groups"].append(new <= grouped.threshold(0.8)[0])
        hits["rows"].append(new <= plain(errors[known]).threshold(0.8)[0])
    assert np.mean(hits["groups"]) > 0.8 - 3 * math.sqrt(0.16 / 1500)
    assert np.mean(hits["rows"]) < 0.75  # what is promised for exchangeable rows only


@pytest.mark.parametrize(("groups", "coverage"), [(4, 0.8), (9, 0.9), (19, 0.95), (99, 0.99)])
def test_exactly_as_many_groups_as_are_needed_are_enough(groups, coverage):
    assert groups == rows_needed(coverage)
    for size in range(1, 30):  # sums of 1 / size are rounded
        errors = np.arange(groups * size)[:, None].astype(float)
        found = Errors.of(errors, np.full(len(errors), 1 / size), 1.0, GROUPS)
        assert coverage <= found.most
        assert found.threshold(coverage)[0] == errors.max()
        assert found.most < coverage + 1e-11


@pytest.mark.parametrize("coverage", [0, 1, 1.5, -0.1, 90, "0.9", True, None, float("nan")])
def test_coverage_is_a_share(coverage):
    with pytest.raises(ValueError, match="'coverage' must be a number above 0 and below 1"):
        check_coverage(coverage)


def test_possible_classes_are_those_of_some_point_in_a_box_of_logits():
    rng = np.random.default_rng(0)
    for threshold in (0.05, 0.7, 2.0):
        logits, half = rng.normal(size=3), rng.uniform(0, 0.6, 3)
        others = np.array([[1, 2], [0, 2], [0, 1]])
        margins = (logits[:, None] + half[:, None]) - (logits[others] - half[others])
        points = logits + half * rng.uniform(-1, 1, (20_000, 3))
        corners = np.stack(np.meshgrid(*([-1, 1],) * 3), axis=-1).reshape(-1, 3)
        points = np.concatenate([points, logits + half * corners])
        errors = np.log(np.exp(points[:, None] - points[:, :, None]).sum(axis=2))
        found = (errors <= threshold) | (points == points.max(axis=1, keepdims=True))
        possible = possible_classes(margins[None], threshold)
        np.testing.assert_array_equal(possible[0], found.any(axis=0))
