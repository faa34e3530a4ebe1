"""One search shared by many clients, and the messages between them.

In dependency order:

    requests         messages from pages
    limits           bounds of a search, and the memory of its trees
    shared_search    one search for many sessions
    shared_turns     the same without a tree, for models that play by afterstates
    messages         messages to pages
    searcher         runs the search in a thread
    model_host       the models that are served
    engine_host      external engines that clients can play with
    shared           what all clients share
    client           one client
"""
