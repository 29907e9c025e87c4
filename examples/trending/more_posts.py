"""Print more posts than posts.csv has: python more_posts.py 6000 > more.csv, always the same ones."""

import random
import sys
from datetime import datetime, timedelta

TAGS = ("spring", "rain", "football", "music", "snow", "cats", "bread", "trains", "maps", "tea", "stars", "garden")


def main(posts: int) -> None:
    chance = random.Random(posts)
    posted_at = datetime(2026, 3, 1, 8)
    popularity = [1 / place for place in range(1, len(TAGS) + 1)]
    for _ in range(posts):
        posted_at += timedelta(seconds=chance.randrange(1, 20))
        print(f"{posted_at:%Y-%m-%dT%H:%M:%SZ},{chance.choices(TAGS, popularity)[0]}")


if __name__ == "__main__":
    main(int(sys.argv[1]))
