# %% [markdown]
# # By Spark Connect
#
# The session runs on a server; this notebook has only the client, and its functions are the same.
# Where the server is stands in `SPARK_REMOTE`, as Spark has it (`docker/compose.yaml` sets it).
# Where it does not, PySpark 4 starts a server on this machine.

# %%
import os

from pyspark.sql import SparkSession

import pyspark_skewext as skewext

builder = SparkSession.builder.remote(os.environ.get("SPARK_REMOTE", "local[2]"))
if "SPARK_REMOTE" not in os.environ:
    builder = skewext.configure(builder)
spark = builder.getOrCreate()
print("The server has skewext:", skewext.is_enabled(spark))

# %% [markdown]
# ## Three tables, one join

# %%
phones = spark.createDataFrame([(1, "red"), (2, "blue")], ["id", "colour"])
bills = spark.createDataFrame([(2, 9.5), (3, 4.0), (3, 1.5)], ["id", "amount"])
calls = spark.createDataFrame([(1, 7), (4, 2)], ["device", "calls"])

profile = skewext.multi_full_join(phones, bills, (calls, "device"), on="id", indicator="known_to")
profile.orderBy("id", "amount").show()

# %% [markdown]
# What became of it, in words:

# %%
print(skewext.explain(profile))

# %% [markdown]
# ## Where skew is
#
# Half of these rows have one key. The report looks for such keys in a table, and a join can then
# take a technique for them.

# %%
orders = spark.range(200_000).selectExpr("if(id % 2 = 0, 7, id) AS customer", "id AS order")
customers = spark.range(100_000).selectExpr("id AS customer", "id % 50 AS country")
print(skewext.skew_report(orders, "customer"))

# %%
joined = skewext.skew_join(orders, customers, on="customer", how="left", technique="auto")
joined.groupBy("country").count().orderBy("count", ascending=False).show(3)

# %% [markdown]
# ## The same in SQL
#
# Table functions need nothing but the server: `dbt` and JDBC have them, too.

# %%
phones.createOrReplaceTempView("phones")
bills.createOrReplaceTempView("bills")
spark.sql(
    "SELECT * FROM skewext_multi_join(TABLE(phones), TABLE(bills), keys => 'id') "
    "ORDER BY id, amount"
).show()

# %%
spark.stop()
