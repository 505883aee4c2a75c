"""One OpenAI-compatible server (vLLM, SGLang), asked through the openai client.

Every call ends within its seconds, is made once, follows no redirect and uses no proxy: pictures
of a home go where the settings say and nowhere else. Whatever ends a call early, our own deadline
or an exception from outside, closes its connection, by which the server knows to stop working.
"""

import weakref
from collections.abc import Callable, Generator
from typing import Any

import httpx2
import openai

from hdguard.brains.base import BrainError
from hdguard.brains.openai_server import LOADING, ServerSettings
from hdguard.brains.openai_transport import Allowance, LimitedTransport
from hdguard.brains.openai_wire import Choice, Late, Models, Refused, Reply, lines, read

_FAULTS = (openai.OpenAIError, httpx2.HTTPError)


class Server:
    """The server, and the model that is asked there. One call at a time.

    A call that did not end by itself leaves nothing behind: the connections are made anew.

    Raises:
        BrainError: no model is set and the server does not list just one.
    """

    def __init__(self, settings: ServerSettings) -> None:
        self._settings = settings
        self._allowance = Allowance()
        self._client: openai.OpenAI | None = None
        self._close: Callable[[], object] = lambda: None
        self._settled = False  # the call before ended with a good answer, read to its end
        self.model = settings.model or self._only_model()

    def ask(self, seconds: float, **body: Any) -> Choice:
        """One chat completion; `body` is the request's, with fields of its own in `extra_body`.

        Raises:
            Late: no answer within `seconds`.
            Refused: the server refuses the request.
            BrainError: no answer, or one that is none.
        """
        client = self._begin(seconds)
        try:
            raw = client.chat.completions.with_raw_response.create(model=self.model, **body)
            found = self._checked(raw.content)
            if found is None:
                raise BrainError(f"{self.who}: the answer has no choices")
            self._settled = True
        except _FAULTS as error:
            raise self._named(error, seconds) from error
        finally:
            self._end()
        return found

    def stream(self, seconds: float, **body: Any) -> Generator[Choice, None, None]:
        """A chat completion piece by piece; a generator, to be closed by who stops reading.

        Raises:
            Late: it did not end within `seconds`; pieces given so far are good.
            Refused: the server refuses the request.
            BrainError: it broke off, or is no completion.
        """
        client = self._begin(seconds)
        ended = False
        try:
            with client.chat.completions.with_streaming_response.create(
                model=self.model, stream=True, **body
            ) as response:
                for line in lines(response.iter_bytes()):
                    data = line[5:].strip() if line.startswith(b"data:") else b""
                    if data in (b"", b"[DONE]"):
                        ended = ended or bool(data)
                        continue
                    piece = self._checked(data)
                    if piece is not None:
                        ended = ended or piece.finish_reason is not None
                        yield piece
            if not ended:
                raise BrainError(f"{self.who}: the answer broke off")
            self._settled = True
        except _FAULTS as error:
            raise self._named(error, seconds) from error
        finally:
            self._end()

    @property
    def who(self) -> str:
        """The server, as messages name it."""
        return f"server {self._settings.url}"

    def _begin(self, seconds: float) -> openai.OpenAI:
        if seconds <= 0.0:
            raise Late(f"{self.who}: no time is left to ask it")
        if not self._settled:
            self._discard()  # the last call was interrupted, perhaps in its own clearing up
        self._settled = False
        if self._client is None:
            self._client = self._new_client()
            # A brain has no end of its own: who drops it drops the connections.
            self._close = weakref.finalize(self, self._client.close)
        self._allowance.grant(seconds)
        return self._client

    def _new_client(self) -> openai.OpenAI:
        return openai.OpenAI(
            base_url=self._settings.url,
            api_key=self._settings.api_key or "none",  # else it would take the environment's
            max_retries=0,
            timeout=None,  # the transport's allowance holds instead
            http_client=httpx2.Client(
                transport=LimitedTransport(self._allowance),
                headers={"accept-encoding": "identity"},
                follow_redirects=False,
                trust_env=False,
            ),
        )

    def _end(self) -> None:
        if not self._settled:
            self._discard()

    def _discard(self) -> None:
        self._client = None
        self._close()

    def _checked(self, data: bytes) -> Choice | None:
        reply = read(data, Reply, self.who)
        if reply.error is not None:
            raise BrainError(f"{self.who}: answers with an error: {str(reply.error)[:300]}")
        if reply.model and reply.model != self.model:
            raise BrainError(
                f"{self.who}: answers as model {reply.model!r}, asked was {self.model!r}"
            )
        return reply.choices[0] if reply.choices else None

    def _named(self, error: Exception, seconds: float) -> BrainError:
        """The error in our words."""
        if isinstance(error, openai.APIStatusError):
            text = f"{self.who}: answers {error.status_code}: {str(error)[:300]}"
            return Refused(text, status=error.status_code)
        if isinstance(error, openai.APITimeoutError | httpx2.TimeoutException):
            return Late(f"{self.who}: no answer within {seconds:.2f} s")
        return BrainError(f"{self.who}: {error.__cause__ or error}")

    def _only_model(self) -> str:
        client = self._begin(LOADING)
        try:
            listed = client.models.with_raw_response.list().content
            self._settled = True
        except _FAULTS as error:
            raise self._named(error, LOADING) from error
        finally:
            self._end()
        names = sorted(each.id for each in read(listed, Models, self.who).data)
        if len(names) != 1:
            raise BrainError(f"{self.who}: model: set one of {names}")
        return names[0]
