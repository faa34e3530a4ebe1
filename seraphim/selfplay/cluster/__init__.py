"""Self-play on the machines of a Ray cluster.

In dependency order:

    work_queue     numbers of games, leased to workers that may vanish
    bundle         a snapshot as one value, for machines that share no disk
    actor          a worker, without Ray
    ray_session    joins a Ray cluster, or starts one
    nodes          the machines of a cluster, and the actors on them
    pool           the pool of these workers
"""
