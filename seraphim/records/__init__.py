"""Finished games as TFRecord files, and the window of positions that training reads.

In dependency order:

    tfrecord    TFRecord framing and tf.train.Example, without TensorFlow
    sparse      arrays in which few entries are not zero
    schema      how a position is stored as an example
    examples    a finished game as examples, and back
    files       files of games: they appear whole
    index       which games the files hold, in the order of their numbers
    window      the newest positions, as training reads them
    writer      writes games, and the journals of workers
    display     a record as text
    viewer      which records of a file or folder to show
"""
