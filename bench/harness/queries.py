"""Queries as a shop would ask them, of tables without skew: what does it cost to look for some?

Two to four joins each, most of them by a shuffle, and group-bys above them.
"""

from __future__ import annotations

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
"""By name."""

LOOKUPS = {"lookup": "SELECT * FROM visits WHERE shop = 7 AND day = 77"}
"""Of one table that is bucketed by two columns, by name."""
