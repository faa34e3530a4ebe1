"""Playing against a model at the terminal.

In dependency order:

    opponent      the computer's side: searches and chooses
    screen        how a position and an analysis look
    game_files    saved games, positions and records in files
    session       a game between a person and the computer
    terminal      a session on a console
    repl          reads and runs a person's commands
"""
