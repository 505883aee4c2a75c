"""A vision-language model as the brains use it: one forward, a kept prefix, probabilities, text.

The text before the first picture is the same for every frame, so it is read once and its keys and
values are kept. That is exact, and it is checked, because a cache that is wrong gives answers that
look right: positions off by a picture, or the answer for the previous one.
"""

import importlib
import math
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hdguard.brains.base import BrainError
from hdguard.brains.catalogue import model_folder
from hdguard.brains.families import ALSO, FAMILIES
from hdguard.brains.fingerprint import fingerprint, read_json
from hdguard.brains.labels import Ids, LabelSet, label_ids
from hdguard.brains.placement import EXTRA, Dtype, Placement, Quantize

if TYPE_CHECKING:  # torch comes with them, and the daemon reads only the settings
    from hdguard.brains.families.base import Chat, Family, Inputs, State, Step

PICTURES = "numpy-1"
"""How a picture becomes pixels: our own code. To be changed whenever that changes a pixel."""
PREFIXES = 4
"""How many prefixes are kept: a brain uses one; a second prompt costs no more than its memory."""


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """What every brain with a model of its own needs to know; a brain's settings inherit it.

    Attributes:
        path: the model's folder, in the shape of the model hub, or the name of a fetched model.
        name: of the brain.
        device: as `Placement.device`; so are the rest.
        dtype: of weights and arithmetic.
        quantize: "4bit" or "none".
        memory_gib: a cap; 0: none.
        allow_remote_code: whether code that comes with the model may run.

    Raises:
        ValueError: names the field.
    """

    path: str
    name: str
    device: str = "cuda:0"
    dtype: Dtype = "bfloat16"
    quantize: Quantize = "none"
    memory_gib: float = 0.0
    allow_remote_code: bool = False

    def __post_init__(self) -> None:
        if not self.path:
            raise ValueError("path: must name the model's folder")
        if not self.name:
            raise ValueError("name: must not be empty")
        _ = self.placement

    @property
    def placement(self) -> Placement:
        """Where it runs."""
        return Placement(
            self.device, self.dtype, self.quantize, self.memory_gib, self.allow_remote_code
        )


class Writer(Iterator[int]):
    """Text written greedily, token by token, which may be left and continued at any point.

    Attributes:
        ids: what has been written; the token that ends an answer is not among it.
    """

    def __init__(self, family: "Family", step: "Step", limit: int) -> None:
        self.ids: list[int] = []
        self._family = family
        self._limit = limit
        self._step = step
        self._read = 0

    @property
    def step(self) -> "Step":
        """The model's state once it has read all of `ids`; costs a forward if it has not yet."""
        if unread := self.ids[self._read :]:
            self._step = self._family.feed(unread, self._step.state)
            self._read = len(self.ids)
        return self._step

    def __next__(self) -> int:
        """The likeliest token; one forward, but none for the first.

        Raises:
            BrainError: the logits are no numbers.
        """
        if len(self.ids) >= self._limit:
            raise StopIteration
        best = self.step.logits.max(dim=-1)
        value, token = float(best.values), int(best.indices)
        if not math.isfinite(value):  # NaN wins every maximum
            raise BrainError(f"the model's logits are no numbers: {value}")
        if token in self._family.ends:
            raise StopIteration
        self.ids.append(token)
        return token


class Model:
    """A loaded model; one thread at a time.

    Attributes:
        family: what it is loaded as.
        placement: where it runs.
        folder: its files.
    """

    def __init__(self, settings: ModelSettings, family: "Family | None" = None) -> None:
        """Fix the device, find the family by the model's config.json, and load.

        Args:
            settings: of the brain.
            family: one that is loaded already, to be taken instead.

        Raises:
            BrainError: the folder, the extra, the device or the memory is not there.
        """
        self.placement = settings.placement
        self.folder = Path(settings.path) if family else model_folder(settings.path)
        self.placement.pin()
        self.family = family or family_of(self.folder).open(self.folder, self.placement.load)
        self._prefixes: OrderedDict[tuple[int, ...], State] = OrderedDict()
        self._groups: dict[tuple[tuple[int, ...], ...], tuple[Any, Any]] = {}

    def fingerprint(self, **choices: str) -> str:
        """Of the model and how it runs, with a brain's own choices; see `fingerprint`.

        Raises:
            BrainError: the folder cannot be read.
        """
        import transformers  # noqa: PLC0415 - it costs a second to import

        return fingerprint(
            self.folder,
            dtype=self.placement.dtype,
            quantize=self.placement.quantize,
            family=self.family.name,
            pictures=f"{PICTURES}, Pillow {metadata.version('pillow')}",
            transformers=transformers.__version__,
            **choices,
        )

    def label_ids(self, ending: str, labels: LabelSet) -> Ids:
        """The tokens of each label right after `ending`; see `labels.label_ids`."""
        return label_ids(self.family.encode, ending, labels)

    # One forward.

    def ask(self, chat: "Chat") -> "Step":
        """One forward over what follows the first picture's beginning; the prefix is kept.

        Raises:
            BrainError: a picture that the family cannot take.
        """
        inputs = self.family.build(chat)
        return self.family.read(inputs, self._prefix(inputs))

    def ask_whole(self, chat: "Chat") -> "Step":
        """One forward over everything: nothing kept is used.

        Raises:
            BrainError: a picture that the family cannot take.
        """
        return self.family.read(self.family.build(chat))

    def check_prefix(self, chat: "Chat") -> float:
        """See that the kept prefix changes nothing.

        Returns:
            The greatest difference of a logit, kept against whole: rounding, a millionth in
            float32.

        Raises:
            BrainError: it is above 0.01, in bfloat16 or 4 bits 0.25: positions or the cache are
                wrong. A wrong position moves logits by 0.2 or more (measured on Qwen3-VL shapes).
        """
        limit = 0.01 if self.placement.dtype == "float32" else 0.25
        kept, whole = self.ask(chat).logits, self.ask_whole(chat).logits
        apart = float((kept - whole).abs().max())
        if not apart <= limit:
            raise BrainError(
                f"{self.folder}: with a kept prefix the logits are {apart:.3g} apart, more than "
                f"{limit}: this model and this version of transformers do not fit"
            )
        return apart

    def _prefix(self, inputs: "Inputs") -> "State | None":
        if not inputs.prefix:
            return None
        key = tuple(inputs.ids[0, : inputs.prefix].tolist())
        if key not in self._prefixes:
            self._prefixes[key] = self.family.read_prefix(inputs)
            if len(self._prefixes) > PREFIXES:
                self._prefixes.popitem(last=False)
        self._prefixes.move_to_end(key)
        return self._prefixes[key]

    # What the logits say.

    def logprobs(self, step: "Step", groups: Sequence[Sequence[int]]) -> list[float]:
        """Log-probability that the next token is one of a group's, per group.

        Natural logarithms over the whole vocabulary, in float32: log sum exp of the log-softmax
        over the group's ids. NaN where the logits are.
        """
        import torch  # noqa: PLC0415 - the daemon never imports it

        key = tuple(tuple(group) for group in groups)
        if key not in self._groups:
            self._groups[key] = _table(key, step.logits.device)
        ids, padding = self._groups[key]
        logs = torch.log_softmax(step.logits, dim=-1)[ids] + padding
        return [float(x) for x in torch.logsumexp(logs, dim=-1).tolist()]

    def write(self, step: "Step", limit: int) -> Writer:
        """Write on greedily, at most `limit` tokens."""
        return Writer(self.family, step, limit)


def family_of(folder: Path) -> "type[Family]":
    """The family that a model's config.json names.

    Raises:
        BrainError: no model there, a family that we do not have, or the extra is not installed.
    """
    kind = read_json(folder, "config.json").get("model_type", "")
    target = FAMILIES.get(ALSO.get(kind, kind))
    if target is None:
        known = ", ".join(sorted({*FAMILIES, *ALSO}))
        raise BrainError(f"{folder / 'config.json'}: model_type: {kind!r} is none of {known}")
    module, _, name = target.partition(":")
    try:
        found: type[Family] = getattr(importlib.import_module(module), name)
    except ImportError as error:
        raise BrainError(f"{kind}: cannot be imported ({error}): {EXTRA}") from error
    return found


def _table(groups: Sequence[Sequence[int]], device: Any) -> tuple[Any, Any]:
    """Groups of ids as one table, and what makes its padding impossible: 0 or -inf."""
    import torch  # noqa: PLC0415 - the daemon never imports it

    width = max(len(group) for group in groups)
    ids = [[*group, *[0] * (width - len(group))] for group in groups]
    padding = [[0.0] * len(group) + [-math.inf] * (width - len(group)) for group in groups]
    return torch.tensor(ids, device=device), torch.tensor(padding, device=device)
