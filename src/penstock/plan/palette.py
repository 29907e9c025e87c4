"""The picture's colours and icons: one accent for each role, light, and dark where the viewer is dark."""

from __future__ import annotations

from penstock.plan.description import Role

FONTS = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"

ACCENTS = {
    # role: (accent, tint of the icon's disc) in light, and the same two in dark
    Role.SOURCE: ("#0f9d76", "#e1f5ee", "#3ecf9f", "#123a30"),
    Role.NATIVE: ("#3b6fe0", "#e6edfc", "#7ea3ff", "#1b2c54"),
    Role.PYTHON: ("#c98a06", "#fcf1d8", "#f2c04b", "#42330d"),
    Role.STATEFUL: ("#8a4fd3", "#f0e7fb", "#bd93f5", "#35224f"),
    Role.SINK: ("#d6455d", "#fce6ea", "#ff8497", "#4d1d27"),
}

ICONS = {
    # paths in a square of 14 around 0, 0, drawn as lines
    Role.SOURCE: "M-6 0H3M0 -3.5L3.5 0L0 3.5M6 -5.5V5.5",
    Role.NATIVE: "M1 -6.5L-4 1H0L-1 6.5L4 -1H0Z",
    Role.PYTHON: "M-3 -4.5L-6.5 0L-3 4.5M3 -4.5L6.5 0L3 4.5M1.2 -6L-1.2 6",
    Role.STATEFUL: "M-5 -4A5 2 0 1 1 5 -4A5 2 0 1 1 -5 -4V4A5 2 0 0 0 5 4V-4M-5 0A5 2 0 0 0 5 0",
    Role.SINK: "M0 -6.5V2M-3.5 -1.5L0 2L3.5 -1.5M-6 2.5V6H6V2.5",
}


def _rules(ground: str, face: str, border: str, ink: str, muted: str, line: str, dark: bool) -> str:
    shared = (
        f".ground{{fill:{ground}}}.face{{fill:{face};stroke:{border}}}"
        f".name,.title{{fill:{ink}}}.brief,.legend,.delivery,.label{{fill:{muted}}}"
        f".edge{{stroke:{line}}}.head{{fill:{line}}}.pill{{fill:{face};stroke:{border}}}"
    )
    for role, accents in ACCENTS.items():
        accent, tint = accents[2:] if dark else accents[:2]
        shared += f".{role} .accent,.{role} .dot{{fill:{accent}}}.{role} .disc{{fill:{tint}}}"
        shared += f".{role} .icon{{stroke:{accent}}}"
    return shared


STYLE = (
    f"text{{font-family:{FONTS}}}"
    ".title{font-size:20px;font-weight:700}.delivery{font-size:14px;font-weight:400}"
    ".name{font-size:14px;font-weight:700}.brief,.legend{font-size:11.5px}.label{font-size:10.5px}"
    ".edge{fill:none;stroke-width:1.6}.icon{fill:none;stroke-width:1.6;stroke-linecap:round;"
    "stroke-linejoin:round}.face,.pill{stroke-width:1}"
    + _rules("#f6f8fb", "#ffffff", "#d5dce6", "#1a2230", "#5d6b80", "#9aa7b8", False)
    + "@media (prefers-color-scheme: dark){"
    + _rules("#10151d", "#1a212c", "#303b4b", "#eef2f8", "#9dabc0", "#66758a", True)
    + "}"
)
"""The style block: plain classes, no variables, which several renderers do not know."""
