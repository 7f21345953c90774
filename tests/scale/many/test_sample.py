import numpy as np
import pytest

from psilonnet.scale.many.sample import Sample, Tally

TOTALS = {3: 1000, 2**64 - 1: 51}


def rows(rng):
    """Return the numbers of the keys of rows: two large groups, and rows of small ones between."""
    large = np.repeat(np.array(list(TOTALS), dtype=np.uint64), list(TOTALS.values()))
    return rng.permutation(np.concatenate([large, np.arange(10, 300, dtype=np.uint64)]))


def test_large_groups_are_cut_down_whatever_the_pieces():
    numbers = rows(np.random.default_rng(0))
    whole = Sample(TOTALS, 50, seed=7).stays(numbers)
    assert {number: int(whole[numbers == number].sum()) for number in TOTALS} == dict.fromkeys(
        TOTALS, 50
    )
    assert whole[~np.isin(numbers, list(TOTALS))].all()
    pieces, seen = [], {}
    for part in np.array_split(numbers, 13):
        sample = Sample(TOTALS, 50, seed=7, seen=seen)
        pieces.append(sample.stays(part))
        seen = sample.seen
    np.testing.assert_array_equal(np.concatenate(pieces), whole)
    assert seen == TOTALS


def test_samples_are_drawn_by_lot():
    numbers = np.full(10_000, 5, dtype=np.uint64)
    drawn = [Sample({5: 10_000}, 1000, seed=seed).stays(numbers) for seed in range(20)]
    assert (np.sum(drawn, axis=0) > 10).sum() < 5  # no row is in most samples
    halves = [stays[:5000].sum() for stays in drawn]
    assert np.mean(halves) == pytest.approx(500, abs=4 * 16 / np.sqrt(20))
    other = Sample({6: 10_000}, 1000, seed=0).stays(np.full(10_000, 6, dtype=np.uint64))
    assert 50 < (other & drawn[0]).sum() < 150  # another group, other places


def test_counts_are_exact(monkeypatch):
    monkeypatch.setattr("psilonnet.scale.many.sample.CHUNK", 10)  # gathered again and again
    rng = np.random.default_rng(0)
    numbers = rng.integers(0, 40, 2000).astype(np.uint64)
    tally = Tally()
    for part in np.array_split(numbers, 17):
        tally.add(part)
    found, counts = np.unique(numbers, return_counts=True)
    expected = {int(n): int(c) for n, c in zip(found, counts, strict=True) if c > 50}
    assert tally.above(50) == expected
    assert 0 < len(expected) < 40
