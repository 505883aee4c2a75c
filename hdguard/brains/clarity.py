"""When a picture or its motion cannot be judged: dark, blurred, cut, or simply not understood."""

import cv2

from hdguard.brains.flow import Motion, Picture
from hdguard.brains.regions import INLIERS

LEAST_DETAIL = 0.05  # of the picture
DARK = 40.0  # mean grey level; names the reason for missing detail, decides nothing
CUT_HISTOGRAM, CUT_INLIERS = 0.35, 0.35  # `embedded.md`, section 3


def vague(motion: Motion, now: Picture) -> str:
    """Why bodies may go unseen in the current picture; empty if they would be seen."""
    if motion.detailed >= LEAST_DETAIL:
        return ""
    cause = "dark" if now.mean < DARK else "blurred, covered or blank"
    return f"{cause}: detail in {motion.detailed:.0%} of the picture"


def unclear(motion: Motion, before: Picture, now: Picture) -> str:
    """Why the motion between two pictures cannot be judged; empty if it can."""
    inliers = motion.ego.inliers if motion.ego is not None else 0.0
    if inliers < CUT_INLIERS and _histogram_distance(before, now) > CUT_HISTOGRAM:
        return "cut: the picture before shows another scene"
    if inliers < INLIERS:
        return f"unclear motion: the camera's explains {inliers:.0%} of the picture"
    if not motion.believable:
        return f"unclear motion: flow leaves {motion.error:.0f} grey levels unexplained"
    return ""


def _histogram_distance(one: Picture, other: Picture) -> float:
    first, second = (cv2.calcHist([p.half], [0], None, [32], [0.0, 256.0]) for p in (one, other))
    return cv2.compareHist(first, second, cv2.HISTCMP_BHATTACHARYYA)
