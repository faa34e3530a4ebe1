"""The figures of a run, as TensorBoard and MLflow show them.

In dependency order:

    tensorboard    event files
    mlflow         runs in MLflow, and the log of both
"""
