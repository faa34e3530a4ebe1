"""AlphaZero-style play: a Keras network guides a tree search, which plays the games that the network learns from.

In dependency order (each module imports only from those above it):

    errors         what a person can do wrong, one sentence each
    vetting        checks a Keras archive, and a module that is named as a game, before it is loaded
    compiled       how kernels are compiled
    machine        the processor cores that a process may use
    game           the rules of a game, a batch of positions at a time
    openspiel      the games of OpenSpiel
    moves          moves as text: what they are called, written and read
    conformance    checks a game against that contract, and two forms of a game against each other
    gametree       the history of a game as a tree one can walk
    nativelog      keeps off the terminal what C++ libraries log while they start
    networks       dual-head Keras models
    saving         a network as the files of a snapshot, and loaded again
    inference      a snapshot as a function: observations -> (logits, values)
    tfrecord       TFRecord framing and tf.train.Example, without TensorFlow
    sparse         arrays of which few entries are not zero
    schema         how a position is stored as an example: the features, dense or sparse
    examples       a finished game as examples, and back
    storage        how files appear whole: manifests, pointers, files that are replaced, locks
    gamefiles      files of finished games: they appear whole, and the oldest go
    gameindex      which games the files hold, in which order they are read, and which were removed
    window         the newest positions, as training reads them
    records        the writer of game data, and the journals of those who play
    averaging      equal positions of the window as one
    drawing        a record as a picture in text
    viewer         which records of a file or folder to show
    notation       positions and games in text and in files: moves, drawn boards, saved games, records
    search         PUCT over many trees in lock step
    selfplay       many games at once, played by the search against itself
    analysis       one position at leisure: more readouts, candidates, variations
    thoughts       who thinks of what, and what comes of it
    thinking       one search shared by many players, whose leaves make one batch
    engine         a shared search in a thread of its own, with seats for players
    players        functions that choose an action in each of many positions
    evaluation     a player against solved positions
    exhaustive     small games, solved: every position that play can reach
    positions      solved positions of a game, and lists of a person's own
    strength       error rates by set and by readouts, with intervals
    scalars        figures over steps, as TensorBoard shows them
    training       how a Keras model is trained on positions
    arena          matches between players: paired openings, intervals, distinct games
    ratings        Bradley-Terry ratings of many players
    gating         whether a new snapshot becomes the champion
    settings       every option of a model in one file
    effects        when an option has an effect; flags without one are refused
    snapshots      snapshots of models: names, figures, where they may lie
    holding        a file that one process holds at a time
    store          models and game data on disk
    tracking       the figures of a run: to TensorBoard and to MLflow
    export         a model as one file for LiteRT or ONNX, checked against the SavedModel
    site           a folder for any static host: the page with the engine in the browser
    retraining     the champion, trained on the newest games, becomes the new champion
    opponent       the computer at a board: reads, and chooses, along the tree of a game
    session        a game between a person and the computer: sides, options, branches
    screen         how a position, and what the search thinks of it, looks at a terminal
    terminal       a session on a console: what is printed when, and a search while it goes on
    interactive    a person at a terminal: moves and commands
    pool           workers who play the games of a stream: what all kinds of them share
    workers        a pool of processes: self-play on every core
    leases         numbers of games, lent to workers who may vanish
    parcel         a snapshot as one value, for machines that share no disk
    actor          a worker of a cluster, without the cluster
    joining        joins a Ray cluster, or starts one
    cluster        the machines of a Ray cluster, and the actors there
    crew           a pool of these: self-play on every machine
    generating     the workers' games into files, until enough or interrupted
    curve          the learning curve of a model
    lap            what was done since the curve's last line
    pace           where the time of learning goes
    learning       the whole cycle: generate, train, check, repeat
    matchfile      matches in a CSV file, and the conditions they were played under
    tournament     players by name, and the standing tournament of a model's snapshots
    series         games of one player, who moves first, against others that vary
    benchmark      how fast self-play is, and where the time goes
    installation   what is installed, and on which machine
    health         the state of model and game-data folders
    doctor         tells a person whether everything is as it should be
    truth          exact results of the moves of a position, as far as a game offers them
    requests       what pages ask of an engine
    messages       what pages are told: positions, analyses, games
    quotas         what each address may take of what all clients share
    hosting        the models that are served: loaded, shared, put away
    shared         what all clients share: models, sessions, a solver
    conversation   one client of an engine: its model, its position, its thoughts
    outbox         answers on their way to a client
    learnt         the games and curves of a model, for pages
    webfiles       the files of pages, by version
    guards         bounds on requests, and headers that keep browsers to our pages
    service        what all requests share, and what they may take
    sockets        engines over WebSockets
    server         pages, and what they ask of models and games
    silence        connections without a request under way
    serving        the server's port, its connections, its beginning and end
    programs       flags, names and error messages shared by the programs in bin/
"""
