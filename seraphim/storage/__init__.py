"""Models and game data on disk.

In dependency order:

    atomic       crash-safe files: manifests, atomic replacement, locks
    snapshots    snapshots of a model: names, metrics, trust
    models       the folder of a model
    shipped      what comes with Seraphim: programs and models
"""
