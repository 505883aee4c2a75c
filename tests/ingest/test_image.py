import threading
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest

from hdguard.core.types import ImageSpec
from hdguard.ingest import image as image_module
from hdguard.ingest.base import Rgb, SourceError
from hdguard.ingest.image import Region, VideoImage, View, convert, decode_still
from tests.ingest.media import (
    BLUE,
    GREEN,
    RED,
    WHITE,
    Clip,
    corners,
    play,
    with_exif_orientation,
    write_still,
    write_video,
)

BLACK = (0, 0, 0)
UPRIGHT = [RED, GREEN, BLUE, WHITE]


def frame(size: tuple[int, int] = (64, 48), rgb: Rgb | None = None) -> av.VideoFrame:
    return av.VideoFrame.from_ndarray(corners(size) if rgb is None else rgb)


def white(size: tuple[int, int], *, regions: tuple[Region, ...] = ()) -> VideoImage:
    picture = np.full((size[1], size[0], 3), 255, np.uint8)
    return VideoImage(frame(rgb=picture), View("clip", ignore_regions=regions))


def quarters(rgb: Rgb) -> list[tuple[int, ...]]:
    """The nearest pure colour in the middle of each quarter, clockwise from the top left."""
    height, width = rgb.shape[:2]
    spots = [(1, 1), (1, 3), (3, 3), (3, 1)]
    pixels = [rgb[y * height // 4, x * width // 4] for y, x in spots]
    return [tuple(255 if v > 127 else 0 for v in pixel) for pixel in pixels]


@pytest.mark.parametrize(
    ("spec", "shape"),
    [
        (ImageSpec(32), (24, 32, 3)),
        (ImageSpec(448), (336, 448, 3)),
        (ImageSpec(33), (25, 33, 3)),
        (ImageSpec(32, 32), (32, 32, 3)),
        (ImageSpec(32, 10, letterbox=False), (10, 32, 3)),
        (ImageSpec(1), (1, 1, 3)),
    ],
)
def test_the_picture_is_what_the_protocol_says(
    spec: ImageSpec, shape: tuple[int, int, int]
) -> None:
    rgb = VideoImage(frame(), View("clip")).rgb(spec)
    assert rgb.shape == shape
    assert rgb.dtype == np.uint8
    assert rgb.flags.c_contiguous
    assert not rgb.flags.writeable


def test_a_picture_is_converted_once_per_spec(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[ImageSpec] = []

    def counting(frame: av.VideoFrame, view: View, spec: ImageSpec) -> Rgb:
        seen.append(spec)
        return convert(frame, view, spec)

    monkeypatch.setattr(image_module, "convert", counting)
    image = VideoImage(frame(), View("clip"))
    first = image.rgb(ImageSpec(32))
    assert image.rgb(ImageSpec(32)) is first
    assert image.rgb(ImageSpec(32, 32)).shape == (32, 32, 3)
    assert seen == [ImageSpec(32), ImageSpec(32, 32)]


def test_two_brains_may_convert_one_frame_from_their_threads() -> None:
    image = VideoImage(frame((320, 240)), View("clip"))
    with ThreadPoolExecutor(4) as pool:
        specs = [ImageSpec(32 + n % 5) for n in range(40)]
        results = list(pool.map(image.rgb, specs))
    assert all(quarters(rgb) == UPRIGHT for rgb in results)
    assert len({id(rgb) for rgb in results}) == 5


def test_a_brain_does_not_wait_for_whoever_else_converts_the_frame(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun, go = threading.Event(), threading.Event()

    def slow_when_wide(frame: av.VideoFrame, view: View, spec: ImageSpec) -> Rgb:
        if spec.width == 64:
            begun.set()
            assert go.wait(10.0)
        return convert(frame, view, spec)

    monkeypatch.setattr(image_module, "convert", slow_when_wide)
    image = VideoImage(frame(), View("clip"))
    with ThreadPoolExecutor(2) as pool:
        wide = pool.submit(image.rgb, ImageSpec(64))
        assert begun.wait(10.0)
        wanted = pool.submit(image.rgb, ImageSpec(32))
        try:
            assert quarters(wanted.result(5.0)) == UPRIGHT
        finally:
            go.set()
        assert quarters(wide.result(5.0)) == UPRIGHT


@pytest.mark.parametrize("tag", [1, 2, 5, 6, 9])
@pytest.mark.parametrize("pix_fmt", ["yuv420p", "yuvj420p", "nv12", "yuv420p10le"])
def test_many_threads_at_one_frame_get_what_one_alone_gets(pix_fmt: str, tag: int) -> None:
    """A converter that is shared by them ends the process, and a changed tag the colours."""
    tagged = frame((640, 480)).reformat(format=pix_fmt)
    tagged.colorspace = tag
    specs = [ImageSpec(width) for width in (100, 224, 448)]
    alone = {spec: convert(tagged, View("clip"), spec) for spec in specs}
    with ThreadPoolExecutor(4) as pool:
        for spec, rgb in pool.map(lambda s: (s, convert(tagged, View("clip"), s)), specs * 10):
            assert np.array_equal(rgb, alone[spec])


def test_converting_starts_no_threads() -> None:
    image = VideoImage(frame((1280, 720)), View("clip"))
    before = len(list(Path("/proc/self/task").iterdir()))
    image.rgb(ImageSpec(448))
    assert len(list(Path("/proc/self/task").iterdir())) == before


def test_letterbox_centres_a_wide_picture_between_black_bars() -> None:
    rgb = white((64, 32)).rgb(ImageSpec(64, 64))
    assert rgb[:16].max() == 0
    assert rgb[16:48].min() >= 250
    assert rgb[48:].max() == 0


def test_letterbox_centres_a_tall_picture_between_black_bars() -> None:
    rgb = white((32, 64)).rgb(ImageSpec(64, 64))
    assert rgb[:, :16].max() == 0
    assert rgb[:, 16:48].min() >= 250
    assert rgb[:, 48:].max() == 0


def test_stretching_leaves_no_bars() -> None:
    rgb = white((64, 32)).rgb(ImageSpec(64, 64, letterbox=False))
    assert rgb.min() >= 250


def test_an_extremely_tall_picture_stays_within_the_spec_s_size_limit() -> None:
    spec = ImageSpec(10)
    assert white((4, 400)).rgb(spec).nbytes == spec.max_bytes


def test_shrinking_averages_instead_of_skipping_pixels() -> None:
    checks = np.zeros((64, 64, 3), np.uint8)
    checks[::2, ::2] = checks[1::2, 1::2] = 255
    rgb = VideoImage(frame(rgb=checks), View("clip")).rgb(ImageSpec(16))
    assert rgb.min() > 100
    assert rgb.max() < 155


def test_ignored_region_is_covered_completely_even_off_the_pixel_grid() -> None:
    rgb = white((100, 100), regions=((0.104, 0.205, 0.496, 0.791),)).rgb(ImageSpec(100))
    black = rgb.max(axis=2) == 0
    assert black[20:80, 10:50].all()
    assert black.sum() == 60 * 40


def test_ignored_region_lies_in_the_picture_and_not_in_the_bars() -> None:
    rgb = white((64, 32), regions=((0.0, 0.0, 0.5, 1.0),)).rgb(ImageSpec(64, 64))
    assert rgb[16:48, :32].max() == 0
    assert rgb[16:48, 32:].min() >= 250


def test_ignored_regions_hide_every_spec_alike() -> None:
    image = white((64, 48), regions=((0.0, 0.0, 0.5, 0.5), (0.75, 0.75, 1.0, 1.0)))
    for spec in (ImageSpec(32), ImageSpec(32, 32, letterbox=False)):
        assert quarters(image.rgb(spec)) == [BLACK, WHITE, BLACK, WHITE]


@pytest.mark.parametrize(
    ("pix_fmt", "colour_range", "luma", "expected"),
    [
        ("yuv420p", 1, 235, 255),
        ("yuv420p", 1, 16, 0),
        ("yuv420p", 2, 235, 235),
        ("yuv420p", 2, 16, 16),
        ("yuvj420p", 2, 235, 235),
        ("gray", 0, 128, 128),
        ("yuv420p10le", 1, 235, 255),
    ],
)
def test_the_stored_colour_range_is_respected(
    pix_fmt: str, colour_range: int, luma: int, expected: int
) -> None:
    flat = av.VideoFrame(16, 16, pix_fmt)
    deep = pix_fmt.endswith("10le")
    for plane, value in zip(flat.planes, (luma, 128, 128), strict=False):
        samples = [value * 4] * (plane.buffer_size // 2) if deep else [value] * plane.buffer_size
        plane.update(np.array(samples, "<u2" if deep else "u1").tobytes())
    flat.color_range = colour_range
    rgb = VideoImage(flat, View("clip")).rgb(ImageSpec(16))
    assert np.abs(rgb.astype(int) - expected).max() <= 3


def test_the_stored_colour_space_is_respected() -> None:
    reds = []
    for space in (1, 5):  # BT.709, BT.601
        flat = av.VideoFrame(16, 16, "yuv420p")
        for plane, value in zip(flat.planes, (81, 90, 240), strict=True):
            plane.update(bytes([value]) * plane.buffer_size)
        flat.colorspace = space
        reds.append(VideoImage(flat, View("clip")).rgb(ImageSpec(16))[8, 8])
    assert reds[0][1] > reds[1][1] + 10  # BT.601's red has green in it when read as BT.709


@pytest.mark.parametrize(
    ("rotation", "expected"),
    [
        ((0, False, False), [RED, GREEN, BLUE, WHITE]),
        ((90, False, False), [GREEN, BLUE, WHITE, RED]),
        ((180, False, False), [BLUE, WHITE, RED, GREEN]),
        ((270, False, False), [WHITE, RED, GREEN, BLUE]),
        ((0, True, False), [GREEN, RED, WHITE, BLUE]),
        ((0, False, True), [WHITE, BLUE, GREEN, RED]),
        ((90, True, False), [BLUE, GREEN, RED, WHITE]),
        ((90, False, True), [RED, WHITE, BLUE, GREEN]),
    ],
)
def test_a_turned_or_mirrored_video_comes_out_as_a_player_shows_it(
    tmp_path: Path, rotation: tuple[float, bool, bool], expected: list[tuple[int, ...]]
) -> None:
    clip = Clip(stamps=range(2), rotation=rotation, still=corners((64, 48)))
    rgb = play(write_video(tmp_path / "turned.mp4", clip)).rgb(24)
    assert rgb.shape == ((32, 24, 3) if rotation[0] % 180 else (18, 24, 3))
    assert quarters(rgb) == expected


def test_rotation_comes_before_letterbox_and_regions(tmp_path: Path) -> None:
    still = np.full((32, 64, 3), 255, np.uint8)
    clip = Clip(stamps=range(2), size=(64, 32), rotation=(90, False, False), still=still)
    played = play(write_video(tmp_path / "turned.mp4", clip))
    frame = played.frames[0].image
    assert isinstance(frame, VideoImage)
    view = View("clip", ignore_regions=((0.0, 0.0, 1.0, 0.5),))
    rgb = VideoImage(frame._frame, view).rgb(ImageSpec(64, 64))
    assert rgb[:, :16].max() == 0
    assert rgb[:, 48:].max() == 0
    assert rgb[:32].max() == 0
    assert rgb[33:, 17:47].min() >= 240


def test_non_square_pixels_are_shown_at_their_display_aspect(tmp_path: Path) -> None:
    clip = Clip(stamps=range(2), size=(48, 48), aspect=Fraction(4, 3))
    played = play(write_video(tmp_path / "wide.mp4", clip))
    assert played.rgb(64).shape == (48, 64, 3)


def test_a_turned_video_with_non_square_pixels(tmp_path: Path) -> None:
    clip = Clip(stamps=range(2), size=(48, 48), aspect=Fraction(4, 3), rotation=(90, False, False))
    assert play(write_video(tmp_path / "tall.mp4", clip)).rgb(48).shape == (64, 48, 3)


@pytest.mark.parametrize("orientation", [1, 3, 6, 8])
def test_a_photo_is_turned_as_its_exif_says(tmp_path: Path, orientation: int) -> None:
    path = write_still(tmp_path / "photo.jpg", corners((64, 48)))
    path.write_bytes(with_exif_orientation(path.read_bytes(), orientation))
    decoded, aspect = decode_still(path)
    turns = {1: 0, 3: 2, 6: 3, 8: 1}[orientation]  # quarter turns counter-clockwise
    rgb = VideoImage(decoded, View("photo", aspect)).rgb(ImageSpec(24))
    assert quarters(rgb) == [*UPRIGHT[turns:], *UPRIGHT[:turns]]


@pytest.mark.parametrize("size", [(1, 1), (3, 2), (2, 3), (1, 50), (500, 3)])
@pytest.mark.parametrize("pix_fmt", ["rgb24", "yuv420p", "gray"])
def test_tiny_pictures_convert_to_every_kind_of_spec(size: tuple[int, int], pix_fmt: str) -> None:
    rgb = np.full((size[1], size[0], 3), 255, np.uint8)
    source = frame(rgb=rgb).reformat(format=pix_fmt)
    image = VideoImage(source, View("clip"))
    for spec in (ImageSpec(448), ImageSpec(1), ImageSpec(7, 3), ImageSpec(9, 9, letterbox=False)):
        assert image.rgb(spec).max() > 200


@pytest.mark.parametrize("spec", [ImageSpec(0), ImageSpec(32, 0), ImageSpec(-4, 4)])
def test_a_spec_without_pixels_is_an_error_that_names_the_source(spec: ImageSpec) -> None:
    with pytest.raises(SourceError, match=r"kitchen: cannot convert .* at least 1"):
        VideoImage(frame(), View("kitchen")).rgb(spec)


@pytest.mark.parametrize(
    ("name", "codec", "pix_fmt"),
    [
        ("a.jpg", "mjpeg", "yuvj420p"),
        ("a.png", "png", "rgb24"),
        ("alpha.png", "png", "rgba"),
        ("a.webp", "libwebp", "yuv420p"),
        ("a.bmp", "bmp", "bgr24"),
        ("liar.png", "mjpeg", "yuvj420p"),
        ("100%d.png", "png", "rgb24"),
    ],
)
def test_each_kind_of_image_decodes(tmp_path: Path, name: str, codec: str, pix_fmt: str) -> None:
    decoded, aspect = decode_still(write_still(tmp_path / name, corners((65, 49)), codec, pix_fmt))
    assert aspect == 1
    assert quarters(VideoImage(decoded, View(name)).rgb(ImageSpec(64))) == UPRIGHT


@pytest.mark.parametrize(
    ("codec", "pix_fmt"),
    [("mjpeg", "yuvj420p"), ("png", "rgb24"), ("libwebp", "yuv420p"), ("bmp", "bgr24")],
)
def test_half_an_image_is_not_passed_off_as_a_picture(
    tmp_path: Path, codec: str, pix_fmt: str
) -> None:
    noise = np.random.default_rng(1).integers(0, 255, (48, 64, 3)).astype(np.uint8)
    path = write_still(tmp_path / "half", noise, codec, pix_fmt)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises((av.FFmpegError, ValueError)):
        decode_still(path)


def test_a_text_file_is_no_image(tmp_path: Path) -> None:
    path = tmp_path / "notes.jpg"
    path.write_text("shopping list")
    with pytest.raises(ValueError, match="neither jpg, png, webp nor bmp"):
        decode_still(path)
