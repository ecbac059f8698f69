"""Random queries of joins: how they are made, run by three engines, and made small again.

`python -m random_sql --seed 7 --count 5000`, in `python/tests`, or `make fuzz`.
"""
