"""Who follows whom, for the operator `followers`."""

from functools import cache
from pathlib import Path


@cache
def follower_lists() -> dict[str, list[str]]:
    lists = {}
    for line in Path("followers.csv").read_text().splitlines():
        user, *followers = (part.strip() for part in line.split(","))
        lists[user] = followers
    return lists


def followers_of(tweet):
    """One tuple for every follower of the tweet's author."""
    for follower in follower_lists().get(tweet.user, []):
        yield (follower,)
