"""The limits of a server, and what its requests share."""

from dataclasses import dataclass, field
from typing import NamedTuple

from seraphim.server.middleware import RequestLimits
from seraphim.server.searcher.shared import Shared
from seraphim.server.webfiles import WebFiles


@dataclass(frozen=True)
class ServerLimits:
    """Bounds of a server."""

    sessions: int = 512
    """Clients that search now and then, pages and requests together; one address may have half of them."""
    session_idle: float = 300.0
    """Seconds without a message after which a page's session is released."""
    connection_idle: float = 3600.0
    """Seconds without a message after which a page's connection is closed."""
    silent: int = 512
    """Connections without a request under way; one address may have half of them. Above it, the oldest is closed."""
    silent_seconds: float = 10.0
    """Seconds that a connection may be without a request, or a client may read nothing of an answer."""
    games: int = 100
    """Games in one answer."""
    requests: RequestLimits = field(default_factory=RequestLimits)


class Service(NamedTuple):
    """What all requests share."""

    limits: ServerLimits
    shared: Shared
    files: WebFiles
