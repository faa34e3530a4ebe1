"""The strength of a player: matches, ratings, and error rates in solved positions.

In dependency order:

    intervals         95 % intervals of shares
    players           functions that choose an action in each of many positions
    engines/          external engines as players, over GTP and UCI
    error_rates       error rates in solved positions, and calibration of values
    check             the check after each generation
    position_lists    solved positions of a game, and lists in files
    match             matches from random openings, and series from the initial position
    ratings           Bradley-Terry ratings
    match_csv         matches in a CSV file
    gate              whether a new snapshot becomes the champion
    tournament        players by name, and the tournament of a model's snapshots
"""
