"""What the HTTP edge may be told, checked before any socket opens.

No server is imported here: the configuration needs these settings and the command line must not
pay for a web server that it does not start.
"""

import ipaddress
import ssl
from dataclasses import dataclass, field

from hdguard.observe.limits import LEAST_CONNECTIONS

SHORTEST_TOKEN = 16
"""Characters: with 64 signs each that is 96 bits, beyond guessing at any rate we answer."""


class HttpError(Exception):
    """The HTTP edge cannot be opened: says what is wrong and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpSettings:
    """`[http]`: where people, probes and publishers reach the guard.

    Attributes:
        host: the address to listen on. Any but a loopback one needs TLS and `token`. A proxy on
            this machine must pass on the client's Host, or say that it is one (X-Forwarded-For):
            else whoever comes through it sees pictures as if they sat here.
        port: 0 takes any free one.
        token: lets an operator halt the robot, end a halt, and see pictures from elsewhere; without
            it nobody can over HTTP.
        publish_tokens: camera name -> token that lets a publisher send it pictures (WHIP).
        tls_cert: PEM file of our certificate and those above it.
        tls_key: PEM file of its key.
        max_connections: held at a time; for one more the oldest without an accepted token gives
            way.

    Raises:
        ValueError: names the key.
    """

    host: str = "127.0.0.1"
    port: int = 8090
    token: str | None = field(default=None, repr=False)
    publish_tokens: dict[str, str] = field(default_factory=dict, repr=False)
    tls_cert: str | None = None
    tls_key: str | None = None
    max_connections: int = 96

    def __post_init__(self) -> None:
        if not 0 <= self.port <= 65535:
            msg = f"port: {self.port} must be 0 to 65535"
            raise ValueError(msg)
        if self.max_connections < LEAST_CONNECTIONS:
            msg = f"max_connections: {self.max_connections} must be at least {LEAST_CONNECTIONS}"
            raise ValueError(msg)
        if (self.tls_cert is None) is not (self.tls_key is None):
            missing = "tls_key" if self.tls_key is None else "tls_cert"
            msg = f"{missing}: must be given too: TLS needs a certificate and its key"
            raise ValueError(msg)
        if self.token is not None:
            _check_token("token", self.token)
        for camera, token in self.publish_tokens.items():
            _check_token(f"publish_tokens.{camera}", token)
        if not is_loopback(self.host):
            self._check_exposed()

    def _check_exposed(self) -> None:
        for key in ("tls_cert", "token"):
            if getattr(self, key) is None:
                msg = (
                    f"{key}: must be given because host {self.host!r} is reachable from outside; "
                    "or listen on 127.0.0.1"
                )
                raise ValueError(msg)

    def tls(self) -> ssl.SSLContext | None:
        """What the server shows; None: no TLS.

        Raises:
            HttpError: the certificate or its key cannot be used.
        """
        if self.tls_cert is None:
            return None
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        try:
            context.load_cert_chain(self.tls_cert, self.tls_key)
        except OSError as error:  # an SSLError is one
            msg = (
                f"http.tls_cert, http.tls_key: {self.tls_cert} and {self.tls_key} cannot be used: "
                f"{error}"
            )
            raise HttpError(msg) from error
        return context


def is_loopback(host: str) -> bool:
    """True if only this machine can reach that address; a name other than localhost is not."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _check_token(key: str, token: str) -> None:
    if len(token) < SHORTEST_TOKEN or not token.isascii() or not token.isprintable():
        msg = f"{key}: must be {SHORTEST_TOKEN} or more printable ASCII characters without spaces"
        raise ValueError(msg)
    if " " in token:
        msg = f"{key}: must not have spaces in it"
        raise ValueError(msg)
