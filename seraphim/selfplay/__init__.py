"""Self-play: many games at once, on every core and on every machine.

In dependency order:

    games        many games at once, played by the search against itself
    pool         what all pools of workers share
    served       one network for several processes
    processes    a pool of worker processes
    generate     writes the workers' games to files
    cluster/     a pool of workers on the machines of a Ray cluster
"""
