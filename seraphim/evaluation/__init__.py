"""How strong a player is: matches, ratings, and error rates in solved positions.

In dependency order:

    players           functions that choose an action in each of many positions
    check             a player against solved positions
    error_rates       error rates by set and by readouts, with intervals
    position_lists    solved positions of a game, and lists in files
    match             matches between two players: paired openings, intervals, distinct games
    ratings           Bradley-Terry ratings
    match_csv         matches in a CSV file
    gate              whether a new snapshot becomes the champion
    tournament        players by name, and the tournament of a model's snapshots
    series            games of one player, who always moves first, against others
"""
