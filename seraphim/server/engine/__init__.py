"""One search shared by many clients, and the messages between them.

In dependency order:

    requests         what pages ask
    thoughts         requests and results of the shared search
    messages         what pages get
    shared_search    one search shared by many players
    engine           runs it in a thread, with a seat for each player
    model_host       the models that are served
    shared           what all clients share
    client           one client
"""
