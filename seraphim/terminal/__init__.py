"""A game at the terminal.

In dependency order:

    screen        how a position and an analysis are drawn
    review        how the review of a game is drawn
    sgf           games of Go, Othello and Hex in the Smart Game Format
    game_files    saved games, positions and records in files
    session       a game between a person and the computer
    terminal      shows a session on a console
    repl          reads and runs commands
"""
