"""Training, and the loop of self-play and training.

In dependency order:

    fit          trains a Keras model on positions
    averaging    equal positions of the window as one
    trainer      from one generation to the next
    curve        the learning curve of a model
    progress     elapsed time that survives a kill
    timing       where the time of learning goes
    loop         generate, train, check, repeat
    command      the command train.py of a game
"""
