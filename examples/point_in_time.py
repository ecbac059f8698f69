# %% [markdown]
# # What was known on that day
#
# A point-in-time join finds for each row the newest row of other tables that was known at its time.
# Here: the close of Google's share on each day of four years, beside the last monthly level of an
# index and the last monthly price of another company.
#
# The prices are real. They come with matplotlib, from finance.yahoo.com.

# %%
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from pyspark.sql import SparkSession, Window
from pyspark.sql import functions as F

import pyspark_skewext as skewext

builder = SparkSession.builder.appName("point in time").config("spark.ui.enabled", False)
spark = skewext.configure(builder.config("spark.sql.shuffle.partitions", 4)).getOrCreate()
spark.sparkContext.setLogLevel("ERROR")

# %% [markdown]
# ## The tables
#
# The row of a month has the price at its end, but the date of its first day. It is known when the
# month is over, so `known` is the first day of the next month. With the date of the file, a join
# would see up to a month into the future.

# %%
data = Path(mpl.get_data_path()) / "sample_data"
months = spark.read.csv(str(data / "Stocks.csv"), header=True, inferSchema=True, comment="#")
months = months.withColumnsRenamed({"^GSPC": "S&P 500", "^IXIC": "NASDAQ"})
columns = [f"`{name}`" for name in months.columns if name != "Date"]
prices = (
    months.unpivot("Date", columns, "symbol", "price")
    .where("price IS NOT NULL")
    .withColumn("known", F.expr("add_months(Date, 1)"))
)

file = np.load(data / "goog.npz")["price_data"]
rows = [(day.item(), close) for day, close in zip(file["date"], file["close"].tolist())]
days = spark.createDataFrame(rows, "day date, close double")
indexes = spark.createDataFrame([("S&P 500",), ("NASDAQ",)], "index string")
spine = days.crossJoin(indexes).withColumn("peer", F.lit("MSFT"))
print(f"{spine.count():,} rows of the spine, {prices.count():,} monthly prices")

# %% [markdown]
# ## The join
#
# Both tables of versions are parts of `prices`, with keys of their own. No match may be older than
# 40 days, as a company that has left the market has a last price, too.

# %%
levels = prices.selectExpr("symbol AS index", "known", "price AS level")
peers = prices.selectExpr("symbol AS peer", "known AS peer_known", "price AS peer_price")
joined = skewext.asof_join(
    spine,
    skewext.asof(levels, time="known", tolerance="40 days"),
    skewext.asof(peers, time="peer_known", on={"peer": "peer"}, tolerance="40 days"),
    on="index",
    time="day",
)
joined.orderBy("day", "index").show(4)

# %%
print(skewext.explain(joined))

# %% [markdown]
# With Spark alone each row of the spine is joined with all versions of its key, and a window keeps
# the newest. The result is the same.

# %%
newest = Window.partitionBy("day", "index").orderBy(F.desc("known"))
pairs = spine.join(levels, "index").where("known <= day AND known >= day - INTERVAL 40 DAYS")
found = pairs.withColumn("place", F.row_number().over(newest)).where("place = 1")


def shown(df):
    return df.select("day", "index", "known", "level").orderBy("day", "index").collect()


assert shown(joined) == shown(found)
print(f"{pairs.count():,} pairs, of which {found.count():,} remain")

# %% [markdown]
# ## A look into the future
#
# The same join by the date of the file gives each day the level at the end of its own month.

# %%
early = prices.selectExpr("symbol AS index", "Date AS began", "price AS level")
leaked = skewext.asof_join(spine, skewext.asof(early, time="began"), on="index", time="day")
both = joined.alias("a").join(leaked.alias("b"), ["day", "index"])
wrong = both.where("a.level <> b.level").count()
print(f"{wrong:,} of {both.count():,} rows have a level that was not known on that day")

# %%
nasdaq = joined.where("index = 'NASDAQ'").orderBy("day").collect()
dates = [row.day for row in nasdaq]


def rebased(values):
    return [100 * value / values[0] for value in values]


figure, axes = plt.subplots(figsize=(9, 4), layout="constrained")
axes.plot(dates, rebased([row.close for row in nasdaq]), color="#3b6fb6", label="Google, each day")
known = rebased([row.level for row in nasdaq])
axes.step(dates, known, where="post", color="#c2571a", label="NASDAQ, as known on that day")
axes.set_ylabel("first day = 100")
axes.legend(frameon=False)
axes.set_title("Google and what was known of the index", loc="left")
axes.spines[["top", "right"]].set_visible(False)
plt.show()

# %% [markdown]
# ## The newest row of each symbol

# %%
skewext.latest(prices, on="symbol", by="known").select("symbol", "known", "price").orderBy(
    "symbol"
).show()

# %%
spark.stop()
