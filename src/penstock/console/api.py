"""The console over HTTP: what is told to those who may look, and done for those who may command."""

# No `annotations` from the future: FastAPI reads them, and some are local.

import asyncio
import contextlib
import ipaddress
import json
import threading
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Depends, FastAPI, Header, HTTPException, Path, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse, StreamingResponse
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, TypeAdapter, ValidationError

from penstock import __version__
from penstock.console.bundle import MAX_BYTES
from penstock.console.client import MOST_SETS, SETS
from penstock.console.commands import Command
from penstock.console.metrics import metrics
from penstock.console.once_per_key import KeyTaken, OutcomeUnknown
from penstock.console.service import NotLeading, Service, TooManyQuestions
from penstock.console.tokens import Person, Role, Tokens
from penstock.errors import BundleError, CommandRefused, CoordinationError, PenstockError

LOCAL = Person("somebody on this machine", Role.OPERATOR)
_STREAM_SECONDS = 0.3
"""A page that is open is told something new so often."""
_MOST_WORDS = 100_000
_SUBMIT = "/api/topologies"
_LONGEST_NAME = 100
_LONGEST_ASKED = 200
"""Of a path that is written down: nobody has checked it yet."""
_LISTENERS = ThreadPoolExecutor(64, thread_name_prefix="penstock-listener")
"""Each open page waits in a thread of its own; more than these wait for one another."""
_COMMANDS_AT_ONCE = 64
_COMMANDERS = ThreadPoolExecutor(_COMMANDS_AT_ONCE, thread_name_prefix="penstock-commander")
"""A command may wait for its node for a minute: those who only look do not wait with it."""
_BYTES = {"schema": {"type": "string", "format": "binary"}}
_BUNDLE = {"required": True, "content": {"application/octet-stream": _BYTES}}

_SETS = TypeAdapter(Annotated[list[Annotated[str, StringConstraints(max_length=2000, pattern=r"^[^=]+=")]],
                              Field(max_length=100)])  # fmt: skip
_SETS_MEAN = 'What to set, as for `--set`: a JSON list such as `["replicas=2"]`.'
KeyValue = Annotated[str, StringConstraints(max_length=2000, pattern=r"^[^\x00]*$")]
NodeName = Annotated[str | None, Query(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_-]{0,99}$", description="An operator.")]
TopologyName = Annotated[str, Path(pattern=r"^[A-Za-z0-9_-]{1,100}$")]
Key = Annotated[
    str | None,
    Header(alias="Idempotency-Key", pattern=r"^[A-Za-z0-9_-]{1,100}$",
           description="A command with the same key twice is carried out once, and has the same answer; another one "
                       "with that key is refused."),
]  # fmt: skip


@dataclass(frozen=True)
class Access:
    """Who is let in."""

    tokens: Tokens
    open: bool
    """Whether everybody may do everything: on loopback, where only this machine's users come."""
    hosts: frozenset[str]
    """The names under which the console may be asked; empty: any. Else a page from elsewhere could be given a name
    that leads here."""

    def person(self, request: Request) -> Person:
        """Who is asking; raises 401 when nobody knows."""
        given = request.headers.get("authorization", "").removeprefix("Bearer ").strip()
        text = given or request.cookies.get(cookie_of(request), "")
        token = self.tokens.check(text) if text else None
        if token is not None and not token.expired:
            return Person(token.name, token.role)
        if self.open and not given:
            # A cookie may be left of another console that was here, and nobody has asked for it to be sent.
            return LOCAL
        why = "the token has expired" if token is not None else "the token is wrong" if text else "a token is needed"
        raise HTTPException(401, f"{why}: make one with `penstock token create`", {"WWW-Authenticate": "Bearer"})


def cookie_of(request: Request) -> str:
    """What the cookie with the token is called: a browser sends it to every port of a host, so it has its own in it."""
    port = request.headers.get("host", "").rpartition(":")[2]
    return f"penstock-{port}" if port.isdecimal() else "penstock"


class Session(BaseModel):
    """For the page: a token that it keeps."""

    model_config = ConfigDict(extra="forbid")
    token: Annotated[str, StringConstraints(max_length=200)]


def create_app(service: Service, access: Access) -> FastAPI:
    """The API; the page is added to it by `dashboard.add_page`."""
    app = FastAPI(title="Penstock", version=__version__, description="The console of Penstock.",
                  openapi_url="/api/openapi.json", docs_url=None, redoc_url=None)  # fmt: skip
    _tell_errors(app)
    _guard(app, access)

    def viewer(request: Request) -> Person:
        return access.person(request)

    def operator(request: Request) -> Person:
        person = access.person(request)
        if person.role is not Role.OPERATOR:
            said = f"{person.name} may look but not command: that takes a token for operators"
            asked = f"{request.method} {request.url.path}"[:_LONGEST_ASKED]
            if request.method != "GET":
                topology = str(request.path_params.get("name", ""))[:_LONGEST_NAME] or None
                service.refuse(person, _address(request), asked, topology, said)
            raise HTTPException(403, said)
        return person

    _add_telling(app, service, viewer, access)
    _add_commands(app, service, operator)
    _add_session(app, access)
    return app


def _add_telling(app: FastAPI, service: Service, viewer: Callable[..., Person], access: Access) -> None:
    watching = service.master.watching
    may_look = [Depends(viewer)]

    @app.get("/api/topologies", dependencies=may_look, tags=["look"])
    def topologies() -> list[dict[str, Any]]:
        """All topologies."""
        return service.overview()

    @app.get("/api/topologies/{name}", dependencies=may_look, tags=["look"])
    def topology(name: TopologyName) -> dict[str, Any]:
        """One topology: its graph, its figures over time, its replicas, its events."""
        return service.details(name)

    @app.get("/api/topologies/{name}/log", dependencies=may_look, tags=["look"], response_class=PlainTextResponse)
    def log(name: TopologyName, replica: Annotated[str | None, Query(pattern=r"^[0-9]{1,3}$")] = None,
            node: Annotated[str | None, Query(max_length=200, description="Of this node only.")] = None
            ) -> str:  # fmt: skip
        """The end of what a topology's supervisor, or one of its replicas, has said; its node is asked for it.

        Where several nodes have one, each line has its node before it."""
        return service.log(name, replica, node)

    @app.get("/api/topologies/{name}/dead-letters", dependencies=may_look, tags=["look"])
    def dead_letters(name: TopologyName, operator: NodeName = None,
                     last: Annotated[int, Query(ge=1, le=200)] = 50) -> list[dict[str, Any]]:  # fmt: skip
        """The newest of the tuples and records that failed for good."""
        chosen = () if operator is None else ("--operator", operator)
        return service.asked(name, "dead-letters", "--last", str(last), *chosen)

    @app.get("/api/topologies/{name}/checkpoints", dependencies=may_look, tags=["look"])
    def checkpoints(name: TopologyName) -> list[dict[str, Any]]:
        """The checkpoints that were taken by name."""
        return service.asked(name, "checkpoint", "--list")

    @app.get("/api/topologies/{name}/state", dependencies=may_look, tags=["look"])
    def state(name: TopologyName, operator: NodeName = None,
              key: Annotated[list[KeyValue], Query(max_length=20, description="COLUMN=VALUE.")] = [],  # noqa: B006
              limit: Annotated[int, Query(ge=1, le=200)] = 50) -> list[dict[str, Any]]:  # fmt: skip
        """What the stateful operators remember: of each its size; or of one its keys and values, open windows too.

        Keys and values are read by a Spark of their own, which takes some seconds."""
        if operator is None:
            if key:
                raise HTTPException(422, "key: name the operator whose keys are meant")
            return service.asked(name, "state")
        chosen = [f"--key={each}" for each in key]
        return service.asked(name, "state", operator, "--limit", str(limit), *chosen)

    @app.get("/api/events", dependencies=may_look, tags=["look"])
    def events(topology: Annotated[str | None, Query(pattern=r"^[A-Za-z0-9_-]{1,100}$")] = None,
               last: Annotated[int, Query(ge=1, le=500)] = 100) -> list[dict[str, Any]]:  # fmt: skip
        """What has happened, the newest last."""
        return [vars(event) for event in watching.events(topology, last)]

    @app.get("/api/console", dependencies=may_look, tags=["look"])
    def console(person: Annotated[Person, Depends(viewer)]) -> dict[str, Any]:
        """Masters and nodes, and who is asking."""
        leader = service.master.leader()
        return {
            "version": __version__,
            "me": service.master.me.name,
            "leading": service.master.leading,
            "leader": None if leader is None else vars(leader),
            "masters": [vars(candidate) for candidate in service.master.candidates()],
            "nodes": [vars(node) for node in watching.nodes().values()],
            "person": {"name": person.name, "role": person.role},
        }

    @app.get("/api/stream", dependencies=may_look, tags=["look"], response_class=StreamingResponse)
    async def stream(request: Request,
                     topology: Annotated[str | None, Query(pattern=r"^[A-Za-z0-9_-]{1,100}$")] = None
                     ) -> StreamingResponse:  # fmt: skip
        """What changes, as server-sent events: all topologies, or everything about one."""
        return StreamingResponse(_looks(request, service, topology, access), media_type="text/event-stream",
                                 headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})  # fmt: skip

    @app.get("/metrics", dependencies=may_look, tags=["look"], response_class=PlainTextResponse)
    def prometheus() -> str:
        """Figures for Prometheus."""
        return metrics(watching.all(), len(watching.nodes()), service.master.leading)

    @app.get("/healthz", tags=["look"], response_class=PlainTextResponse)
    async def healthz() -> str:
        """Whether this master is alive; it waits for no thread."""
        return "alive\n"

    @app.get("/readyz", tags=["look"], response_class=PlainTextResponse,
             responses={503: {"description": "The coordinator does not answer, or no master leads."}})  # fmt: skip
    def readyz() -> PlainTextResponse:
        """Whether this master sees the coordinator, and one that leads: itself or another."""
        if not watching.reachable:
            return PlainTextResponse("the coordinator does not answer\n", 503)
        if not service.master.leading and service.master.leader() is None:
            return PlainTextResponse("no master leads yet\n", 503)
        return PlainTextResponse("ready\n")


def _add_commands(app: FastAPI, service: Service, operator: Callable[..., Person]) -> None:
    Operator = Annotated[Person, Depends(operator)]
    places = threading.BoundedSemaphore(_COMMANDS_AT_ONCE)

    async def carried_out(do: Callable[..., dict[str, Any]], *given: Any) -> dict[str, Any]:
        if not places.acquire(blocking=False):
            raise HTTPException(429, f"{_COMMANDS_AT_ONCE} commands are being carried out, and this one was not: try "
                                "again in some seconds")  # fmt: skip
        doing = _COMMANDERS.submit(do, *given)
        # When it is really over, also where nobody waits for it any more.
        doing.add_done_callback(lambda _: places.release())
        return await asyncio.wrap_future(doing)

    @app.post("/api/topologies", tags=["command"], status_code=201, openapi_extra={"requestBody": _BUNDLE})
    async def submit(request: Request, person: Operator, key: Key = None,
                     file: Annotated[str, Query(max_length=200)] = "topology.yaml",
                     sets: Annotated[str, Header(alias=SETS, max_length=MOST_SETS, description=_SETS_MEAN)] = "[]",
                     replace: bool = False, fresh: bool = False, spread: bool = False) -> dict[str, Any]:  # fmt: skip
        """Hand a topology over, as a bundle of its files."""
        if "set" in request.query_params:
            raise HTTPException(422, f"set: proxies keep addresses in their logs, so give it in the header {SETS}")
        given = _sets(sets)
        packed = await _body(request)
        address = _address(request)
        return await carried_out(service.submit, packed, file, given, replace, fresh, person, address, key, spread)

    @app.post("/api/topologies/{name}/commands", tags=["command"])
    async def command(request: Request, name: TopologyName, command: Command, person: Operator, key: Key = None
                      ) -> dict[str, Any]:  # fmt: skip
        """Give a command."""
        return await carried_out(service.command, name, command, person, _address(request), key)

    @app.delete("/api/topologies/{name}", tags=["command"])
    async def remove(request: Request, name: TopologyName, person: Operator, key: Key = None) -> dict[str, Any]:
        """Forget a topology that does not run; what it has written stays."""
        return await carried_out(service.remove, name, person, _address(request), key)

    @app.get("/api/bundles/{digest}", dependencies=[Depends(operator)], tags=["command"])
    def bundle(digest: Annotated[str, Path(pattern=r"^[0-9a-f]{64}$")]) -> Response:
        """The files of a version, for the nodes."""
        packed = service.bundle(digest)
        if packed is None:
            raise CommandRefused(f"this master has no bundle {digest[:12]}", missing=True)
        return Response(packed, media_type="application/zip")


def _add_session(app: FastAPI, access: Access) -> None:
    @app.post("/api/session", tags=["session"], status_code=204)
    def begin(request: Request, session: Session) -> Response:
        """Have the browser keep a token."""
        token = access.tokens.check(session.token)
        if token is None or token.expired:
            raise HTTPException(401, "the token has expired" if token else "the token is wrong")
        answer = Response(status_code=204)
        answer.set_cookie(cookie_of(request), session.token, httponly=True, samesite="strict",
                          secure=request.url.scheme == "https")  # fmt: skip
        return answer

    @app.delete("/api/session", tags=["session"], status_code=204)
    def end(request: Request) -> Response:
        """Have the browser forget it."""
        answer = Response(status_code=204)
        answer.delete_cookie(cookie_of(request))
        return answer


async def _looks(request: Request, service: Service, topology: str | None, access: Access) -> AsyncIterator[str]:
    """One event for each look at the topologies, for as long as somebody listens who may."""
    known = 0

    def look() -> tuple[int, str]:
        watching = service.master.watching
        watching.await_change(known, _STREAM_SECONDS)
        service.look()
        number = watching.await_change(-1, 0.0)
        try:
            # A token may have been revoked since, or have expired.
            access.person(request)
            told: Any = service.overview() if topology is None else service.details(topology)
        except CoordinationError as error:
            return number, _trouble(str(error))
        if not watching.reachable:
            return number, _trouble(watching.trouble, told)
        return number, f"data: {json.dumps(told)}\n\n"

    listening = asyncio.get_running_loop()
    while not await request.is_disconnected():
        try:
            known, event = await listening.run_in_executor(_LISTENERS, look)
        except (CommandRefused, HTTPException) as refused:
            said = refused.detail if isinstance(refused, HTTPException) else str(refused)
            yield f"event: gone\ndata: {json.dumps({'error': said})}\n\n"
            return
        yield event


def _trouble(why: str, known: Any = None) -> str:
    """The event for a coordinator that is away, with what was known before."""
    return f"event: trouble\ndata: {json.dumps({'error': why, 'known': known})}\n\n"


def _sets(text: str) -> list[str]:
    """What is to be set; a refusal does not repeat it."""
    try:
        return _SETS.validate_json(text)
    except ValidationError:
        raise HTTPException(422, f"{SETS}: a JSON list is needed, of at most 100 texts KEY=VALUE of at most 2,000 "
                            "characters each") from None  # fmt: skip


async def _body(request: Request) -> bytes:
    """What was sent, if it is not too much."""
    taken = bytearray()
    async for chunk in request.stream():
        taken += chunk
        if len(taken) > MAX_BYTES:
            raise HTTPException(413, f"a bundle has at most {MAX_BYTES // 1_000_000} MB")
    return bytes(taken)


def _guard(app: FastAPI, access: Access) -> None:
    @app.middleware("http")
    async def guard(request: Request, further: Callable[[Request], Any]) -> Response:
        """Turn away what a page from elsewhere would have a browser ask."""
        host = request.headers.get("host", "")
        if access.hosts and _name(host) not in access.hosts:
            return _refusal(403, f"this console is not called '{host}'")
        if request.headers.get("sec-fetch-site") == "cross-site" and request.url.path.startswith("/api/"):
            return _refusal(403, "a page from elsewhere may not ask this console")
        if request.method in ("POST", "PUT", "PATCH") and request.url.path != _SUBMIT:
            # Before anybody has looked at the token: what is sent is read whole.
            length = request.headers.get("content-length", "")
            if not length.isdigit():
                return _refusal(411, "say how long it is, in Content-Length")
            if int(length) > _MOST_WORDS:
                return _refusal(413, f"a command has at most {_MOST_WORDS:,} bytes")
        origin = request.headers.get("origin")
        if origin is not None and origin.partition("://")[2] != host:
            return _refusal(403, f"a page from {origin} may not command this console")
        answer: Response = await further(request)
        answer.headers["X-Content-Type-Options"] = "nosniff"
        answer.headers["Referrer-Policy"] = "no-referrer"
        answer.headers["Content-Security-Policy"] = (
            "default-src 'self'; img-src 'self' data:; style-src 'self' 'unsafe-inline'; frame-ancestors 'none'"
        )
        return answer


def _tell_errors(app: FastAPI) -> None:
    @app.exception_handler(PenstockError)
    def penstock_error(_: Request, error: PenstockError) -> JSONResponse:
        match error:
            case CommandRefused():
                return _refusal(404 if error.missing else 409, str(error))
            case NotLeading() | CoordinationError():
                return _refusal(503, str(error))
            case OutcomeUnknown():
                # As a gateway that has had no answer: who has a key gives it again.
                return _refusal(504, str(error))
            case TooManyQuestions():
                return _refusal(429, str(error))
            case BundleError() | KeyTaken():
                return _refusal(422, str(error))
            case _:
                return _refusal(400, str(error))

    @app.exception_handler(HTTPException)
    def refused(_: Request, error: HTTPException) -> JSONResponse:
        return JSONResponse({"error": error.detail}, error.status_code, error.headers)

    @app.exception_handler(RequestValidationError)
    def misfit(_: Request, error: RequestValidationError) -> JSONResponse:
        said = "; ".join(f"{'.'.join(map(str, each['loc'][1:]))}: {each['msg']}" for each in error.errors())
        return _refusal(422, said)


def _refusal(code: int, said: str) -> JSONResponse:
    return JSONResponse({"error": said}, code)


def _address(request: Request) -> str:
    return request.client.host if request.client else ""


def _name(host: str) -> str:
    """The host of a `Host` header, without its port."""
    return host.rpartition(":")[0] if not host.endswith("]") and ":" in host else host


def is_loopback(host: str) -> bool:
    """Whether only this machine's users can come to an address."""
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return host == "localhost"
