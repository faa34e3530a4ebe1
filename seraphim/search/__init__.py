"""Tree search over a batch of positions: PUCT and Gumbel AlphaZero. Read `naive` first, the same in its plainest form.

In dependency order:

    rng           random numbers by key
    tree          the data: nodes and edges of all trees
    evaluator     what evaluates leaves, and those that wait for it
    cache         the network's earlier evaluations
    selection     the formulas: PUCT, first-play urgency, Gumbel
    traversal     from the root to a leaf, and back up
    solver        proves results up the tree
    expansion     adds new positions to the trees
    roots         noise at the root, policies and best actions
    search        the loop: select, evaluate, expand, back up
    afterstates   a search without a tree: all positions that a turn can end in
    naive         the same search, one position at a time
    analysis      what was found in a position: its moves and their variations
"""
