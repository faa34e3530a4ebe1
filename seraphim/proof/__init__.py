"""Proofs: what a player can force from a position, searched with a network and checked by the rules alone.

In dependency order:

    claims         what can be proven
    keys           equal for the same position, and for symmetric ones
    graph          the AND/OR graph with proof and disproof numbers
    prover         the search: select, evaluate, expand
    question       a claim and its opposite in turns, and the file that a search goes on from
    certificate    a proof as a file, and its positions
    known_moves    the moves of proofs by position
    knowledge      exact values of moves, from proofs and from a game's solver
    proving        several claims one after the other, from start to certificate
    display        progress and result in words
"""
