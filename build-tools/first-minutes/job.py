from time import time

from pyspark.sql import SparkSession
from pyspark.sql import functions as F


def profiles(spark):
    tables = [
        spark.read.parquet(f"{name}.parquet") for name in ("sales", "visits", "mails", "calls")
    ]
    sales, visits, mails, calls = tables
    joined = sales.join(visits, "customer", "full").join(mails, "customer", "full")
    return joined.join(calls, "customer", "full")


if __name__ == "__main__":
    spark = SparkSession.builder.getOrCreate()
    start = time()
    profiles(spark).agg(F.count("*"), F.sum("spent"), F.sum("pages"), F.sum("minutes")).show()
    print(f"{time() - start:.1f} seconds")
