"""Seraphim as an engine for other programs, over GTP and UCI.

In dependency order:

    clock      how long to think about a move
    thinker    a game, and a search of its current position that can be stopped
    gtp        the Go Text Protocol
    uci        the Universal Chess Interface
"""
