# %% [markdown]
# # What of skewext works here?
#
# Import this notebook where you want to know it, on Databricks or anywhere else, and run all
# cells. Each line at its end is something that was tried, and what came of it. Nothing is left
# behind: the one table that is written is dropped again. On Databricks install the wheel first,
# by `%pip install` with the path that you have uploaded it to. What is expected there is in
# docs/databricks.md.

# %%
import os
import platform
import warnings
from collections.abc import Callable
from uuid import uuid4

import pyspark
from pyspark.sql import DataFrame, SparkSession

import pyspark_skewext as skewext

if "spark" not in globals():
    # In notebooks of Databricks it is there. What a server loads is for the server to say.
    builder = SparkSession.builder.appName("check")
    spark = (builder if "SPARK_REMOTE" in os.environ else skewext.configure(builder)).getOrCreate()

found: list[tuple[str, str, str]] = []


def check(what: str) -> Callable[[Callable[[], str]], None]:
    """Try it and note what came of it. Stopping at the first error would tell less."""

    def run(body: Callable[[], str]) -> None:
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            try:
                result, said = "yes", body()
            except Exception as error:
                result, said = "NO", f"{type(error).__name__}: {str(error).strip().splitlines()[0]}"
        ours = [str(each.message) for each in warned if "skewext" in str(each.message)]
        found.append((what, result, "; ".join([said, *ours])))

    return run


def same_rows(one: DataFrame, other: DataFrame) -> str:
    """Compare two results as multisets, and say how many rows they have."""
    rows = [sorted((tuple(row) for row in df.collect()), key=repr) for df in (one, other)]
    if rows[0] != rows[1]:
        raise AssertionError(f"{len(rows[0])} rows, and Spark's own joins give others")
    return f"{len(rows[0])} rows, those of Spark's own joins"


# %% [markdown]
# ## Where we are


# %%
@check("versions")
def _() -> str:
    runtime = os.environ.get("DATABRICKS_RUNTIME_VERSION", "none")
    kind = "Spark Connect" if "connect" in type(spark).__module__ else "with a JVM"
    return (
        f"Spark {spark.version}, PySpark {pyspark.__version__}, {kind}, "
        f"Python {platform.python_version()}, Databricks Runtime {runtime}"
    )


@check("a jar for this PySpark")
def _() -> str:
    return os.path.basename(skewext.jar_path())


@check("the extension is in the session")
def _() -> str:
    if skewext.is_enabled(spark):
        return "since the session was started"
    skewext.register(spark)
    if skewext.is_enabled(spark):
        return "registered late"
    raise AssertionError("and cannot be registered late")


@check("the parts of the extension")
def _() -> str:
    checkup = skewext.doctor(spark)
    print(checkup)
    active = sum(part.active for part in checkup.parts)
    if checkup.notes or not active or "do not fit this Spark" in str(checkup):
        raise AssertionError("see the list above")
    return f"{active} of {len(checkup.parts)} are active"


# %% [markdown]
# ## Joins

# %%
one = spark.range(0, 200).selectExpr("nullif(id % 50, 3) AS k", "id AS a")
two = spark.range(20, 120, 2).selectExpr("nullif(id % 70, 4) AS k", "id AS b")
three = spark.range(0, 90, 3).selectExpr("id AS k", "id AS c")


@check("multi_full_join")
def _() -> str:
    chain = one.join(two, "k", "full").join(three, "k", "full")
    return same_rows(skewext.multi_full_join(one, two, three, on="k"), chain)


@check("multi_join with roles")
def _() -> str:
    chain = one.join(two, "k", "left").join(three, "k", "left_anti")
    roles = ["required", "optional", "excluded"]
    return same_rows(skewext.multi_join(one, two, three, on="k", how=roles), chain)


@check("multi_full_join is one operator")
def _() -> str:
    join = skewext.explain(skewext.multi_full_join(one, two, three, on="k")).joins[0]
    if join.origin.status != "asked for":
        raise AssertionError(join.origin.text)
    return ", ".join(join.operators)


@check("Spark's own joins are rewritten")
def _() -> str:
    chain = one.join(two, "k", "full").join(three, "k", "full")
    join = skewext.explain(chain).joins[0]
    if join.origin.status != "rewritten":
        raise AssertionError(join.origin.text)
    return join.origin.text


@check("skew_join")
def _() -> str:
    joined = skewext.skew_join(one, two, "k", "full", "broadcast_map")
    return same_rows(joined, one.join(two, "k", "full"))


@check("skew_join by its technique")
def _() -> str:
    joined = skewext.skew_join(one, two, "k", "full", "broadcast_map")
    text = skewext.explain(joined).joins[0].origin.text
    if "skew_join by broadcast_map: " not in text:
        raise AssertionError(text)
    return text.split(": ", 1)[1].split(";")[0]


# %% [markdown]
# ## Reports and buckets


# %%
@check("skew_report")
def _() -> str:
    report = skewext.skew_report(one.selectExpr("if(a < 80, 7, a) AS k"), "k", partitions=8)
    hot = report.hot_keys[0]
    if hot.key != 7 or not hot.rows.low <= 80 <= hot.rows.high:
        raise AssertionError(f"the hottest key is {hot.key}")
    return f"key 7 has {hot.rows.low} of {report.df.rows} rows"


@check("query_report")
def _() -> str:
    joined = one.join(two, "k")
    joined.collect()
    report = skewext.query_report() if "connect" in type(spark).__module__ else None
    report = report or skewext.query_report(joined)
    return f"{len(report.stages)} stages"


@check("write_bucketed")
def _() -> str:
    table = f"skewext_check_{uuid4().hex}"
    try:
        written = skewext.write_bucketed(
            one.repartition(5), table, by="k", buckets=4, format="parquet"
        )
        return f"{written.rows} rows in {written.files} files, for 4 buckets"
    finally:
        spark.sql(f"DROP TABLE IF EXISTS {table}")


# %% [markdown]
# ## What came of it

# %%
for what, result, said in found:
    print(f"{result:<4}{what}: {said}")
