"""Print how many tests may run side by side: one for each core, as far as there is memory.

Each has a Spark of its own, in a JVM that takes up to 2 GB. More than four gain nothing: what is
left then is the longest of them.
"""

import os

BYTES_FOR_A_TEST = 3 << 30
MOST = 4


def jobs() -> int:
    affinity = getattr(os, "sched_getaffinity", None)
    cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return max(1, min(MOST, cores, memory // BYTES_FOR_A_TEST))


if __name__ == "__main__":
    print(jobs())
