"""`penstock token`: made, listed without what it is, and revoked; each is written down."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from penstock.console.home import ConsoleHome
from penstock.console.tokens import Role, Token, Tokens
from penstock.coordination.opening import open_coordinator

from .typed import penstock

FORM = re.compile(r"pst_([0-9a-f]{8})_([A-Za-z0-9_-]{43})")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ConsoleHome:
    monkeypatch.delenv("PENSTOCK_COORDINATOR", raising=False)
    monkeypatch.setenv("PENSTOCK_HOME", str(tmp_path / "home"))
    return ConsoleHome(tmp_path / "home")


def checked(home: ConsoleHome, token: str) -> Token | None:
    """What a console of this home knows of a token."""
    coordinator = open_coordinator(home.coordinator)
    try:
        return Tokens(coordinator).check(token)
    finally:
        coordinator.close()


def audit(home: ConsoleHome) -> list[dict[str, Any]]:
    return [json.loads(line) for line in home.audit.read_text().splitlines()]


def test_a_token_is_made_shown_once_and_allows_what_it_says(home: ConsoleHome) -> None:
    made = penstock("token", "create", "--role", "operator", "--name", "ann", "--expires", "30d")
    assert made.exit_code == 0, made.output
    # Alone on standard output, for scripts.
    (token,) = made.stdout.splitlines()
    form = FORM.fullmatch(token)
    assert form is not None
    known = checked(home, token)
    assert known is not None
    assert (known.id, known.name, known.role, known.expired) == (form[1], "ann", Role.OPERATOR, False)
    assert known.expires == pytest.approx(known.created + 30 * 86_400)
    listed = penstock("token", "list")
    assert re.search(rf"{form[1]} +operator +ann +20\d\d-", listed.stdout)
    assert form[2] not in listed.output


def test_without_options_it_may_look_and_never_expires(home: ConsoleHome) -> None:
    assert "no tokens yet" in penstock("token", "list").stdout
    known = checked(home, penstock("token", "create").stdout.strip())
    assert known is not None
    assert (known.role, known.expires) == (Role.VIEWER, None)
    assert re.search(r"viewer +somebody +never", penstock("token", "list").stdout)
    penstock("token", "create", "--expires", "0s")
    assert re.search(r"viewer +somebody +expired", penstock("token", "list").stdout)


def test_a_token_that_is_revoked_allows_nothing_any_more(home: ConsoleHome) -> None:
    kept, lost = (penstock("token", "create").stdout.strip() for _ in range(2))
    key = lost.split("_")[1]
    assert penstock("token", "revoke", key).exit_code == 0
    assert checked(home, lost) is None
    assert checked(home, kept) is not None
    again = penstock("token", "revoke", key)
    assert (again.exit_code, f"there is no token '{key}'" in again.stderr) == (1, True)


@pytest.mark.parametrize(("words", "said"), [
    (("--role", "king"), "write viewer or operator"),
    (("--expires", "soon"), "--expires: 'soon' is not a duration"),
])  # fmt: skip
def test_what_cannot_be_meant_makes_no_token(home: ConsoleHome, words: tuple[str, ...], said: str) -> None:
    refused = penstock("token", "create", *words)
    assert (refused.exit_code, said in refused.stderr) == (2, True), refused.output
    assert "no tokens yet" in penstock("token", "list").stdout


def test_who_made_and_revoked_a_token_is_written_down_without_the_token(
    home: ConsoleHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOGNAME", "eve")
    token = penstock("token", "create", "--role", "operator", "--name", "ann", "--expires", "12h").stdout.strip()
    key = token.split("_")[1]
    penstock("token", "revoke", key)
    penstock("token", "revoke", key)
    made, revoked = audit(home)
    assert (made["who"], made["command"], made["token"], made["name"], made["allows"], made["expires"]) == (
        "eve", "token create", key, "ann", "operator", "12h")  # fmt: skip
    assert (revoked["who"], revoked["command"], revoked["token"], revoked["outcome"]) == (
        "eve", "token revoke", key, "done")  # fmt: skip
    assert token.split("_", 2)[2] not in home.audit.read_text()


def test_a_token_that_could_not_be_written_down_is_made_and_that_is_said(home: ConsoleHome) -> None:
    home.audit.mkdir(parents=True)
    made = penstock("token", "create")
    assert checked(home, made.stdout.strip()) is not None
    assert f"warning: it could not be written to {home.audit}" in made.stderr
    assert "warning" in penstock("token", "revoke", made.stdout.split("_")[1]).stderr
