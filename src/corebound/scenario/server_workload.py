"""The keys of a server of the user's own, and of the requests that are sent to it."""

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import Field, StrictBool, StrictInt, StrictStr

from corebound.scenario.fault_wording import BOOLEAN, Expected, one_of
from corebound.scenario.placeholders import fill, placeholders_in
from corebound.scenario.runtimes import Framework
from corebound.scenario.settings import StrictModel

StopSignal = Literal["SIGTERM", "SIGINT", "SIGQUIT", "SIGHUP", "SIGUSR1", "SIGUSR2"]
Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"]
Protocol = Literal["http", "openai-chat", "openai-completions"]

# A word with one of these signs, or with a suffix of letters, names files; other bodies are texts.
_FILES = re.compile(r"[^\s{}<>\"=&]*([/*][^\s{}<>\"=&]*|\.[A-Za-z][A-Za-z0-9]{0,9})")

_URL = Expected("an address", 'Write it as in "http://127.0.0.1:{port}/predict"; no HTTPS.')
Address = Annotated[StrictStr, Field(pattern=r"^http://[^\s/?#]+\S*$", max_length=2000), _URL]
Status = Annotated[StrictInt, Field(ge=100, le=599)]


class ServerProcess(StrictModel):
    """How a server of the user's own starts, gets ready and stops."""

    command: Annotated[
        tuple[StrictStr, ...],
        Field(min_length=1),
        Expected("a list of words", 'Write it as in `[node, server.js, "{port}"]`.'),
    ] = Field(description="the words that start it in the foreground; {port} is a free port")
    ready: Annotated[Address | None, _URL] = Field(
        None,
        description="the address that answers with a status of 200 to 299 once it is ready;"
        " default: it is ready once it accepts connections",
    )
    stop: Annotated[StopSignal, one_of("a signal", get_args(StopSignal))] = Field(
        "SIGTERM", description="the signal that asks it to end"
    )


class ExpectedAnswer(StrictModel):
    """What every answer must be to count as a success."""

    status: Annotated[
        Status | None, Expected("a status", "Write a number from 100 to 599, such as 200.")
    ] = Field(None, description="its status; default: any of 200 to 299")
    text: Annotated[
        StrictStr | None, Field(min_length=1), Expected("a text", "Put it in quotes.")
    ] = Field(None, description="a text that its body contains")


class Requests(StrictModel):
    """The requests that a server gets."""

    url: Address = Field(description="the address of every request; {port} is the server's port")
    method: Annotated[Method | None, one_of("a method", get_args(Method))] = Field(
        None, description="default: POST with a body, else GET"
    )
    protocol: Annotated[Protocol, one_of("a protocol", get_args(Protocol))] = Field(
        "http", description="openai-…: answers stream, and their tokens are timed"
    )
    headers: Annotated[
        Mapping[str, StrictStr],
        Expected("a mapping of headers", 'Write them as in `{Accept: "text/html"}`.'),
    ] = Field({}, description="headers to send, by name")
    body: Annotated[
        StrictStr | None,
        Field(min_length=1),
        Expected("a body", 'Write a text in quotes, or files as in "requests/*.json".'),
    ] = Field(
        None,
        description="a text, or files beside this file such as requests/*.json, sent in turn",
    )
    model: Annotated[
        StrictStr | None, Field(min_length=1), Expected("a model", "Put its name in quotes.")
    ] = Field(None, description="the model to ask for; openai-… only")
    expect: Annotated[
        ExpectedAnswer, Expected("a mapping", 'Write it as in `{status: 200, text: "ok"}`.')
    ] = ExpectedAnswer()
    keep_alive: Annotated[StrictBool, BOOLEAN] = Field(
        default=True, description="false: a connection for each request"
    )

    @property
    def body_files(self) -> str | None:
        """The pattern of the files with bodies; None if the body is a text, or absent."""
        return self.body if self.body is not None and _FILES.fullmatch(self.body) else None

    @property
    def streams(self) -> bool:
        """Whether answers are streams of tokens."""
        return self.protocol != "http"

    @property
    def sent_method(self) -> str:
        """The method of every request."""
        has_body = self.body is not None or self.streams
        return self.method or ("POST" if has_body else "GET")


class ServerWorkload(StrictModel):
    """A server of the user's own under requests; one that runs already if it has no command."""

    server: Annotated[
        ServerProcess | None,
        Expected("a mapping", 'Write it as in `{command: [node, server.js, "{port}"]}`.'),
    ] = Field(None, description="how it starts; without it, a running service is measured")
    requests: Annotated[
        Requests,
        Expected("a mapping of requests", 'Write `url: "http://127.0.0.1:{port}/"` under it.'),
    ] = Field(description="what it is asked")

    def filled(self, values: Mapping[str, str]) -> Self:
        """With the values of placeholders; those without stay as they are."""

        def fill_in(part: Any) -> Any:
            if isinstance(part, Mapping):
                return {key: fill_in(value) for key, value in part.items()}
            if isinstance(part, list):
                return [fill_in(value) for value in part]
            return fill(part, values) if isinstance(part, str) else part

        return self.model_validate(fill_in(self.model_dump(mode="json")))

    @property
    def framework(self) -> Framework:
        """The runtime of its cells."""
        return "running-service" if self.server is None else "own-server"

    def placeholders(self) -> frozenset[str]:
        """The names in braces anywhere in it."""
        return placeholders_in(self.model_dump_json())

    def __hash__(self) -> int:
        """Hash its document, because headers are a mapping."""
        return hash(self.model_dump_json())
