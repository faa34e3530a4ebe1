"""Playing against a model at the terminal.

opponent    the computer's side: searches and chooses
session     a game between a person and the computer
screen      how a position and an analysis look
terminal    a session on a console
repl        reads and runs a person's commands
"""
