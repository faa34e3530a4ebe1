"""The strength of a player: matches, ratings, and error rates in solved positions.

In dependency order:

    intervals         95 % intervals of shares
    error_rates       error rates in solved positions, and calibration of values
    check             the check after each generation
    position_lists    solved positions of a game, and lists in files
    match             matches from random openings
    seats             games for one player, and for more than two
    series            games from the initial position, exact where they can be
    exact_play        what a player's moves are worth exactly in a game that is solved
    ratings           Bradley-Terry ratings
    match_csv         matches in a CSV file
    gate              whether a new snapshot becomes the champion
    tournament        all against all, and the tournament of a model's snapshots
"""
