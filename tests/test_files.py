import pytest

from psilonnet._files import written


def test_file_that_vanishes_while_it_is_written_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError), written(tmp_path / "a"):
        pass
