import pytest
import torch

from psilonnet.training import Batches, Rows


def table(n=20):
    x = torch.arange(n, dtype=torch.float64).unsqueeze(-1)
    return Rows(x, 10 * x)


def batches(rows, steps, size=6, seed=0, members=(0,)):
    drawn = Batches(rows, size=size, seed=seed, members=members)
    return [drawn.at(k) for k in range(steps)]


def test_epoch_visits_each_row_at_most_once():
    for start in (0, 3, 6):
        seen = torch.cat([b.x.flatten() for b in batches(table(), 9)[start : start + 3]])
        assert len(seen.unique()) == 18
    full = torch.cat([b.x.flatten() for b in batches(table(), 4, size=5)])
    assert full.sort().values.equal(torch.arange(20, dtype=torch.float64))


def test_batch_depends_on_seed_and_step_only():
    rows = table()
    assert batches(rows, 5)[4].x.equal(Batches(rows, size=6, seed=0, members=(0,)).at(4).x)
    assert not batches(rows, 1)[0].x.equal(batches(rows, 1, seed=1)[0].x)
    assert batches(rows, 5)[4].y.equal(10 * batches(rows, 5)[4].x)


def test_batch_larger_than_the_table_is_the_table():
    (batch,) = batches(table(4), 1, size=100)
    assert batch.x.flatten().sort().values.equal(torch.arange(4, dtype=torch.float64))


def test_batch_of_all_rows_is_drawn_once():
    own = torch.tensor([[0, 1, 2, 3], [10, 11, 12, -1]])
    for rows, members in ((table(4), (0,)), (Rows(table().x, table().y, own=own), (0, 1))):
        first, *others = batches(rows, 4, size=4, members=members)
        assert all(batch is first for batch in others)
        assert Batches(rows, size=4, seed=0, members=members).at(9).x.equal(first.x)


def test_members_with_own_rows_do_not_depend_on_the_others():
    own = torch.tensor([[0, 1, 2, 3], [10, 11, 12, -1], [5, 6, 7, 8]])
    x = torch.arange(20, dtype=torch.float64).unsqueeze(-1)
    together = batches(Rows(x, x, own=own), 6, size=2, members=(0, 1, 2))
    alone = batches(Rows(x, x, own=own[1:2]), 6, size=2, members=(1,))
    for a, b in zip(together, alone, strict=True):
        assert a.x.shape == (3, 2, 1)
        assert a.x[1:2].equal(b.x)
        assert a.weight[1:2].equal(b.weight)
        assert set(a.x[0].flatten().tolist()) <= {0.0, 1.0, 2.0, 3.0}


@pytest.mark.parametrize("per_member", [False, True])
@pytest.mark.parametrize("own", [False, True])
def test_weighted_mean_over_an_epoch_is_the_weighted_mean(per_member, own, generator):
    x = torch.randn(12, 1, generator=generator, dtype=torch.float64)
    weight = torch.rand((3, 12) if per_member else (12,), generator=generator, dtype=torch.float64)
    index = torch.tensor([[0, 1, 2, 3], [4, 5, 6, -1], [8, 9, -1, -1]]) if own else None
    rows = Rows(x, x, weight, index)
    parts = batches(rows, rows.count // 2, size=2, members=(0, 1, 2))
    mean = sum((b.x.squeeze(-1) * b.weight).mean(dim=-1) for b in parts) / len(parts)
    for m in range(3):
        used = torch.arange(12) if index is None else index[m][index[m] >= 0]
        w = weight[m][used] if per_member else weight[used]
        expected = (w * x[used, 0]).sum() / w.sum()
        actual = mean[m] if mean.dim() else mean
        torch.testing.assert_close(actual, expected)


def test_rows_refuse_a_target_of_another_shape():
    with pytest.raises(ValueError, match=r"must have shape \(5, targets\).*Got \(5,\) instead"):
        Rows(torch.zeros(5, 2), torch.zeros(5))


def rows_of(*, n=4, x=None, **settings):
    x = torch.ones(n, 2) if x is None else x
    return Rows(x, torch.zeros(len(x), 1), **settings)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n": 0}, r"at least one row. Got none"),
        ({"x": torch.ones(4)}, r"shape \(rows, columns\). Got \(4,\) instead"),
        ({"x": torch.tensor([[1.0, 2.0], [torch.nan, 3.0]])}, r"finite.*Got .* in columns \[0\]"),
        ({"x": torch.tensor([[1.0, torch.inf]])}, r"finite.*Got .* in columns \[1\]"),
        ({"weight": torch.ones(5)}, r"one weight for each of the 4 rows. Got .* \(5,\) instead"),
        ({"weight": torch.ones(3, 5)}, r"one weight for each of the 4 rows. Got .* \(3, 5\)"),
        ({"weight": torch.tensor([1.0, -1.0, 1.0, 1.0])}, r"finite and not negative. Got -1.0"),
        ({"weight": torch.tensor([1.0, torch.nan, 1.0, 1.0])}, r"finite and not negative. Got nan"),
        ({"weight": torch.zeros(4)}, r"must have a row whose weight is above zero"),
        ({"weight": torch.eye(4)[:2] * 0}, r"Member 0 must have a row whose weight is above zero"),
        ({"own": torch.tensor([[0, 1], [-1, -1]])}, r"Member 1 must have a row whose weight is"),
        ({"own": torch.tensor([[0, 4]])}, r"'own' rows must be among the 4 rows. Got the index 4"),
        ({"own": torch.tensor([0, 1])}, r"'own' rows must have shape \(members, rows\)"),
        (
            {"own": torch.tensor([[0, 1], [2, 3]]), "weight": torch.tensor([1.0, 1.0, 0.0, 0.0])},
            r"Member 1 must have a row whose weight is above zero",
        ),
    ],
)
def test_rows_refuse_what_no_network_can_learn_from(settings, message):
    with pytest.raises(ValueError, match=message):
        rows_of(**settings)


def test_rows_that_overflow_in_a_smaller_precision_are_refused():
    rows = rows_of(x=torch.tensor([[1.0, 1e300]], dtype=torch.float64))
    with pytest.raises(ValueError, match=r"finite.*Got .* in columns \[1\]"):
        rows.to("cpu", torch.float32)
