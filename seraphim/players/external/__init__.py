"""External engines as players: over GTP and UCI, and GNU Backgammon.

In dependency order:

    process       a program that answers lines with lines
    move_names    moves as the protocols write them
    player        a player that asks programs
    gtp           the Go Text Protocol, which programs for Go, Othello, Hex and others speak
    uci           the Universal Chess Interface
    gnubg        GNU Backgammon, by boards of FIBS
    load          players of both kinds by name
"""
