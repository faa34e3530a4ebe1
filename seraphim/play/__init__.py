"""Playing against a model: at the terminal, as an engine of other programs, and in Python.

In dependency order:

    opponent      the computer player: searches positions and chooses moves
    screen        how a position and an analysis are drawn
    sgf           games of Go, Othello and Hex in the Smart Game Format
    game_files    saved games, positions and records in files
    session       a game between a person and the computer
    engine/       Seraphim as an engine of other programs, by GTP and UCI
    terminal      shows a session on a console
    repl          reads and runs commands
    model         a model in Python, and what it finds in a position
"""
