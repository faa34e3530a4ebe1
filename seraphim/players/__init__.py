"""Players: whatever chooses a move in a position, and a model in Python.

In dependency order:

    arguments     checks those of public functions
    choose        functions that choose an action in each of many positions
    external/     external engines as players, over GTP and UCI
    review        a whole game: what each position is worth, and the mistakes
    hub           a folder from a model hub, checked before it is loaded
    model         a model in Python, and what it finds in a position
    roster        players by name
    opponent      the computer player of a game: searches positions and chooses moves
"""
