from __future__ import annotations

from xml.etree import ElementTree

from side_by_side.picture import ratios_picture
from side_by_side.ratios import Figure


def test_every_ratio_has_a_bar_and_who_has_no_figure_has_none() -> None:
    drawn = ratios_picture({
        "json": {"penstock": Figure(6.0), "pyflink": Figure(2.0), "pathway": Figure(trouble="gone")},
        "stateless": {"penstock": Figure(6.0), "bytewax": Figure(8.0)},
    })  # fmt: skip
    tree = ElementTree.fromstring(drawn)
    texts = [text.text or "" for text in tree.findall("{*}text")]
    assert [text for text in texts if ", " in text] == ["stateless, Bytewax 0.21.1", "json, PyFlink 2.3.0"]
    assert {"0.75", "3.00"} <= set(texts)
