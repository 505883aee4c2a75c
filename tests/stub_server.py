"""A stand-in for vLLM or SGLang that really looks: red pictures are dangerous, green ones are not.

It speaks as much of OpenAI's interface as the brains use, and misbehaves in every way that they
must survive. For people: `python -m tests.stub_server 8000`, then `--fast
openai:http://127.0.0.1:8000/v1`.
"""

import asyncio
import base64
import json
import math
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Self

import cv2
import numpy as np

MODEL = "stub-vl"
DRIP = 0.02  # seconds between two bytes of a server that is alive but sends next to nothing
Json = dict[str, Any]
Fault = Literal[
    "hang",  # reads the request and never answers
    "hang in stream",  # answers with the first pieces, then never again
    "drip",  # sends the answer's head, then a byte now and then
    "flood",  # never stops sending
    "cut",  # closes in the middle of a piece
    "stop early",  # a stream that ends without an end
    "close",  # closes without an answer
    "garbage",  # a body that is no JSON
    "list",  # JSON, but no completion
    "no choices",
    "no logprobs",
    "wrong model",
    "prose",  # says something else than was asked for
    "in reasoning",  # the answer stands in the field for thoughts, the content is null
    "no stop",  # does not know stop words, and goes on behind the thoughts
    "length",  # never comes to an end of its thoughts
    "short list",  # only the likeliest token, the others unseen
    "nan",  # logprobs that are no numbers
    "redirect",
    "error in stream",
]


@dataclass
class Stub:
    """A server in a thread of its own.

    Attributes:
        faults: per phase (`fast`, `think`, `score`, `describe`, `write`, `models`, or `*`) what
            goes wrong there, or the HTTP status to answer with. May be changed at any time.
        refuses: fields that are answered with status 400.
        models: that it lists.
        blind: it answers for the picture that it was shown first.
        lags: it answers for the picture so many requests before.
        most_pictures: that it takes in one request.
        elsewhere: where a redirect leads.
        asked: the phases of the requests, in order.
        bodies: what was asked, in order.
        heads: the requests' header lines.
        left: set when a peer goes away while it is being answered.
        working: set when a fault that never ends has begun.
    """

    faults: dict[str, Fault | int] = field(default_factory=dict)
    refuses: set[str] = field(default_factory=set)
    models: tuple[str, ...] = (MODEL,)
    blind: bool = False
    lags: int = 0
    most_pictures: int = 24
    elsewhere: str = ""
    asked: list[str] = field(default_factory=list)
    bodies: list[Json] = field(default_factory=list)
    heads: list[str] = field(default_factory=list)
    left: threading.Event = field(default_factory=threading.Event)
    working: threading.Event = field(default_factory=threading.Event)
    port: int = 0

    def __enter__(self) -> Self:
        self._loop = asyncio.new_event_loop()
        self._handlers: set[asyncio.Task[None]] = set()
        self._shown: list[str] = []  # each request's last picture
        serve = asyncio.start_server(self._serve, "127.0.0.1", self.port, limit=1 << 26)
        self._server = self._loop.run_until_complete(serve)
        self.port = self._server.sockets[0].getsockname()[1]
        self._thread = threading.Thread(target=self._loop.run_forever)  # noqa: TID251
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    async def _end(self) -> None:
        self._server.close()
        for task in self._handlers:
            task.cancel()
        await asyncio.gather(*self._handlers, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._handlers.add(task)
        try:
            while head := await _head(reader):
                length = next((int(v) for k, v in _headers(head) if k == "content-length"), 0)
                body = json.loads(await reader.readexactly(length) or b"{}")
                self.heads.append(head)
                await self._answer(head.split()[1], body, _Peer(reader, writer, self.left))
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            self.left.set()
        finally:
            self._handlers.discard(task)
            writer.close()

    async def _answer(self, path: str, body: Json, peer: "_Peer") -> None:
        phase = "models" if path.endswith("/models") else _phase(body)
        self.asked.append(phase)
        self.bodies.append(body)
        pictures = [] if phase == "models" else _pictures(body)
        self._shown += pictures[-1:]
        fault = self.faults.get(phase, self.faults.get("*"))
        if isinstance(fault, int):
            await peer.send(fault, {"error": {"message": f"status {fault} as told"}})
        elif refused := self.refuses & set(body):
            await peer.send(400, {"error": {"message": f"unknown field {sorted(refused)}"}})
        elif len(pictures) > self.most_pictures:
            await peer.send(400, {"error": {"message": f"at most {self.most_pictures} images"}})
        elif await self._misbehave(fault, peer):
            pass
        elif phase == "models":
            await peer.send(200, {"data": [{"id": name} for name in self.models]})
        elif body.get("stream"):
            await self._stream(body, phase, fault, peer)
        else:
            await peer.send(200, self._completion(body, phase, fault))

    async def _misbehave(self, fault: Fault | int | None, peer: "_Peer") -> bool:
        """Whether that was the answer."""
        match fault:
            case "garbage":
                await peer.send(200, "<html>it works</html>")
            case "list":
                await peer.send(200, [1, 2, 3])
            case "redirect":
                await peer.send(307, {}, f"location: {self.elsewhere}\r\n")
            case _:
                await self._break_off(fault, peer)
                return False
        return True

    async def _break_off(self, fault: Fault | int | None, peer: "_Peer") -> None:
        """Faults after which the connection is of no use.

        Raises:
            ConnectionResetError: it was one of them.
        """
        if fault == "hang":
            self.working.set()
            await peer.gone()
        elif fault == "drip":
            await peer.start("application/json")
            self.working.set()
            while not await peer.gone(DRIP):
                await peer.piece(" ")
        elif fault == "flood":
            await peer.start("application/json")
            while not peer.reader.at_eof():
                await peer.piece(" " * (1 << 20))
        elif fault != "close":
            return
        raise ConnectionResetError

    async def _stream(
        self, body: Json, phase: str, fault: Fault | int | None, peer: "_Peer"
    ) -> None:
        await peer.start("text/event-stream")
        text = self._words(body, phase, fault)
        words = text.split(" ")
        for n, word in enumerate(words):
            if n == 2 and fault == "hang in stream":
                self.working.set()
                await peer.gone()
                raise ConnectionResetError
            if n == 2 and fault == "cut":
                await peer.raw(b"40\r\ndata: {half a piece")
                raise ConnectionResetError
            if n == 2 and fault == "stop early":
                await peer.piece("")
                return
            if n == 2 and fault == "error in stream":
                await peer.piece('data: {"error": {"message": "engine is dead"}}\n\n')
                return
            delta: Json = {"content": word + " " * (n < len(words) - 1)}
            if fault == "in reasoning":
                delta = {"content": None, "reasoning_content": delta["content"]}
            piece = json.dumps(_body(fault, delta=delta), ensure_ascii=False)
            await peer.piece(f"data: {piece}\n\n")
        end = "length" if fault == "length" else "stop"
        if fault != "no choices":
            last = _body(fault, delta={}, finish_reason=end)
            await peer.piece(f"data: {json.dumps(last)}\n\n")
        await peer.piece(f"data: {json.dumps({'model': MODEL, 'choices': []})}\n\n")
        await peer.piece("data: [DONE]\n\n")
        await peer.piece("")

    def _completion(self, body: Json, phase: str, fault: Fault | int | None) -> Json:
        text = self._words(body, phase, fault)
        message: Json = {"role": "assistant", "content": text}
        if fault == "in reasoning":
            message |= {"content": None, "reasoning": text}
        end = "length" if body.get("max_tokens") == 1 or fault == "length" else "stop"
        found = _body(fault, message=message, finish_reason=end)
        if body.get("logprobs") and fault not in ("no logprobs", "no choices"):
            top = self._top(body, phase, fault)
            chosen = {"token": top[0]["token"], "logprob": top[0]["logprob"], "top_logprobs": top}
            found["choices"][0]["logprobs"] = {"content": [chosen]}
        return found

    def _words(self, body: Json, phase: str, fault: Fault | int | None) -> str:
        red = self._redness() > 0.5
        if fault == "prose":
            return "I would rather talk about the weather today"
        words = {
            "fast": "red" if red else "green",
            "think": f"The hob is {'on, a cloth lies on it' if red else 'off'} . I am sure .",
            "score": "danger" if red else "safe",
            "describe": 'C3", "severity": "L4", "reason": "The cloth will burn."}',
        }
        if fault == "no stop":
            return f"<think>{words['think']}<|im_end|> </think> and so on"
        if phase in words:
            return words[phase]
        if body["max_tokens"] <= 100:
            return f'{{"category": "{words["fast"]}", "reason": "Fire."}}'
        if fault == "length":
            return "So I go on and on"
        return (
            f'So . </think> {{"verdict": "{words["score"]}", "category": "C3", "reason": "Fire."}}'
        )

    def _redness(self) -> float:
        at = 0 if self.blind else max(0, len(self._shown) - 1 - self.lags)
        data = base64.b64decode(self._shown[at])
        picture = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)
        assert picture is not None
        _, green, red = (float(x) for x in picture.mean(axis=(0, 1)))
        return (red + 1.0) / (red + green + 2.0)

    def _top(self, body: Json, phase: str, fault: Fault | int | None) -> list[Json]:
        red = min(max(self._redness(), 1e-4), 1.0 - 1e-4)
        if fault == "prose":
            forms: Mapping[str, float] = {"The": 0.7, " I": 0.2, "red": 1e-5}
        elif phase == "score":
            forms = {"danger": 0.9 * red, " Danger": 0.05 * red, "safe": 0.9 * (1.0 - red)}
        else:
            mid = red * (1.0 - red)
            forms = {"green": 0.9 * (1.0 - red - mid / 2), "red": 0.85 * (red - mid / 2)}
            forms |= {" Red": 0.05 * (red - mid / 2), "yellow": 0.9 * mid, "The": 0.02}
        forms = dict(sorted(forms.items(), key=lambda item: -item[1]))
        if fault == "short list":
            forms = dict(list(forms.items())[:1])
        else:  # other words share what is left, each half as likely as the one before
            rest = 1.0 - sum(forms.values())
            others = range(1, body["top_logprobs"] - len(forms) + 1)
            forms |= {f"other {n}": rest * 0.5**n for n in others}
        if fault == "nan":
            return [{"token": token, "logprob": 7.5} for token in forms]
        return [{"token": token, "logprob": math.log(p)} for token, p in forms.items()]


def _body(fault: Fault | int | None, **choice: Any) -> Json:
    model = "another-model" if fault == "wrong model" else MODEL
    return {"model": model, "choices": [] if fault == "no choices" else [{"index": 0, **choice}]}


def _pictures(body: Json) -> list[str]:
    """The pictures of a request, in base64."""
    return [
        part["image_url"]["url"].partition(",")[2]
        for message in body["messages"]
        for part in message["content"]
        if isinstance(part, dict) and part["type"] == "image_url"
    ]


def _phase(body: Json) -> str:
    """What a request is for, by its shape."""
    last = body["messages"][-1]
    if last["role"] == "assistant":
        return "score" if last["content"].endswith('"verdict": "') else "describe"
    if body.get("stream"):
        return "think" if body.get("stop") else "write"
    return "fast" if body.get("max_tokens") == 1 else "write"


async def _head(reader: asyncio.StreamReader) -> str:
    try:
        return (await reader.readuntil(b"\r\n\r\n")).decode()
    except (asyncio.IncompleteReadError, ConnectionError):
        return ""


def _headers(head: str) -> list[tuple[str, str]]:
    lines = [line.partition(":") for line in head.split("\r\n")[1:]]
    return [(key.strip().lower(), value.strip()) for key, _, value in lines]


@dataclass
class _Peer:
    """Who asks."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    left: threading.Event

    async def send(self, status: int, body: Any, header: str = "") -> None:
        data = (body if isinstance(body, str) else json.dumps(body)).encode()
        head = f"HTTP/1.1 {status} As told\r\n{header}content-length: {len(data)}\r\n"
        await self.raw(f"{head}content-type: application/json\r\n\r\n".encode() + data)

    async def start(self, kind: str) -> None:
        head = f"HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ntransfer-encoding: chunked\r\n\r\n"
        await self.raw(head.encode())

    async def piece(self, text: str) -> None:
        """A chunk; an empty one ends the answer."""
        data = text.encode()
        await self.raw(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    async def raw(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def gone(self, seconds: float | None = None) -> bool:
        """Wait until the peer goes away, for so long at most; whether it has."""
        try:
            async with asyncio.timeout(seconds):
                await self.reader.read()
        except TimeoutError:
            return False
        self.left.set()
        return True


def main() -> None:
    """Serve until interrupted."""
    with Stub(port=int(sys.argv[1]) if len(sys.argv) > 1 else 8000) as stub:
        print(stub.url, flush=True)  # noqa: T201 - the command's output
        threading.Event().wait()


if __name__ == "__main__":
    main()
