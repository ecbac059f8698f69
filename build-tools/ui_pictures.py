"""Take the pictures of the tab in Spark's UI for docs/ui.md: docs/images/ui-*.png.

    .venv/bin/python build-tools/ui_pictures.py

It runs a few queries with joins and renders their pages in Chromium. Run it after a change of these
pages. It needs the jar (`make jar`), and Chromium or Chrome on PATH, or CHROME with its path.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

from pyspark.sql import SparkSession

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "build-tools" / "site"))

from look import browser  # noqa: E402

import pyspark_skewext as skewext  # noqa: E402

WIDTH = 1100
SETTINGS = {
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "20",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    # A million rows are skewed here.
    "spark.sql.adaptive.coalescePartitions.enabled": "false",
    "spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes": "1m",
    "spark.sql.adaptive.advisoryPartitionSizeInBytes": "1m",
}


def run_queries(spark: SparkSession) -> None:
    """Each has a description, which the list shows; the first one is split."""

    def ran(what, df):
        spark.sparkContext.setJobDescription(what)
        df.write.format("noop").mode("overwrite").save()

    ids = spark.range(0, 1_500_000, 1, 8)
    orders = ids.selectExpr("if(id % 3 = 0, 7, id) AS customer", "uuid() AS order")
    visits = spark.range(0, 200_000, 2, 4).selectExpr("id AS customer", "id % 90 AS visits")
    calls = spark.range(0, 200_000, 3, 4).selectExpr("id AS customer", "id % 70 AS calls")
    joined = skewext.multi_full_join(orders, visits, calls, on="customer")
    ran("orders, visits and calls of each customer", joined)
    chain = visits.join(calls, "customer", "full").join(orders.limit(1000), "customer", "full")
    ran("a chain of full outer joins", chain)
    ran("a chain of left joins", visits.join(calls, "customer", "left"))
    ran(
        "skew_join by broadcast_map",
        skewext.skew_join(orders, calls, "customer", "left", "broadcast_map"),
    )


def take(address: str, name: str, height: int) -> None:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        options = [
            "--headless=new",
            "--no-sandbox",
            "--hide-scrollbars",
            f"--user-data-dir={profile}",
        ]
        options += [f"--window-size={WIDTH},{height}", "--virtual-time-budget=5000"]
        picture = f"--screenshot={ROOT / 'docs' / 'images' / name}"
        subprocess.run([browser(), *options, picture, address], check=True, capture_output=True)


def main() -> None:
    builder = SparkSession.builder.master("local[4]").appName("shop")
    for key, value in SETTINGS.items():
        builder = builder.config(key, value)
    spark = skewext.configure(builder).getOrCreate()
    try:
        run_queries(spark)
        tab = f"{spark.sparkContext.uiWebUrl}/skewext"
        take(f"{tab}/", "ui-queries.png", 340)
        take(f"{tab}/query/?id=0", "ui-query.png", 860)
    finally:
        spark.stop()


if __name__ == "__main__":
    main()
