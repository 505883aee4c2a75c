"""What the incident recorder may be told; off until somebody says how long a clip is kept."""

from dataclasses import dataclass

LONGEST = 60.0
"""Seconds before or after; a choice: pictures of a home are kept for a reason, not at length."""

LEAST_BYTES = 16 << 20
"""A choice: room for one incident of a few cameras."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentSettings:
    """`[incidents]`: what is recorded around a halt, and how much of it is kept.

    Attributes:
        keep_days: an older incident is deleted; 0: nothing is recorded.
        max_bytes: of all incidents together; the oldest are deleted for it.
        before: seconds before the frame that caused it, or before the decision where there is none.
        after: seconds after the decision.
        width: of the clips, in pixels; even, as H.264 wants.
        mcap: also write clip.mcap, which Foxglove opens; needs the package `hdguard[mcap]`.

    Raises:
        ValueError: names the key.
    """

    keep_days: float = 0.0
    max_bytes: int = 1 << 30
    before: float = 10.0
    after: float = 5.0
    width: int = 640
    mcap: bool = False

    def __post_init__(self) -> None:
        if self.keep_days < 0:
            msg = f"keep_days: {self.keep_days:g} must be 0 (off) or more"
            raise ValueError(msg)
        if self.max_bytes < LEAST_BYTES:
            msg = f"max_bytes: {self.max_bytes} must be at least {LEAST_BYTES}"
            raise ValueError(msg)
        for key, seconds in (("before", self.before), ("after", self.after)):
            if not 0 <= seconds <= LONGEST:
                msg = f"{key}: {seconds:g} must be 0 to {LONGEST:g} seconds"
                raise ValueError(msg)
        if not 64 <= self.width <= 1920 or self.width % 2:
            msg = f"width: {self.width} must be even and 64 to 1920"
            raise ValueError(msg)

    @property
    def is_on(self) -> bool:
        """Something is recorded."""
        return self.keep_days > 0
