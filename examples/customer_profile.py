# %% [markdown]
# # One customer profile from five tables
#
# Every system knows some of the customers: the shop, the support desk, the newsletter, the web
# site, the loyalty programme. A profile wants all of them, one row each, whoever knows them: a full
# outer join of five tables on one key.
#
# The data is made up, small, and the same each time.

# %%
import matplotlib.pyplot as plt
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import pyspark_skewext as skewext

builder = SparkSession.builder.appName("customer profile").config("spark.ui.enabled", False)
spark = skewext.configure(builder.config("spark.sql.shuffle.partitions", 8)).getOrCreate()
spark.sparkContext.setLogLevel("ERROR")

# %% [markdown]
# ## The tables
#
# The web site's logs call the key `visitor`, and know people that nobody else knows. The loyalty
# programme has rows without a customer: cards that were never activated.

# %%
customers = spark.range(0, 20_000, 1, 4)
shop = customers.where("id % 3 < 2").selectExpr(
    "id AS customer", "id % 40 AS orders", "round(id % 97 * 1.5, 2) AS spent"
)
support = customers.where("id % 11 = 0").selectExpr("id AS customer", "1 + id % 3 AS tickets")
newsletter = customers.where("id % 5 < 2").selectExpr(
    "id AS customer", "id % 4 <> 0 AS opened", "date_add(DATE'2024-01-01', int(id % 366)) AS since"
)
web = spark.range(5_000, 26_000, 1, 4).selectExpr("id AS visitor", "1 + id % 17 AS visits")
loyalty = customers.where("id % 7 = 0").selectExpr(
    "if(id % 5 = 0, NULL, id) AS customer", "id % 1000 AS points"
)

# %% [markdown]
# ## The join
#
# One call, one pass: every table is shuffled once, however many there are. `indicator` names a
# column that tells which tables have the customer, by position.

# %%
profile = skewext.multi_full_join(
    shop, support, newsletter, (web, "visitor"), loyalty, on="customer", indicator="known_to"
)
profile.orderBy("customer").where("customer >= 5005").show(5)

# %% [markdown]
# What became of it, in words:

# %%
print(skewext.explain(profile))

# %% [markdown]
# Spark's own way is a chain of four joins, whose result is the same. A full outer join of Spark's
# says nothing about where its rows are, so each join shuffles what the one before has shuffled.

# %%
chain = (
    shop.join(support, "customer", "full")
    .join(newsletter, "customer", "full")
    .join(web.withColumnRenamed("visitor", "customer"), "customer", "full")
    .join(loyalty, "customer", "full")
)


def shuffles(df):
    return df._jdf.queryExecution().executedPlan().toString().count("Exchange hashpartitioning")


spark.conf.set("spark.skewext.enabled", "false")
stock_shuffles, stock_rows = shuffles(chain), chain.count()
spark.conf.set("spark.skewext.enabled", "true")
our_rows = profile.count()
print(f"ours: {shuffles(profile)} shuffles, {our_rows:,} rows")
print(f"Spark's chain: {stock_shuffles} shuffles, {stock_rows:,} rows")
assert our_rows == stock_rows

# %% [markdown]
# ## Who knows whom
#
# The indicator is an array, so counting by it is one line. Cards without a customer match nothing
# and come out alone.

# %%
names = ["shop", "support", "newsletter", "web", "loyalty"]
known = profile.groupBy("known_to").count().orderBy(F.desc("count")).limit(12).collect()
labels = [" + ".join(names[position] for position in row.known_to) for row in known]

figure, axes = plt.subplots(figsize=(9, 4.5), layout="constrained")
bars = axes.barh(labels, [row["count"] for row in known], color="#3b6fb6")
axes.bar_label(bars, [f"{row['count']:,}" for row in known], padding=3, fontsize=8)
axes.invert_yaxis()
axes.margins(x=0.15)
axes.set_xlabel("customers")
axes.set_title("Which systems know a customer", loc="left")
axes.spines[["top", "right"]].set_visible(False)
plt.show()

# %% [markdown]
# ## Only some of them
#
# With roles the same pass gives less: customers of the shop, with whatever is known of them, that
# support has never heard of.

# %%
required, optional, excluded = skewext.Role.REQUIRED, skewext.Role.OPTIONAL, skewext.Role.EXCLUDED
quiet = skewext.multi_join(
    shop, support, (web, "visitor"), on="customer", how=[required, excluded, optional]
)
print(f"{quiet.count():,} customers of the shop without a ticket")
quiet.orderBy(F.desc("spent"), "customer").show(5)

# %%
spark.stop()
