"""The server of the pages: HTTP, WebSockets, and what protects them.

In dependency order:

    quotas        what each address may take
    middleware    bounds on requests, and security headers
    connections   connections without a request
    webfiles      the pages' files, by version
    engine/       one search shared by many clients
    outbox        answers on their way to a client
    history       the games and curves of a model
    service       what all requests share
    sockets       engines over WebSockets
    app           the routes
    run           the port, connections, start and stop
"""
