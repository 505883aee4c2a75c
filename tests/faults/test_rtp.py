"""The film, its packets and its damage."""

from collections.abc import Iterator

import av
import numpy as np
import pytest

from hdguard.faults.rtp import FPS, GROUP, SIZE, Film, Packets, covered_lens, damaged, quiet_room


@pytest.fixture(scope="module")
def film() -> Film:
    return quiet_room()


def pictures(every: Iterator[tuple[bytes, ...]]) -> list[np.ndarray]:
    codec = av.CodecContext.create("h264", "r")
    assert isinstance(codec, av.VideoCodecContext)
    frames = []
    for units in every:
        packet = av.Packet(b"".join(b"\0\0\0\1" + unit for unit in units))
        frames.extend(codec.decode(packet))
    return [frame.to_ndarray(format="gray") for frame in frames]


def put_together(data: bytes) -> tuple[list[bytes], list[tuple[int, int, bool]]]:
    """What a receiver makes of it: the units, and (sequence, stamp, marker) of each packet."""
    units: list[bytes] = []
    heads = []
    while data:
        assert data[0] == ord("$")
        size = int.from_bytes(data[2:4], "big")
        packet, data = data[4 : 4 + size], data[4 + size :]
        seq, stamp = int.from_bytes(packet[2:4], "big"), int.from_bytes(packet[4:8], "big")
        heads.append((seq, stamp, bool(packet[1] & 0x80)))
        body = packet[12:]
        if body[0] & 0x1F != 28:
            units.append(body)
        elif body[1] & 0x80:
            units.append(bytes(((body[0] & 0xE0) | (body[1] & 0x1F),)) + body[2:])
        else:
            units[-1] += body[2:]
    return units, heads


def test_a_picture_comes_out_of_its_packets_as_it_went_in(film: Film) -> None:
    packets = Packets()
    long = 0
    for index in range(3):
        units, heads = put_together(packets.of(film.units(index), index, channel=0))
        assert tuple(units) == film.units(index)
        assert [marker for _, _, marker in heads] == [False] * (len(heads) - 1) + [True]
        assert {stamp for _, stamp, _ in heads} == {index * 90_000 // FPS}
        long += len(heads) > len(units)
    assert long, "no unit was long enough to go in fragments"


def test_packets_count_on_from_picture_to_picture(film: Film) -> None:
    packets = Packets()
    data = b"".join(packets.of(film.units(n), n, channel=0) for n in range(4))
    seqs = [seq for seq, _, _ in put_together(data)[1]]
    assert seqs == list(range(len(seqs)))


def test_the_film_decodes_loops_and_is_not_a_still(film: Film) -> None:
    seen = pictures(film.units(n) for n in range(60))
    assert len(seen) == 60
    assert seen[0].shape == SIZE[::-1]
    assert np.mean(np.abs(seen[0].astype(int) - seen[10])) > 6.0
    assert np.mean(np.abs(seen[0].astype(int) - seen[40])) < 3.0


def test_a_covered_lens_takes_over_at_a_key_frame(film: Film) -> None:
    covered = covered_lens()
    assert covered.description() == film.description()
    cut = (film.units(n) if n < GROUP else covered.units(n) for n in range(2 * GROUP))
    seen = pictures(cut)
    assert seen[GROUP - 1].mean() > 60
    assert seen[GROUP].mean() < 30


def test_damage_leaves_the_head_of_a_unit_and_changes_the_rest(film: Film) -> None:
    units = film.units(0)
    broken = damaged(units, np.random.default_rng(0))
    assert [len(a) for a in broken] == [len(a) for a in units]
    assert [a[:24] for a in broken] == [a[:24] for a in units]
    assert broken != units
    small = [(a, b) for a, b in zip(units, broken, strict=True) if a[0] & 0x1F in (7, 8)]
    assert all(a == b for a, b in small)
