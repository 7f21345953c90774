import traceback

import pytest

from bad_inputs import BAD_INPUTS


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", BAD_INPUTS)
def test_bad_input_is_refused_in_words(name):
    act, error, words = BAD_INPUTS[name]
    with pytest.raises(error, match=f"(?s){words}") as caught:
        act()
    last = traceback.extract_tb(caught.value.__traceback__)[-1].filename
    assert "torch" not in last.split("site-packages")[-1], f"the traceback ends in {last}"


def test_table_of_bad_inputs_is_long_enough():
    assert len(BAD_INPUTS) >= 60
