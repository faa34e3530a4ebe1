"""The server of the pages: HTTP, WebSockets, and their limits.

In dependency order:

    quotas        shares of what all clients use
    middleware    bounds on requests, and security headers
    connections   bounds on connections without a request
    webfiles      the pages' files, by version
    searcher/     one search shared by many clients
    json_engine   one JSON line in, one out: positions of one client, without the web
    history       the games and learning curves of a model
    service       the server's limits, and what its requests share
    sockets       searchers over WebSockets
    app           the routes
    run           the port, start and stop
"""
