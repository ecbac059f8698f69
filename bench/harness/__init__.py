"""The parts of `run.py` and of the other tools.

`cases` lists the cases and `variants` the ways to write a join. `plans` has the plan that each
variant must have. `data`, `hot_tables` and `queries` make the tables. `measure` takes turns between
sessions, which `sessions` starts and `worker` runs in. `facts` reads Spark's status stores,
`report` writes result files.
"""
