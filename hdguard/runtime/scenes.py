"""Notices when a camera shows another scene, cheaply enough to be asked of every kept frame.

A tiny picture of each frame is compared with that of the frame in which the scene began, not with
the frame before: a slow turn of the camera changes little from frame to frame. Brightness and
contrast are taken out, so that a lamp or the camera's own exposure makes no new scene.
"""

import numpy as np
from numpy.typing import NDArray

from hdguard.core.types import ImageSpec
from hdguard.ingest.base import Image, SourceError

THUMBNAIL = ImageSpec(32, 32, letterbox=False)

CHANGED = 0.5
"""Difference of two thumbnails over their contrast: 0 for the same picture, about 0.7 for two that
have nothing in common, 1 for a picture and its negative. Measured at 5 FPS on three videos of
HomeSafe-Bench (152, 230, 421): at most 0.49 between any two frames of one video, the last of them
filmed by a walking robot; at least 0.52, in the median 0.6 to 0.8, between frames of two."""

FLAT = 16.0
"""Grey levels, the least that counts as the contrast of two pictures together: noise on a black
wall is no scene. A choice; the same three videos have 62 to 102."""


class SceneWatch:
    """Compares the kept frames of one source, in order."""

    def __init__(self) -> None:
        self._began: NDArray[np.float32] | None = None

    def changed(self, image: Image) -> bool:
        """True if this frame begins another scene; the first frame of all does not.

        A picture that cannot be converted shows no scene; whoever needs it will say so.
        """
        try:
            rgb = image.rgb(THUMBNAIL)
        except SourceError:
            return False
        picture = rgb.astype(np.float32)
        picture -= picture.mean(axis=(0, 1))
        if self._began is None:
            self._began = picture
            return False
        contrast = np.abs(picture).mean() + np.abs(self._began).mean()
        if np.abs(picture - self._began).mean() <= CHANGED * max(contrast, FLAT):
            return False
        self._began = picture
        return True
