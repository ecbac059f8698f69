"""Take the pictures of docs/images: ui-*.png of the tab in Spark's UI, report.png of a report.

    .venv/bin/python build-tools/ui_pictures.py            write them
    .venv/bin/python build-tools/ui_pictures.py FOLDER     look at narrow, wide, light and dark ones

It runs a few queries with joins and renders their pages in Chromium. Run it after a change of these
pages. It needs the jar (`make jar`), and Chromium or Chrome on PATH, or CHROME with its path.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "build-tools" / "site"))

from look import browser  # noqa: E402

import pyspark_skewext as skewext  # noqa: E402

IMAGES = ROOT / "docs" / "images"
WIDTH = 1100
STOCK = "--stock"
SETTINGS = {
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "20",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    # A million rows are skewed here, and make a slow task.
    "spark.sql.adaptive.coalescePartitions.enabled": "false",
    "spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes": "1m",
    "spark.sql.adaptive.advisoryPartitionSizeInBytes": "1m",
}


def run_queries(spark: SparkSession) -> None:
    """Each has a description, which the list shows; the first one is split, the second one slow."""

    def ran(what, df):
        spark.sparkContext.setJobDescription(what)
        df.write.format("noop").mode("overwrite").save()

    orders = orders_of(spark)
    visits = spark.range(0, 200_000, 2, 4).selectExpr("id AS customer", "id % 90 AS visits")
    calls = spark.range(0, 200_000, 3, 4).selectExpr("id AS customer", "id % 70 AS calls")
    joined = skewext.multi_full_join(orders, visits, calls, on="customer")
    ran("orders, visits and calls of each customer", joined)
    # Rows in an order that the query asks for are not sliced.
    ordered = orders.repartition(20, "customer").sortWithinPartitions("order")
    ran("orders in order, and visits", ordered.join(many(visits), "customer", "full"))
    chain = visits.join(calls, "customer", "full").join(orders.limit(1000), "customer", "full")
    ran("a chain of full outer joins", chain)
    ran("a left join", visits.join(calls, "customer", "left"))
    ran(
        "skew_join by broadcast_map",
        skewext.skew_join(orders, calls, "customer", "left", "broadcast_map"),
    )


def orders_of(spark: SparkSession) -> DataFrame:
    """A third of the rows is of one customer."""
    ids = spark.range(0, 1_500_000, 1, 8)
    return ids.selectExpr("if(id % 3 = 0, 7, id) AS customer", "uuid() AS order")


def many(visits: DataFrame) -> DataFrame:
    """With some rows of the customer who has most orders."""
    again = visits.sparkSession.range(60).selectExpr("7 AS customer", "id AS visits")
    return visits.union(again)


def run_stock(folder: str) -> None:
    """An application without the extension that writes an event log into the folder."""
    builder = SparkSession.builder.master("local[4]").appName("shop")
    settings = {"spark.eventLog.enabled": "true", "spark.eventLog.dir": f"file://{folder}"}
    for key, value in {**SETTINGS, **settings}.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    try:
        visits = spark.range(0, 200_000, 2, 4).selectExpr("id AS customer", "id % 90 AS visits")
        # Spark splits no partition of the right side.
        joined = many(visits).join(orders_of(spark), "customer", "left")
        spark.sparkContext.setJobDescription("visits and their orders")
        joined.write.format("noop").mode("overwrite").save()
    finally:
        spark.stop()


def write_report(folder: Path) -> str:
    """The page of a report on such an application; its address."""
    # In a process of its own, because a JVM keeps the extension.
    subprocess.run([sys.executable, __file__, STOCK, str(folder)], check=True)
    (log,) = folder.iterdir()
    # The page names the log and the jar: without the paths of this machine.
    shutil.copytree(Path(skewext.__file__).parent, folder / "pyspark_skewext")
    shutil.copy(ROOT / "version.txt", folder / "pyspark_skewext")
    command = [sys.executable, "-m", "pyspark_skewext", "report", log.name, "--html", "report.html"]
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    subprocess.run(command, check=True, cwd=folder, env=environment, stdout=subprocess.DEVNULL)
    return (folder / "report.html").as_uri()


@contextmanager
def folder_named(name: str) -> Iterator[Path]:
    """A temporary folder whose path is short, and the same on each machine."""
    folder = Path("/tmp") / name
    folder.mkdir()
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def take(address: str, picture: Path, width: int, height: int, dark: bool = False) -> None:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        options = [
            "--headless=new",
            "--no-sandbox",
            "--hide-scrollbars",
            f"--user-data-dir={profile}",
            f"--window-size={width},{height}",
            "--virtual-time-budget=5000",
            f"--screenshot={picture}",
        ]
        # As a browser that is set to dark colours asks for them.
        options += ["--blink-settings=preferredColorScheme=0"] if dark else []
        subprocess.run([browser(), *options, address], check=True, capture_output=True)


def look(pages: dict[str, str], folder: Path) -> None:
    for name, address in pages.items():
        for width in (420, 1600):
            for dark in (False, True):
                picture = folder / f"{name}-{width}-{'dark' if dark else 'light'}.png"
                take(address, picture, width, 1800, dark)


def main() -> None:
    # Advice names the host of a task.
    os.environ["SPARK_LOCAL_HOSTNAME"] = "localhost"
    if sys.argv[1:2] == [STOCK]:
        run_stock(sys.argv[2])
    else:
        take_all()


def take_all() -> None:
    builder = SparkSession.builder.master("local[4]").appName("shop")
    for key, value in SETTINGS.items():
        builder = builder.config(key, value)
    spark = skewext.configure(builder).getOrCreate()
    try:
        run_queries(spark)
        tab = f"{spark.sparkContext.uiWebUrl}/skewext"
        queries, split, slow = f"{tab}/", f"{tab}/query/?id=0", f"{tab}/query/?id=1"
        if sys.argv[1:]:
            look({"queries": queries, "split": split, "slow": slow}, Path(sys.argv[1]))
        else:
            take(queries, IMAGES / "ui-queries.png", WIDTH, 380)
            take(slow, IMAGES / "ui-query.png", WIDTH, 1140)
    finally:
        spark.stop()
    with folder_named("shop") as folder:
        report = write_report(folder)
        if sys.argv[1:]:
            look({"report": report}, Path(sys.argv[1]))
        else:
            take(report, IMAGES / "report.png", 1200, 660)


if __name__ == "__main__":
    main()
