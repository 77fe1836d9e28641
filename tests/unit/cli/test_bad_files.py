from pathlib import Path

import pytest

from tacit_client.cli.errors import BadFile
from tacit_client.cli.files import Layout, read_records
from tests.support.cli_files import BAD, UNSHOWN, Bad, campaign


@pytest.mark.parametrize("bad", BAD, ids=lambda bad: bad.name)
def test_a_bad_file_is_refused_in_a_sentence_that_shows_no_value(bad: Bad, tmp_path: Path) -> None:
    with pytest.raises(BadFile) as refused:
        read_records(bad.write(tmp_path), campaign(), Layout())
    message = str(refused.value)
    for words in bad.says:
        assert words in message
    assert UNSHOWN not in message
    assert message.endswith(".")
    assert "\n" not in message
