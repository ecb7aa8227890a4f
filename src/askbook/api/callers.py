"""Who asks: the bearer of a key, or whoever sits at the machine, which is its owner."""

from __future__ import annotations

import hashlib
import ipaddress
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlsplit

from fastapi import Depends, Request, Security
from fastapi.security import APIKeyHeader, HTTPAuthorizationCredentials, HTTPBearer

from askbook.api.limits import COSTS, RateLimiter
from askbook.domain import BookRecord, Key, Role, Scope, to_internal_id, to_public_id
from askbook.errors import InputError, NotAllowed, NotFound, TooManyRequests

if TYPE_CHECKING:
    from askbook.api.running import Running
    from askbook.settings import Settings

_LOCAL_HOST = re.compile(r"(?:localhost|127\.0\.0\.1|\[::1\])(?::\d{1,5})?", re.IGNORECASE)

# Headers that proxies, balancers and tunnels add, and that no direct client sends.
_PROXY = re.compile(
    r"(?:x-)?forwarded.*|(?:.*-)?via|x-real-.*|x-remote-.*|.*-ip|.*clientip|cf-.*|cdn-.*|cloudfront-.*"
    r"|surrogate-.*|x-original-.*|x-rewrite-.*|x-scheme|front-end-.*"
    r"|(?:x-)?proxy.*|x-(?:envoy|amzn?|azure|arr|appengine|cloud|varnish|haproxy|nginx|traefik|accel|vercel|ssl|sucuri"
    r"|bluecoat)-?.*"
    r"|(?:ngrok|fly|fastly|akamai|tailscale)-.*|x-request-start"
)
_OWN_PAGE = ("same-origin", "none")
_READER = re.compile(r"[A-Za-z0-9_-]{22,128}")
_header = APIKeyHeader(name="X-API-Key", auto_error=False, description="A key that `askbook keys create` made.")
_bearer = HTTPBearer(auto_error=False, description="The same key, as a bearer token.")


@dataclass(frozen=True, slots=True)
class Caller:
    key_id: str
    """Empty for the owner of the machine."""
    owner: str
    """Owns the threads. Each key is an owner, and so is each reader who uses a site's key."""
    role: Role
    scope: Scope


MACHINE = Caller(key_id="", owner="", role="admin", scope=Scope())


async def get_caller(
    request: Request,
    header: Annotated[str | None, Security(_header)],
    bearer: Annotated[HTTPAuthorizationCredentials | None, Security(_bearer)],
) -> Caller:
    """For `Depends`. Spends one request of the key's minute; raises what becomes a 401 or a 429."""
    caller = await _find_caller(request, header or (bearer.credentials if bearer else None))
    request.state.caller = caller
    await _spend(request, caller, 1)
    return caller


async def get_admin(request: Request, caller: Annotated[Caller, Depends(get_caller)]) -> Caller:
    """For `Depends`. Spends what the route costs beyond one request, after the role was checked."""
    if caller.role != "admin":
        raise NotAllowed("this needs the key of an admin", "`askbook keys create --role admin` makes one.")
    await _spend(request, caller, COSTS.get(getattr(request.scope.get("route"), "path", ""), 1), spent=1)
    return caller


async def _find_caller(request: Request, text: str | None) -> Caller:
    running: Running = request.app.state.running
    keys = running.askbook.keys
    key = await keys.find(text) if text else None
    if key is not None:
        owner = _read_owner(request, key)
        await keys.touch(key)
        return Caller(key.key_id, owner, key.role, key.scope)
    # An invalid key is refused. Where no key was ever made it is ignored, because some clients must send one.
    if is_local(request) and (not text or not await keys.were_made()):
        return MACHINE
    if text:
        raise NotAllowed("the key is not valid", "It is wrong, or it was revoked.")
    raise NotAllowed("this needs a key", "Send it as X-API-Key, or as Authorization: Bearer.")


def _read_owner(request: Request, key: Key) -> str:
    """The owner of the threads. All readers of a site share its key, so a secret of each tells them apart."""
    if not key.origins:
        return key.key_id
    if request.headers.get("origin") not in key.origins:
        raise NotAllowed("this key is for the pages of another site", "`askbook keys create --origin` names the site.")
    token = request.headers.get("x-reader", "")
    if not _READER.fullmatch(token):
        raise InputError("a site's key needs X-Reader", "Send 22 to 128 random letters and digits, a reader's own.")
    return f"{key.key_id}:{hashlib.sha256(token.encode()).hexdigest()}"


def is_local(request: Request) -> bool:
    """Whether the request comes from this machine and is meant for it.

    A header never makes a request local, but it may show that it is not: proxies add their own, a site whose name was
    made to point here sends that name, and a browser says which site's page asks.
    """
    running: Running = request.app.state.running
    if request.client is None or not trusts_loopback(running.settings) or _is_forwarded(request):
        return False
    if not is_loopback(request.client.host) or not _LOCAL_HOST.fullmatch(request.headers.get("host", "")):
        return False
    origin = request.headers.get("origin")
    if origin is not None:
        return origin in (f"{request.url.scheme}://{request.url.netloc}", *running.settings.askbook_cors_origins)
    return request.headers.get("sec-fetch-site", "none") in _OWN_PAGE or _opens_page(request)


def trusts_loopback(settings: Settings) -> bool:
    """A server with a public address stands behind a proxy, and one that leaves no sign would pass for the owner."""
    if settings.askbook_local_owner is not None:
        return settings.askbook_local_owner
    return settings.askbook_public_url is None or bool(
        _LOCAL_HOST.fullmatch(urlsplit(settings.askbook_public_url).netloc)
    )


def _is_forwarded(request: Request) -> bool:
    """By default nginx before 1.29.7 adds no header and sends the host that it forwards to, but speaks HTTP/1.0.
    Later ones speak HTTP/1.1 and leave no sign: behind them ASKBOOK_PUBLIC_URL or ASKBOOK_LOCAL_OWNER=0 is needed."""
    return request.scope.get("http_version") == "1.0" or any(map(_PROXY.fullmatch, request.headers.keys()))


def _opens_page(request: Request) -> bool:
    """Whether a person followed a link: that person sees the answer, and the page with the link cannot read it."""
    goes = request.headers.get("sec-fetch-mode"), request.headers.get("sec-fetch-dest")
    return request.method == "GET" and goes == ("navigate", "document")


def is_loopback(host: str) -> bool:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return (mapped or address).is_loopback


async def _spend(request: Request, caller: Caller, cost: int, spent: int = 0) -> None:
    limiter: RateLimiter | None = request.app.state.limiter
    if limiter is None or not caller.key_id:
        return
    # No route costs more than a whole minute.
    key_id, cost = caller.key_id, min(cost, limiter.per_minute) - spent
    if cost <= 0:
        return
    allowance = request.state.allowance = await limiter.spend(key_id, cost)
    if not allowance.allowed:
        raise TooManyRequests(
            f"more than {allowance.limit} requests in a minute", f"Try again in {allowance.seconds} seconds."
        )


# --- which book -----------------------------------------------------------------------------------


def find_books(caller: Caller, books: Iterable[BookRecord]) -> list[BookRecord]:
    """The books that the caller may read."""
    return [record for record in books if caller.scope.holds(record.book_id)]


def pick_book(caller: Caller, public_id: str | None, books: Iterable[BookRecord]) -> BookRecord:
    """The book that was named, or the only one. A book of another tenant is reported as missing."""
    own = find_books(caller, books)
    if public_id is not None:
        book_id = to_internal_id(caller.scope.tenant, public_id)
        named = [record for record in own if record.book_id == book_id]
        if not named:
            raise NotFound(f"there is no book {public_id[:64]}", "GET /info lists the books.")
        return named[0]
    if not own:
        raise NotFound("there is no book yet", "`askbook ingest FOLDER` makes one.")
    if len(own) > 1:
        names = ", ".join(to_public_id(record.book_id) for record in own)
        raise InputError(f"there are several books: {names}", "Name one as book_id.")
    return own[0]
