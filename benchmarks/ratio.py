"""One row of bench.json: ours, a reference measured in the same run, and the goal for the ratio."""

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Ratio:
    """Ours against a reference.

    Attributes:
        name: what is compared, for people.
        ours, reference: in the unit that the name says.
        goal: the largest ratio that is good.
    """

    name: str
    ours: float
    reference: float
    goal: float

    @property
    def ratio(self) -> float:
        """Ours divided by the reference."""
        return self.ours / self.reference

    @property
    def met(self) -> bool:
        """True if the goal is met."""
        return self.ratio <= self.goal

    def as_dict(self) -> dict[str, Any]:
        """The row as bench.json has it."""
        return {**asdict(self), "ratio": self.ratio, "met": self.met}

    def __str__(self) -> str:
        """The row for people."""
        verdict = "met" if self.met else "NOT met"
        return (
            f"{self.name}: ours {self.ours:.4g}, reference {self.reference:.4g}, "
            f"ratio {self.ratio:.3f}, goal {self.goal:g}: {verdict}"
        )
