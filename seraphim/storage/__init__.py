"""Models and game data on disk.

In dependency order:

    atomic       files that appear whole, pointers, locks
    locks        a file that one process holds at a time
    snapshots    the snapshots of a model
    models       the folder of a model
"""
