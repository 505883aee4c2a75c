"""The lines in the panels: limits that the guard keeps, and goals that its makers set.

A limit is taken from where the guard has it, so that no dashboard shows another one.
"""

from hdguard.actuators.lease import LEASE
from hdguard.core.freshness import USUAL_DEADLINE, frame_limits
from hdguard.core.halts import ESCALATE_AFTER
from hdguard.core.permits import PERMIT_EVERY
from hdguard.core.policy import SIDECAR

FRAME_AGE = frame_limits(0.0)
"""Seconds: the robot is slower, and halts, when the newest frame of a camera is so old. Limits are
wider for slow cameras and slow brains, and at 1 FPS: each guard tells its own. What is the same, or
nearly so, is which share of the last limit the first one is."""

SLOWER = FRAME_AGE.degraded / FRAME_AGE.halt
"""Share of an age's limit at which the robot is slower; 0.6 where a frame or verdict a second is
enough."""

PERMIT_GAP = LEASE
"""Seconds without a permit after which the robot stops by itself."""

PERMITS = 1.0 / PERMIT_EVERY
"""Permits a second."""

UNACKNOWLEDGED = ESCALATE_AFTER
"""Seconds until a halt that the robot has not acknowledged is escalated."""

FAST_DEADLINE = USUAL_DEADLINE
REVIEW_DEADLINE = SIDECAR.review_deadline
"""Seconds that a FastBrain has for a frame, and a SlowBrain for a review, if a profile says no
other; a review that is overdue halts."""

TO_HALT_P50, TO_HALT_P95 = 0.35, 0.5
"""Seconds from capture to a danger halt, half and 95 % of them: goals for a guard with a GPU. Its
budget: camera 0.1, sampling 0.1 (0.2 at worst), FastBrain 0.08, all else 0.03. From onset
to intervention deadline it is 0.6 s in the median of ten published cases."""

OWN_TIME = 0.02
"""Seconds from capture to delivery without the brain's time, 99th percentile: the software's goal
(`benchmarks`)."""

LAG = (0.005, 0.05)
"""Seconds that the event loop may be late: under load, and at all."""
