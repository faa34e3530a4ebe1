"""The commands of `seraphim`: flags, and calls of the library. Only they print.

Each module is a command: its docstring is what --help shows, it defines its flags when it is imported, and `main` runs
it with the arguments that are no flags. `seraphim.__main__` imports the one that is asked for.

    arena                 matches and ratings
    benchmark             the speed of this machine
    check_game            a game against its contract
    check_proof           a proof by the rules alone; imports nothing else of the library
    curve                 a picture of the learning curve
    doctor                installation, machine, models and game data
    engine                an engine over GTP or UCI, or lines of JSON
    evaluate              errors in solved positions
    export                a page for the browser, or a file for another runtime
    generate              self-play
    generate_positions    sets of solved positions
    learn                 the whole loop
    play                  a game at the terminal
    prove                 what a player can force
    review                a whole game: the chance of winning by move, and the mistakes
    serve                 the page in the browser
    train                 a new model, or one training
    view                  game records
"""
