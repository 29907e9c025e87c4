"""The url-reach example as one writes it in PySpark. `url_reach_by_hand.py CONTESTANT FOLDER`."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from by_hand import session
from pyspark.sql import functions as F

EXAMPLE = Path(__file__).parents[2] / "examples" / "url-reach"


def main() -> None:
    contestant, folder = sys.argv[1], Path(sys.argv[2])
    (folder / "in").mkdir()
    shutil.copy(EXAMPLE / "tweets.csv", folder / "in")
    lists = {}
    for line in (EXAMPLE / "followers.csv").read_text().splitlines():
        user, *followers = (part.strip() for part in line.split(","))
        lists[user] = followers

    spark = session(contestant, folder)

    @F.udf("array<string>")
    def followers_of(user):  # type: ignore[no-untyped-def]
        return lists.get(user, [])

    spark.conf.set("spark.sql.streaming.statefulOperator.checkCorrectness.enabled", "false")
    tweets = spark.readStream.schema("id int, user string, url string").csv(
        str(folder / "in"), ignoreLeadingWhiteSpace=True
    )
    reach = (
        tweets.where("url = 'www.tecnico.ulisboa.pt'")
        .select(F.explode(followers_of("user")).alias("follower"))
        .dropDuplicates(["follower"])
        .groupBy()
        .count()
    )

    def write(batch, batch_id):  # type: ignore[no-untyped-def]
        batch.persist()
        batch.write.mode("append").json(str(folder / "out"))
        for row in batch.collect():
            print(row.asDict(), flush=True)
        batch.unpersist()

    query = (
        reach.writeStream.foreachBatch(write)
        .outputMode("update")
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main()
