"""Queries of a shop over tables without skew: what does the search for skew cost?

Each has two to four joins, most of them by a shuffle, and a group-by above them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from harness.case import FILES

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

TABLES = ("sales", "returns", "items", "customers", "stores")

QUERIES = {
    "q1": """
        SELECT category, city, sum(cents) AS turnover, count(DISTINCT customer) AS customers
        FROM sales JOIN items USING (item) JOIN stores USING (store)
        GROUP BY category, city
    """,
    "q2": """
        SELECT brand, sum(cents) AS turnover, sum(refund) AS refunds
        FROM sales LEFT JOIN returns USING (ticket, item) JOIN items USING (item)
        GROUP BY brand
    """,
    "q3": """
        SELECT region, category, count(*) AS sold, max(cents) AS dearest
        FROM customers
          JOIN sales USING (customer)
          JOIN items USING (item)
          JOIN stores USING (store)
        WHERE birth_year < 1980
        GROUP BY region, category
        HAVING count(*) > 1
    """,
    "q4": """
        SELECT region, sum(paid) AS paid, sum(back) AS back, count(*) AS customers
        FROM (SELECT customer, sum(cents) AS paid FROM sales WHERE day < 300 GROUP BY customer)
          FULL JOIN (SELECT customer, sum(refund) AS back FROM returns GROUP BY customer)
            USING (customer)
          JOIN customers USING (customer)
        GROUP BY region
    """,
    "q5": """
        SELECT category, count(*) AS kept
        FROM sales s JOIN items USING (item)
        WHERE s.customer IN (SELECT customer FROM returns WHERE refund > 500)
          AND NOT EXISTS (SELECT 1 FROM returns r WHERE r.ticket = s.ticket AND r.item = s.item)
        GROUP BY category
    """,
    "q6": """
        SELECT category, item, turnover
        FROM (
          SELECT category, item, turnover,
            row_number() OVER (PARTITION BY category ORDER BY turnover DESC, item) AS place
          FROM (SELECT item, sum(cents) AS turnover FROM sales GROUP BY item)
            JOIN items USING (item)
            LEFT JOIN (SELECT item, count(*) AS times FROM returns GROUP BY item) USING (item)
          WHERE coalesce(times, 0) < 100
        )
        WHERE place <= 10
    """,
}


def table(spark: SparkSession, rows: int, number: int) -> DataFrame:
    """One of TABLES: sales have `rows` rows, returns and customers fewer, the others are small."""

    def random(seed: int, below: int) -> Column:
        return F.pmod(F.xxhash64("id", F.lit(seed)), F.lit(max(1, below)))

    items, customers, shops = max(1, rows // 50), max(1, rows // 10), 20
    sold = [
        F.expr("id div 4").alias("ticket"),
        random(1, items).alias("item"),
        random(2, customers).alias("customer"),
    ]
    name = TABLES[number]
    size = {"items": items, "customers": customers, "stores": shops}.get(name, rows)
    ids = spark.range(0, size, 1, FILES)
    if name == "sales":
        amounts = [random(3, shops).alias("store"), random(4, 730).alias("day")]
        return ids.select(*sold, *amounts, random(5, 10_000).alias("cents"))
    if name == "returns":
        return ids.where(random(6, 10) == 0).select(*sold, random(7, 1000).alias("refund"))
    own = F.col("id").alias(name[:-1])
    if name == "items":
        category = F.concat(F.lit("category "), (F.col("id") % 10).cast("string"))
        return ids.select(own, (F.col("id") % 50).alias("brand"), category.alias("category"))
    if name == "customers":
        born = (1940 + random(8, 65)).alias("birth_year")
        return ids.select(own, (F.col("id") % 25).alias("region"), born)
    return ids.select(own, F.concat(F.lit("city "), (F.col("id") % 7).cast("string")).alias("city"))
