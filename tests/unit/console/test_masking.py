"""What was set is not told, wherever it stands; and what is told can still be read."""

from __future__ import annotations

import json

import pytest

from penstock.console.masking import masked


@pytest.mark.parametrize(("text", "sets", "told"), [
    ("nothing here", ["a=hunter22"], "nothing here"),
    ("with a=hunter22", ["a=hunter22"], "with a=…"),
    ("cannot log in with hunter22!\nhunter22", ["a=hunter22"], "cannot log in with …!\n…"),
    ("postgresql://ann:s3cr3t@db: refused; password s3cr3t", ["sinks.db.sql=postgresql://ann:s3cr3t@db"],
     "…: refused; password …"),
    ("user ann, p@ss", ["u=postgresql://ann:p%40ss@db"], "user ann, …"),
    ("token abcdefg is wrong", ['h={"Authorization": "abcdefg"}'], "token … is wrong"),
    # Numbers and short words are everywhere.
    ("2 replicas, epoch 1000, yes", ["replicas=2", "epoch.max_tuples=1000", "a=yes", "b=true", "c="],
     "2 replicas, epoch 1000, yes"),
    ("long-secret-and-more", ["a=long-secret", "b=long-secret-and-more"], "…"),
])  # fmt: skip
def test_values_are_left_out(text: str, sets: list[str], told: str) -> None:
    assert masked(text, sets) == told


def test_each_line_of_a_value_is_left_out() -> None:
    key = "-----BEGIN KEY-----\nMIIEvQIBADAN\n-----END KEY-----"
    assert "MIIE" not in masked(f"cannot use it:\n{key}\nsorry", [f"key={key}"])


def test_rows_stay_rows() -> None:
    secret = 'quo"ted\\'
    rows = [{"key": secret, "n": 1000, "deep": [f"has {secret} in it"]}, {"other": "row"}]
    text = "a note: " + json.dumps(secret) + "\n" + "\n".join(json.dumps(row) for row in rows)
    note, *found = masked(text, [f"a={secret}", "b=1000", "c=other"]).splitlines()
    assert note == 'a note: "…"'
    assert [json.loads(row) for row in found] == [{"key": "…", "n": 1000, "deep": ["has … in it"]}, {"other": "row"}]
