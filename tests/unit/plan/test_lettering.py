from __future__ import annotations

from xml.etree import ElementTree

from penstock.plan.lettering import escaped, shortened, text_width

DEJAVU_WIDTHS = {"a": 0.613, "i": 0.278, "m": 0.974, "w": 0.818, "t": 0.392, "W": 0.989, "M": 0.863,
                 "O": 0.787, "0": 0.636, " ": 0.318, "=": 0.838, "%": 0.950, "@": 1.000, "_": 0.500,
                 "(": 0.390, "…": 1.000}


def test_no_character_is_thought_narrower_than_a_wide_font_sets_it() -> None:
    for char, ems in DEJAVU_WIDTHS.items():
        assert text_width(char, 1.0) >= ems


def test_bold_is_wider_and_full_width_characters_wider_still() -> None:
    assert text_width("name", 10, bold=True) > text_width("name", 10)
    assert text_width("数据", 10) > text_width("ab", 10)


def test_a_combining_accent_takes_no_room() -> None:
    assert text_width("e\u0301", 10) == text_width("e", 10)


def test_text_that_fits_is_left_alone() -> None:
    assert shortened("short", 100, 10) == "short"


def test_text_that_does_not_fit_ends_in_an_ellipsis_and_fits() -> None:
    cut = shortened("a condition that is far too long", 80, 10)

    assert cut.startswith("a cond") and cut.endswith("…")
    assert text_width(cut, 10) <= 80


def test_markup_quotes_and_characters_xml_forbids_are_made_safe() -> None:
    text = "<b a=\"1\" c='2'> & \x00 \ud800"

    parsed = ElementTree.fromstring(f'<x y="{escaped(text)}">{escaped(text)}</x>')

    assert parsed.text == parsed.get("y") == "<b a=\"1\" c='2'> & � �"
