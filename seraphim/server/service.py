"""What all requests to the server share, and what they may take."""

from dataclasses import dataclass, field

from seraphim.server.engine.model_host import Host
from seraphim.server.engine.shared import Shared, Solver
from seraphim.server.history import Learnt
from seraphim.server.middleware import RequestLimits
from seraphim.server.quotas import FairThread, Quota
from seraphim.server.webfiles import WebFiles


@dataclass(frozen=True)
class ServerLimits:
    """What a server may take."""

    sessions: int = 512
    """Clients that think now and then, pages and requests together; those of one address may be half of them."""
    session_idle: float = 300.0
    """Seconds without a message after which a page's session, and its place at an engine, are given to others."""
    connection_idle: float = 3600.0
    """Seconds without a message after which a page's connection is closed."""
    silent: int = 512
    """Connections without a request under way, of which an address may have half; beyond, the oldest is closed."""
    silent_seconds: float = 10.0
    """For which a connection may be without a request, and a client may read nothing of an answer."""
    games: int = 100
    """Games of one answer."""
    requests: RequestLimits = field(default_factory=RequestLimits)


class Service:
    """What all requests share."""

    def __init__(self, host: Host, limits: ServerLimits) -> None:
        self.limits = limits
        self.learnt = Learnt()
        self.files = WebFiles()
        self.shared = Shared(host, Quota(limits.sessions, "sessions"), Solver(), FairThread("rules"))

    @property
    def host(self) -> Host:
        """Return the host of the models."""
        return self.shared.host
