"""The server of the pages: HTTP, WebSockets, and what protects them.

run           the port, connections, start and stop
app           the routes
service       what all requests share
sockets       engines over WebSockets
outbox        answers on their way to a client
middleware    bounds on requests, and security headers
quotas        what each address may take
idle          connections without a request
webfiles      the pages' files, by version
history       the games and curves of a model
engine/       one search shared by many clients
"""
