"""How users go through the shop."""


def path(window, tuples):
    """The way of one session, page by page, and how long it took."""
    clicks = sorted(tuples, key=lambda click: click.clicked_at)
    took = clicks[-1].clicked_at - clicks[0].clicked_at
    return window.key, " → ".join(click.page for click in clicks), took.total_seconds()
