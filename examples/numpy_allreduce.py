#!/usr/bin/env python3
"""The smallest job: arrays of NumPy, added up over all workers.

    horovodrun -np 4 python examples/numpy_allreduce.py

`corro` is the native interface below `horovod.torch`: rank, size, allreduce, broadcast and barrier on anything that
has Python's buffer protocol.  It needs neither a framework nor a compiler, nor NumPy itself: array.array works too.

What it computes: π by throwing darts.  Each worker throws its own; the sums of all are the answer.
"""
import corro
import numpy as np

DARTS = 1_000_000

with corro.Context() as job:  # meets the other workers; alone, this is rank 0 of 1
    # Worker 0 decides on the seed, so that all throw from one series of random numbers, each from its own part.
    seed = np.array([float(np.random.default_rng().integers(1 << 30))])
    job.broadcast(seed, root=0)

    random = np.random.default_rng([int(seed[0]), job.rank])
    x, y = random.random((2, DARTS))
    hits = np.array([np.count_nonzero(x * x + y * y < 1.0), DARTS], dtype=np.float64)

    job.allreduce(hits, corro.SUM)  # in place; every worker has the same bits afterwards

    if job.rank == 0:
        print(f"{job.size} workers threw {hits[1]:,.0f} darts: pi is about {4 * hits[0] / hits[1]:.4f}")
