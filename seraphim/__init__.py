"""AlphaZero-style play: a Keras network guides a tree search, which plays the games that the network learns from.

In dependency order (each module imports only from those above it):

    errors         what a person can do wrong, one sentence each
    compiled       how kernels are compiled
    game           the rules of a game, a batch of positions at a time
    conformance    checks a game against that contract
    nativelog      keeps off the terminal what C++ libraries log while they start
    networks       dual-head Keras models, and snapshots of them
    inference      a snapshot as a function: observations -> (logits, values)
    tfrecord       TFRecord framing and tf.train.Example, without TensorFlow
    examples       a finished game as examples, and back
    gamefiles      files of finished games: they appear whole, and the oldest go
    records        the writer of game data, and the window that training reads
    drawing        a record as a picture in text
    viewer         which records of a file or folder to show
    search         PUCT over many trees in lock step
    selfplay       many games at once, played by the search against itself
    analysis       one position at leisure: more readouts, candidates, variations
    players        functions that choose an action in each of many positions
    evaluation     a player against solved positions
    positions      solved positions of a game, and lists of a person's own
    strength       error rates by set and by readouts, with intervals
    training       how a Keras model is trained on positions
    arena          matches between players: paired openings, intervals, distinct games
    ratings        Bradley-Terry ratings of many players
    gating         whether a new snapshot becomes the champion
    settings       every option of a model in one file
    store          models and game data on disk
    retraining     the champion, trained on the newest games, becomes the new champion
    workers        self-play on every core
    generating     the workers' games into files, until enough or interrupted
    curve          the learning curve of a model
    learning       the whole cycle: generate, train, check, repeat
    tournament     players by name, and the standing tournament of a model's snapshots
    benchmark      how fast self-play is, and where the time goes
    programs       flags, names and error messages shared by the programs in bin/
"""
