"""Metrics of a run for TensorBoard and MLflow.

In dependency order:

    tensorboard    event files
    mlflow         runs in MLflow, and the log for both
"""
