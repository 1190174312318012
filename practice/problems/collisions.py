"""Pairs of blocks that keys which look good enough take for the same: each problem that compares prefixes tries them.

Whatever stands before and after the tokens in such a key, and whatever it starts from, a pair collides in it; only of
the truncated digests that is true for a few usual ways to begin.
"""

from __future__ import annotations

from random import Random

Pair = tuple[list[int], list[int]]

HALF = 1 << 62  # the highest bit that a token has
PRIMES = 65_521, 1_000_003, 998_244_353, 1_000_000_009, (1 << 31) - 1
VOCABULARIES = 32_000, 50_257, 100_277, 128_256, 151_936
POWERS_OF_TEN = 1000, 10_000, 10**5, 10**6, 10**9, 10**12, 10**18
BASES = 10, 31, 33, 37, 53, 131, 137, 256, 257, 263, 1000, 65_599, 1_000_003, 0x01000193, *VOCABULARIES, *PRIMES[2:]


def moduli() -> list[Pair]:
    return [([5], [5 + modulus]) for modulus in (*PRIMES, *VOCABULARIES, *POWERS_OF_TEN)]


def high_bits() -> list[Pair]:
    return [([7], [7 + (1 << bit)]) for bit in (8, 15, 16, 24, 31, 32, 40, 48, 52, 53, 56, 60, 61, 62)]


def cut_elsewhere() -> list[Pair]:
    """A token of `width` + 1 equal digits before one of `width`, and the other way round: joined, they are the same.

    Padding to a fixed width does not help, since one of them is wider than it. Digits of base 256 are bytes.
    """
    pairs = []
    for base, most in (10, 8), (16, 8), (256, 5):
        for width in range(1, most + 1):
            short, long = ((base**digits - 1) // (base - 1) for digits in (width, width + 1))
            pairs.append(([long, short], [short, long]))
    return pairs


def rolling() -> list[Pair]:
    """hash * base + token. Modulo 2**64 an odd base times 2**62 is 2**62 or 3 * 2**62, so that any base is caught."""
    any_base = [([0, 0], [HALF, HALF]), ([0, HALF], [HALF, 0])]
    return any_base + [([1, 0], [0, base]) for base in BASES]


def mixing() -> list[Pair]:
    """64 bits of (hash ^ token) * prime, of hash * 33 ^ token, and boost's hash_combine.

    Bit 62 of the first token is bit 62 of the hash, or bits 62 and 63: half of the time a second token undoes it.
    """
    rng, pairs = Random(1), list[Pair]()
    for _ in range(8):
        first, second = rng.randrange(1 << 61), rng.randrange(1 << 60, 1 << 61)
        pairs.append(([first, second], [first + HALF, second + HALF]))
        pairs.append(([first, second], [first + HALF, second + HALF - (1 << 60)]))
        pairs.append(([first, second + HALF], [first + HALF, second - (1 << 60)]))
    return pairs


def checksums() -> list[Pair]:
    """CRC-32 and Adler-32 of the token as eight bytes or as decimal digits; four bytes of a SHA-256."""
    crc = [(0, 7976584769), (0, 6814697335), (111111111111111111, 246444605201111111)]
    adler = [(0x010201, 0x020002), (121, 202)]
    # Found among some 10**5 blocks each. Four bytes of a digest can be told in no other way: the cases are too small.
    packed = [(27746, 30467), (18988, 84512), (46973, 80183)]  # after the digest of "None" (cut, or whole), or nothing
    printed = [(9767, 36761), (141457, 155886)]  # str((None, (token,))), str((None, [token]))
    return [([one], [other]) for one, other in crc + adler + packed + printed]
