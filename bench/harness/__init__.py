"""What `run.py`, `summary.py` and `plot.py` are made of.

`cases` and `skew_cases` say what is measured, `variants` how a join can be written, `queries` what
else is run, `data` makes the tables.
`worker` is a process with a Spark session in it that runs one variant when told so; `workers` is
the other end of the pipe, `measure` takes turns, `report` prints and writes what came out.

`simulate.py` is made of `costs`, what a measured stage tells of others like it, `clusters`, which
makes the tasks of large tables of it, `schedule`, which puts them on cores, and `simulation_page`.
For joins with a hot key these are `hot_costs`, `hot_clusters`, `hot_simulation` and `hot_page`.
"""
