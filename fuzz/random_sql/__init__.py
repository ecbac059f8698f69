"""Random queries of joins: how they are made, run by three engines, and made small again.

`make fuzz ARGS='--seed 7 --count 5000'` runs them.
"""
