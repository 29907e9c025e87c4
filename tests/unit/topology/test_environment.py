from __future__ import annotations

import pytest

from penstock.errors import TopologyError
from penstock.topology.environment import substitute, variables_in


@pytest.mark.parametrize(("text", "result"), [
    ("plain", "plain"),
    ("${env:HOME}/in.csv", "/home/ann/in.csv"),
    ("${env:HOME}:${env:HOME}", "/home/ann:/home/ann"),
    ("${env:MISSING:-}", ""),
    ("${env:MISSING:-a:b}", "a:b"),
    ("${env:EMPTY:-full}", "full"),
    ("${env:EMPTY}", ""),
    ("${HOME} $HOME ${environment}", "${HOME} $HOME ${environment}"),
])
def test_variables_are_replaced_and_all_else_stays(text: str, result: str) -> None:
    assert substitute(text, {"HOME": "/home/ann", "EMPTY": ""}) == result


@pytest.mark.parametrize(("text", "message"), [
    ("${env:HOEM}", "HOEM is not set; did you mean 'HOME'?"),
    ("${env:OTHER}", "set it, or give a default: ${env:OTHER:-…}"),
    ("${env:HOME", "is not ${env:NAME}"),
    ("${env:A B}", "is not ${env:NAME}"),
    ("${env}", "is not ${env:NAME}"),
])
def test_a_variable_that_cannot_be_replaced_is_an_error(text: str, message: str) -> None:
    with pytest.raises(TopologyError) as caught:
        substitute(text, {"HOME": "/home/ann"})
    assert message in str(caught.value)


def test_the_variables_of_a_text_are_known_by_their_names() -> None:
    assert variables_in("${env:PW} ${HOME} ${env:PLACE:-/tmp} $PW ${env:PW} ${env:no name}") == ("PW", "PLACE")
