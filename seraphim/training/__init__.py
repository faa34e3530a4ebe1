"""Training, and the loop of self-play and training.

In dependency order:

    fit          trains a Keras model on positions
    targets      what the value head learns where a game banks results
    averaging    merges equal positions of the window
    trainer      trains a model from one generation to the next
    curve        the learning curve of a model
    strength     matches of a model while it learns
    timing       where the time of learning goes
    loop         generate, train, check, repeat
"""
