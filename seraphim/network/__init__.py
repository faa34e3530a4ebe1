"""Dual-head Keras networks, and their files.

In dependency order:

    safety           checks a Keras archive before it is loaded
    archive          reads one by h5py, where there is no Keras
    native_log       keeps start-up messages of C++ libraries off the terminal
    architectures    the mlp and the residual network
    muon             the optimizer Muon, for convolutions too
    saved_model      a network as the files of a snapshot, and loaded again
"""
