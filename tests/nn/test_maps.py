import mpmath
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from nn.exact_maps import exact_map
from psilonnet.nn import ColumnMap

BENDS = ["log_tails", "clipped"]


def tensor(*values):
    return torch.tensor(values, dtype=torch.float64)


def one_column(bend, center=0.0, scale=1.0):
    return ColumnMap.of(bend, torch.tensor([True]), tensor(center), tensor(scale))


@pytest.mark.parametrize("bend", BENDS)
@given(
    numbers=st.lists(st.floats(-1e15, 1e15), min_size=2, max_size=20),
    center=st.floats(-1e3, 1e3),
    scale=st.floats(1e-3, 1e3),
)
def test_bent_columns_increase_no_steeper_than_their_slope(bend, numbers, center, scale):
    columns = one_column(bend, center, scale)
    z = tensor(*sorted(numbers)).unsqueeze(1)
    mapped, rounding = columns(z), columns.rounding(z)
    moved, allowed = mapped.diff(dim=0), rounding[1:] + rounding[:-1]
    assert (moved >= -allowed).all()
    assert (moved <= z.diff(dim=0) * columns.slope * (1 + 1e-12) + allowed).all()
    assert columns(tensor([0.0])).abs() <= columns.rounding(tensor([0.0]))


@pytest.mark.parametrize("bend", BENDS)
def test_tails_are_tamed(bend):
    z = tensor([-1e15], [-1e3], [1e3], [1e15])
    limit = 3.0 if bend == "clipped" else 3 * torch.log1p(z.abs())
    assert (one_column(bend)(z).abs() <= limit).all()


def test_other_columns_and_identities_are_left_as_they_are():
    z = torch.randn(4, 3, dtype=torch.float64) * 100
    bent = torch.tensor([True, False, True])
    centers, scales = tensor(1.0, 2.0, 3.0), tensor(0.5, 0.1, 2.0)
    columns = ColumnMap.of("clipped", bent, centers, scales)
    assert torch.equal(columns(z)[:, 1], z[:, 1])
    assert columns.slope.tolist() == [2.0, 1.0, 0.5]
    assert (columns.rounding(z)[:, 1] == 0).all()
    for same in (ColumnMap.identity(3), ColumnMap.of("identity", bent, centers, scales)):
        assert torch.equal(same(z), z)
        assert same.slope.tolist() == [1.0, 1.0, 1.0]
        assert (same.rounding(z) == 0).all()


@pytest.mark.parametrize("bend", BENDS)
def test_a_map_of_some_columns_is_that_of_all_there(bend):
    bent = torch.tensor([True, False, True, True])
    columns = ColumnMap.of(bend, bent, tensor(1.0, 0, 2.0, 3.0), tensor(0.5, 1, 2.0, 3.0))
    z, some = torch.randn(6, 4, dtype=torch.float64), torch.tensor([0, 1, 3])
    assert torch.equal(columns.at(some)(z[:, some]), columns(z)[:, some])


@pytest.mark.parametrize("bend", BENDS)
@pytest.mark.parametrize("seed", range(8))
def test_computed_values_are_as_near_to_exact_ones_as_is_said(bend, seed):
    """Of wild magnitudes, near the center too, where the difference of two values is small."""
    generator = torch.Generator().manual_seed(seed)
    spread = (1.0, 5.0, 40.0, 100.0)[seed % 4]

    def draw(count):
        exponent = spread * torch.randn(count, generator=generator).double()
        return torch.randn(count, generator=generator).double() * 10.0 ** exponent.clamp(-300, 140)

    z, center = draw(60), draw(60)
    scale = draw(60).abs().clamp(min=1e-5) if spread > 5 else draw(60).abs()
    z[::3] = center[::3] * (1 + 1e-15)
    columns = ColumnMap.of(bend, torch.ones(60, dtype=torch.bool), center, scale)
    mapped, error = columns(z), columns.rounding(z)
    known = 0
    for k in range(60):
        if error[k] < torch.inf:
            exact = exact_map(bend, center[k], scale[k], z[k])
            assert abs(mpmath.mpf(float(mapped[k])) - exact) <= mpmath.mpf(float(error[k]))
            known += 1
    assert known > 30


def test_nothing_is_known_far_out():
    columns = one_column("clipped", scale=1e-100)
    assert columns.rounding(tensor([1e60])) == torch.inf
    assert columns.rounding(tensor([1e40])) < 1e-12


@pytest.mark.parametrize(
    ("bend", "bent", "center", "scale", "said"),
    [
        ("bent", True, 0.0, 1.0, "must be one of"),
        ("clipped", True, torch.nan, 1.0, "finite"),
        ("clipped", True, 0.0, torch.inf, "finite"),
        ("clipped", True, 0.0, 0.0, "scales above 0"),
        ("clipped", False, 0.0, 2.0, "its slope is taken for one over the scale"),
        ("clipped", False, 1.0, 1.0, "the center 0"),
        ("identity", True, 0.0, 2.0, "the scale 1"),
    ],
)
def test_a_wrong_map_is_refused(bend, bent, center, scale, said):
    with pytest.raises(ValueError, match=said):
        ColumnMap(bend, torch.tensor([bent]), tensor(center), tensor(scale))
