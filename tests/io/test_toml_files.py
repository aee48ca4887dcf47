"""TOML files that people write: every mistake is one sentence that names the file and not its content."""

import pytest

from discreet.core.errors import InputError
from discreet.core.files.untrusted import read_toml


def test_a_byte_order_mark_is_passed_over(tmp_path):
    path = tmp_path / "plan.toml"
    path.write_bytes(b"\xef\xbb\xbfrows = 5")
    assert read_toml(path, "plan file") == {"rows": 5}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "There is no plan file 'plan.toml' there"),
        (b"secret = \xfc", "cannot be read as UTF-8 text"),
        (b"secret = = 1", "plan file 'plan.toml' is not valid TOML.*line 1"),
    ],
)
def test_what_cannot_be_read_is_said_without_showing_it(tmp_path, content, said):
    path = tmp_path / "plan.toml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError, match=said) as caught:
        read_toml(path, "plan file")
    assert "secret" not in str(caught.value)
