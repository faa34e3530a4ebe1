"""AlphaZero-style play: a Keras network guides a tree search, which plays the games that the network learns from.

In dependency order (each module imports only from those above it):

    errors         what a person can do wrong, one sentence each
    game           the rules of a game, a batch of positions at a time
    conformance    checks a game against that contract
    inference      a model as a function: observations -> (logits, values)
    networks       dual-head Keras models
    records        finished games as TFRecord files
    search         PUCT over many trees in lock step
    selfplay       many games at once, played by the search against itself
    evaluation     a player against solved positions
    settings       every option of a model in one file
    store          models and game data on disk
    training       game data -> model -> snapshot
    workers        self-play on every core
    learning       the whole cycle: generate, train, check, repeat
    programs       flags, names and error messages shared by the programs in bin/
"""
