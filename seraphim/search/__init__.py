"""Tree search over many positions in lock step: PUCT and Gumbel AlphaZero.

In dependency order:

    terminal_value    what the end of a game is worth
    rng               random numbers by key
    tree              the data: nodes and edges of all trees
    cache             evaluations that were seen before
    selection         the formulas: PUCT, first-play urgency, Gumbel
    traversal         from the root to a leaf, and back up
    expansion         new nodes
    roots             noise at the root, policies
    search            the loop
    analysis          one position with more readouts, candidates, variations
"""
