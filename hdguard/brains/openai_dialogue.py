"""The requests of a review: think aloud, go on from a begun answer, or write all of it.

What servers can do and how they say it changes with them, and is known here only; what an answer
means for the robot is `openai_slow`'s.
"""

import re
from collections.abc import Generator, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any

from hdguard.brains.base import BrainError
from hdguard.brains.openai_server import Stopwatch
from hdguard.brains.openai_wire import (
    CHOICES,
    GREEDY,
    GREEDY_EXTRA,
    SCORED,
    THINKING,
    THINKING_EXTRA,
    Choice,
    Form,
    Late,
    Refused,
    text_part,
)
from hdguard.brains.prompts import Prompt

if TYPE_CHECKING:
    from hdguard.brains.openai_client import Server

ANSWER_TOKENS = 200
"""For an answer in words after the thoughts."""
HAZARD_TOKENS = 80
"""For category, severity and one sentence."""
BEGUN = '{"verdict": "'
_CLOSED = "</think>"
# Tags that a chat template would read as its own when thoughts are sent back.
_TAGS = re.compile(r"<\|[^<>|]*\|>|</?think>")

Messages = list[dict[str, Any]]


class Dialogue:
    """Asks one server about windows of pictures, in the words of one prompt.

    Args:
        server: the way to it.
        prompt: with the sections system, question, ask, answer and out of time.
        thinking: tokens of thoughts at most; 0: none.
        switch: say where no thoughts are wanted, by a field that a template may know.
    """

    def __init__(self, server: "Server", prompt: Prompt, thinking: int, *, switch: bool) -> None:
        self._server = server
        self._prompt = prompt
        self._thinking = thinking
        self._switch = switch
        self._choice = 0  # of CHOICES

    def messages(self, pictures: Sequence[dict[str, Any]], at: str) -> Messages:
        """The question: `pictures` are parts of a message, `at` the trigger's time in words."""
        text = self._prompt.text
        asked = "\n\n".join((text("question", trigger=at), text("ask"), text("answer")))
        return [
            {"role": "system", "content": text("system")},
            {"role": "user", "content": [*pictures, text_part(asked)]},
        ]

    def begun(self, thoughts: str) -> str:
        """How the answer begins: with the thoughts, if any, as a thinking model writes them."""
        return f"<think>\n{thoughts}\n</think>\n\n{BEGUN}" if thoughts else BEGUN

    def think(self, messages: Messages, seconds: float) -> str:
        """The model's thoughts, complete or with a word that time is up; no tags in them.

        Servers show them as text, with or without a field of their own, and some go on behind
        them; the answer that follows is not wanted here.

        Raises:
            BrainError: the server fails; being late is no failure here.
        """
        text, ended, apart = "", "", False
        pieces = self._server.stream(
            seconds,
            messages=messages,
            max_tokens=self._thinking,
            stop=[_CLOSED],
            extra_body=self._extra(THINKING_EXTRA, think=True),
            **THINKING,
        )
        try:
            with closing(pieces):
                for piece in pieces:
                    apart = apart or bool(piece.words.thoughts)
                    if apart and piece.words.text.strip():
                        ended = "stop"
                        break
                    new = piece.words.thoughts + piece.words.text
                    text += new
                    ended = piece.finish_reason or ended
                    if _CLOSED in text[-len(_CLOSED) - len(new) :]:
                        ended = "stop"
                        break
        except Late:
            ended = "late"  # what has been thought so far counts
        text = _TAGS.sub(" ", text.partition(_CLOSED)[0]).strip()
        return text if ended == "stop" else f"{text}\n\n{self._prompt.text('out of time')}".strip()

    def score(self, messages: Messages, begun: str, watch: Stopwatch) -> list[Form]:
        """The likeliest tokens after `begun`; the server is asked to choose one of the two words.

        Raises:
            BrainError: there is no answer in time, or none with logprobs.
        """
        while True:
            try:
                return self._first_token(messages, begun, CHOICES[self._choice], watch.left)
            except Refused as error:
                if error.status not in (400, 422) or self._choice == len(CHOICES) - 1:
                    raise
                self._choice += 1  # this server does not know the field: never send it again

    def score_freely(self, messages: Messages, begun: str, seconds: float) -> list[Form]:
        """The likeliest tokens after `begun`, without a choice to keep to.

        Raises:
            BrainError: there is no answer in time, or none with logprobs.
        """
        return self._first_token(messages, begun, {}, seconds)

    def touch(self, messages: Messages, seconds: float) -> None:
        """Ask for one token of an answer in words; what it is says nothing.

        Raises:
            BrainError: there is no answer in time.
        """
        extra = self._extra(GREEDY_EXTRA, think=True)
        self._server.ask(seconds, messages=messages, extra_body=extra, max_tokens=1, **GREEDY)

    def describe(
        self, messages: Messages, begun: str, seconds: float
    ) -> Generator[Choice, None, None]:
        """How an answer of danger goes on from `described`, piece by piece."""
        body = self._begin_answer(messages, described(begun), {})
        return self._server.stream(seconds, **body, max_tokens=HAZARD_TOKENS, **GREEDY)

    def write(self, messages: Messages, seconds: float) -> tuple[str, str]:
        """All of an answer in words, and why it ended: a finish reason or nothing.

        Raises:
            BrainError: the server fails; being late is an answer that was cut off.
        """
        think = self._thinking > 0
        text, thoughts, ended = "", "", ""
        pieces = self._server.stream(
            seconds,
            messages=messages,
            max_tokens=self._thinking + ANSWER_TOKENS,
            extra_body=self._extra(THINKING_EXTRA if think else GREEDY_EXTRA, think=think),
            **(THINKING if think else GREEDY),
        )
        try:
            with closing(pieces):
                for piece in pieces:
                    text += piece.words.text
                    thoughts += piece.words.thoughts
                    ended = piece.finish_reason or ended
        except Late:
            ended = "length"  # cut off; a danger that is already complete still counts
        if not text and _CLOSED in thoughts:
            text = thoughts  # a server's parser took the answer for a part of the thoughts
        return text, ended

    def _extra(self, sampling: dict[str, Any], *, think: bool) -> dict[str, Any]:
        if think or not self._switch:
            return sampling
        return sampling | {"chat_template_kwargs": {"enable_thinking": False}}

    def _begin_answer(
        self, messages: Messages, begun: str, extra: dict[str, Any]
    ) -> dict[str, Any]:
        """The fields of a request that goes on from `begun`."""
        return {
            "messages": [*messages, {"role": "assistant", "content": begun}],
            "extra_body": {
                **self._extra(GREEDY_EXTRA, think=self._thinking > 0),
                **extra,
                "continue_final_message": True,
                "add_generation_prompt": False,
            },
        }

    def _first_token(
        self, messages: Messages, begun: str, extra: dict[str, Any], seconds: float
    ) -> list[Form]:
        body = self._begin_answer(messages, begun, extra)
        top = self._server.ask(seconds, **body, **SCORED).top
        if not top:
            raise BrainError(
                f"{self._server.who} gives no logprobs: allow 20 there (vLLM: --max-logprobs), or "
                'set answer = "text"'
            )
        return top


def described(begun: str) -> str:
    """The beginning of an answer of danger, up to its category."""
    return f'{begun}danger", "category": "'
