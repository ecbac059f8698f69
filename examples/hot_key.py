# %% [markdown]
# # Finding a hot key, and curing it
#
# A join that takes forever often waits for one task: that which got the key with half of the rows.
# Here is such a join, small enough to run in seconds: visits of a web site, of which a robot makes
# two in five, and the table of users. It is full outer, which Spark's own rule for skewed joins
# does not split.

# %%
import matplotlib.pyplot as plt
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import pyspark_skewext as skewext

builder = SparkSession.builder.appName("hot key").config("spark.ui.enabled", False)
builder = builder.config("spark.sql.shuffle.partitions", 12)
# Tables of any real size are not broadcast.
builder = builder.config("spark.sql.autoBroadcastJoinThreshold", -1)
# To see partitions as the shuffle makes them.
builder = builder.config("spark.sql.adaptive.coalescePartitions.enabled", False)
spark = skewext.configure(builder).getOrCreate()
spark.sparkContext.setLogLevel("ERROR")

visits = spark.range(0, 200_000, 1, 8).selectExpr(
    "CASE WHEN id % 5 < 2 THEN 'robot' WHEN id % 50 = 3 THEN NULL "
    "ELSE concat('u', id % 6000) END AS user",
    "id AS page",
)
users = spark.range(0, 7_000, 1, 4).selectExpr(
    "if(id = 6999, 'robot', concat('u', id)) AS user", "id % 12 AS country"
)

# %% [markdown]
# ## Where is the skew?
#
# `skew_report` reads the key columns once, and shuffles nothing.

# %%
report = skewext.skew_report(visits, "user", users)
print(report)

# %%
report

# %% [markdown]
# ## The join in stock Spark
#
# How many rows of the result does each task make?


# %%
def by_task(joined):
    return joined.groupBy(F.spark_partition_id().alias("task")).count()


def rows_of(counts):
    return sorted((row["count"] for row in counts.collect()), reverse=True)


joined = visits.join(users, "user", "full")
spark.conf.set("spark.skewext.enabled", "false")
before, expected = rows_of(by_task(joined)), joined.count()
spark.conf.set("spark.skewext.enabled", "true")
print(f"{expected:,} rows; the largest task has {before[0]:,}, the median one {before[6]:,}")

# %% [markdown]
# ## The cure: change nothing
#
# With skewext, adaptive execution splits the skewed partition of the same query while it runs.
# Spark's settings define what is skewed, by default from 256 MB on. These tables are small, so the
# limits are lower here.

# %%
spark.conf.set("spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes", "100KB")
spark.conf.set("spark.sql.adaptive.advisoryPartitionSizeInBytes", "50KB")
# By column, these few numbers would have too few bytes to be skewed.
spark.conf.set("spark.skewext.shuffle.enabled", "false")
counts = by_task(visits.join(users, "user", "full"))
split = rows_of(counts)
print(f"{sum(split):,} rows; the largest task has {split[0]:,}")
assert sum(split) == expected
assert max(split) < max(before) / 2
print(skewext.explain(counts))

# %% [markdown]
# ## A technique
#
# Some joins cannot be split while they run; `explain` then gives the reason. `skew_join` gives the
# same rows by another technique. `salted` finds the hot keys itself (or takes them as
# `hot_keys=["robot"]`), divides their rows into parts, and leaves all other rows alone. Nothing is
# random, so a task that runs again gives the same rows. Unmatched users appear once, though the
# robot's row is repeated for each part.

# %%
salted = skewext.skew_join(visits, users, "user", "full", technique="salted")
after = rows_of(by_task(salted))
print(f"{sum(after):,} rows; the largest task has {after[0]:,}, the median one {after[6]:,}")
assert sum(after) == expected
assert max(after) < max(before) / 2
print(skewext.explain(salted))

# %%
figure, axes = plt.subplots(figsize=(9, 3.6), layout="constrained")
shown = {
    "stock Spark": (before, "#c44e52"),
    "split": (split, "#17808a"),
    "salted": (after, "#3b6fb6"),
}
for number, (name, (rows, color)) in enumerate(shown.items()):
    places = [place + 0.28 * (number - 1) for place in range(len(rows))]
    axes.bar(places, rows, width=0.28, color=color, label=name)
axes.set_xticks([])
axes.set_xlabel("tasks, the largest first")
axes.set_ylabel("rows")
axes.set_title("Rows of the join by task", loc="left")
axes.legend(frameon=False)
axes.spines[["top", "right"]].set_visible(False)
plt.show()

# %% [markdown]
# ## Without a shuffle of the visits
#
# The users are few. `broadcast_map` sends them to all executors, for a full outer join as well, and
# `iterative_broadcast` does so in chunks if they are too many for one broadcast. The visits stay
# where they are, however their keys are spread.

# %%
for technique in (skewext.BroadcastMap(side="right"), skewext.IterativeBroadcast(chunks=3)):
    joined = skewext.skew_join(visits, users, "user", "full", technique=technique)
    assert joined.count() == expected
    print(skewext.explain(joined))

# %%
spark.stop()
