"""Models and games for other programs and for browsers.

In dependency order:

    formats         a model as one file for LiteRT or ONNX, checked against the SavedModel
    hub             the folder that a model hub expects
    site            a static web site with the engine in the browser
    openspiel_bot   a model as a bot of OpenSpiel
    aec             a game as an environment of PettingZoo
"""
