"""The cases of problem 130: each directed case sets one trap, and the title of its group says which kind.

A prompt shorter than a block leaves no trace in an index: it is used to make a worker busy.
"""

from __future__ import annotations

from collections.abc import Sequence

from practice.grader.contract import Case, Group
from practice.problems import collisions

from .calls import Calls
from .seeded import full_index, long_prompt, many_workers, random_branches, random_calls

FOLD = (1 << 61) - 1  # Python's hash of an int is the int modulo this


def routes(name: str, num_workers: int, *prompts: Sequence[int], **parameters: float) -> Case:
    """Prompts one after another, none of which finishes."""
    calls = Calls(name, num_workers, **parameters)
    calls.route(*prompts)
    return calls.case()


def served_by_first(name: str, *prompts: Sequence[int], then: Sequence[Sequence[int]], **parameters: float) -> Case:
    """Worker 0 serves the prompts while worker 1 is busy; then prompts come that only a match brings to worker 0."""
    calls = Calls(name, 2, **{"block_size": 2, **parameters})
    first, busy = calls.route([9]), calls.route([9])
    calls.finish(first)
    calls.serve(*prompts)
    calls.finish(busy)
    for tokens in then:
        calls.route(tokens)
    return calls.case()


def examples() -> list[Case]:
    first = Calls("a prompt that is known, and one that is not", 2, block_size=2)
    one = first.route([1, 2, 3, 4])
    first.route([5, 6, 7, 8])
    first.route([1, 2, 3, 4, 9])
    first.finish(one)
    first.route([1, 2, 7, 8])
    second = Calls("loads too uneven", 2, block_size=2, balance_abs=2)
    second.route(*[[1, 2, 3, 4]] * 5)
    return [first.case(), second.case()]


def balance() -> list[Case]:
    known, other = [1, 2, 3, 4], [5, 6, 7, 8]
    all_of_them = Calls("the least loaded of all, known there or not", 3, block_size=1, balance_abs=1)
    all_of_them.route(*[known] * 3)  # two on worker 0, then one on worker 1
    busy = all_of_them.route([9])
    all_of_them.finish(busy)
    all_of_them.route(known, known, known, known)
    finished = Calls("requests that have ended weigh nothing", 2, block_size=1, balance_abs=2)
    finished.serve(*[known] * 5)
    finished.route(known)
    return [
        routes("a difference of balance_abs is none", 2, *[known] * 5, block_size=1, balance_abs=2),
        routes(
            "balance_rel times is not more", 2, known, other, *[known] * 4, block_size=1, balance_abs=0, balance_rel=2.0
        ),
        routes(
            "a small difference, but many times the load", 2, *[known] * 3, block_size=1, balance_abs=4, balance_rel=1.5
        ),
        routes(
            "a large difference, but few times the load",
            2,
            known,
            *[other] * 2,
            *[known] * 9,
            block_size=1,
            balance_abs=2,
            balance_rel=4.0,
        ),
        routes(
            "a product that is no whole number",
            2,
            known,
            other,
            *[known] * 2,
            block_size=1,
            balance_abs=0,
            balance_rel=1.5,
        ),
        routes("the least loaded of seven", 7, *[known] * 20, block_size=1, balance_abs=1),
        routes("an idle worker", 2, known, known, known, block_size=1, balance_abs=0, balance_rel=2.0),
        routes("an idle worker, a large factor", 2, *[known] * 5, block_size=1, balance_abs=1, balance_rel=8.0),
        all_of_them.case(),
        finished.case(),
        routes("the defaults", 2, *[list(range(40))] * 40),
        routes("the default factor", 2, *[[9]] * 20, *[range(16)] * 5, balance_abs=0),
    ]


def threshold() -> list[Case]:
    return [
        routes("exactly the threshold is not enough", 2, [1, 2, 3, 4], [1, 2, 7, 8], block_size=2),
        routes("the tail counts in the length", 2, *[[1, 2, 3, 4, 5, 6, 7]] * 2, block_size=4, match_threshold=0.75),
        routes("a match is measured in tokens", 2, *[[1, 2, 3, 4]] * 2, block_size=2),
        routes("the last block may match too", 2, *[[1, 2, 3, 4]] * 2, block_size=4),
        routes("half of an odd length", 2, [1, 2, 3], [1, 2, 7], [1, 8, 8], [1, 2, 3, 8, 8, 8, 8], block_size=1),
        routes("a threshold of zero", 2, [1, 2, 3, 4], [1, 7, 7, 7], [8, 8], [1, 9], block_size=1, match_threshold=0.0),
        routes("a threshold of one", 2, *[[1, 2, 3, 4]] * 2, block_size=2, match_threshold=1.0),
        routes("no full block", 2, [1], [1], [1, 2], block_size=4),
        routes("the defaults", 2, range(40), [*range(16), *range(50, 66)], [*range(32), *range(50, 80)], range(33)),
        routes("the default block size", 2, range(40), [*range(40), *range(100, 130)], range(24)),
        routes(
            "the default threshold", 2, range(160), [*range(160), *range(200, 359)], [*range(160), *range(400, 561)]
        ),
    ]


def ties() -> list[Case]:
    idle = Calls("all idle: the fewest requests so far", 3, block_size=2)
    idle.serve([1], [2], [3], [4], [5])
    load = Calls("a lower load beats fewer requests", 2, block_size=2)
    load.serve([1])
    busy = load.route([2])
    load.serve([3], [4], [5])
    load.route([6])
    load.finish(busy)
    load.route([7])
    among = Calls("among the best matches: the least loaded", 2, block_size=1, balance_abs=1)
    among.route(*[[1, 2]] * 7)
    fewest = Calls("among the best matches: the fewest requests", 2, block_size=1, balance_abs=1)
    three = [fewest.route([1, 2]) for _ in range(3)]
    fewest.finish(*three)
    fewest.route([1, 2])
    fewest.route([1, 2])
    running = Calls(
        "among the best matches: running requests, not those that have ended", 2, block_size=1, balance_abs=1
    )
    two = [running.route([1, 2]), running.route([1, 2])]
    running.route([1, 2])
    running.finish(*two)
    running.route([1, 2])
    best = Calls("a longer match beats a lower load", 3, block_size=1, match_threshold=0.25)
    best.route([1, 2, 3, 4], [8], [8, 8], [1, 2, 3, 4], [1, 2, 3, 4])
    longer = Calls("a shorter match that is long enough too", 2, block_size=1, match_threshold=0.25)
    longer.route([1, 2, 3, 4], [1, 7, 7, 7], [1, 2, 3, 4], [1, 2, 3])
    return [
        idle.case(),
        load.case(),
        among.case(),
        fewest.case(),
        running.case(),
        best.case(),
        longer.case(),
        routes(
            "seven workers, each with its own prompt",
            7,
            *([n, n] for n in (*range(7), *range(6, -1, -1))),
            block_size=2,
        ),
        routes("a single worker", 1, [1, 2], [1, 2], [3], block_size=2),
        routes("strangers spread over all", 4, *[[number] for number in range(9)], block_size=4),
    ]


def keys() -> list[Case]:
    def pair(name: str, one: list[int], other: list[int]) -> Case:
        return routes(name, 2, one, other, one, other, block_size=len(one))

    def strangers(name: str, pairs: list[collisions.Pair]) -> Case:
        """Each block goes to a worker that is still idle, unless its key is taken for another's."""
        blocks = list(dict.fromkeys(tuple(tokens) for pair in pairs for tokens in pair))
        return routes(name, len(blocks), *blocks, block_size=len(blocks[0]))

    window = [[1, *range(10, 23)], *([2, *range(10, 10 + length)] for length in range(6))]
    thousands = [range(start, start + 900) for start in (1000, 2000, 3000, 4000)]
    return [
        routes("blocks in another order", 2, [1, 2, 3, 4], [3, 4, 1, 2], block_size=2),
        routes("the grandparent counts", 2, [1, 2, 1, 3], [1, 3, 8, 8], block_size=1, match_threshold=0.25),
        routes("the same block at another place", 2, [1, 2, 3, 4], [3, 4], block_size=2),
        routes("the same block twice", 2, [1, 2, 7], [1, 2, 1, 2, 1, 2], block_size=2),
        routes("the match ends at the first miss", 2, [1, 2, 3, 4], [1, 8, 3, 4], block_size=1),
        routes("half a block is not indexed", 2, [1, 2], [1, 2], block_size=4, match_threshold=0.0),
        routes("half a block is no match", 2, *[[1, 2, 3, 4, 5, 6]] * 2, block_size=4, match_threshold=0.75),
        routes("half a block is not filled up", 2, [1, 2, 3], [1, 2, 3, 0], block_size=4),
        pair("equal modulo 2**61 - 1", [1, 2], [1 + FOLD, 2]),
        pair("equal in their last 32 bits", [7, 2], [7 + (1 << 32), 2]),
        pair("equal in their last byte", [7, 2], [263, 2]),
        pair("equal as floats", [(1 << 53) + 1, 2], [1 << 53, 2]),
        pair("equal modulo a usual prime", [3, 2], [3 + 1_000_000_007, 2]),
        pair("the same digits, cut elsewhere", [1, 23], [12, 3]),
        pair("the same tokens in another order", [1, 2, 3], [3, 1, 2]),
        pair("the largest token", [(1 << 63) - 1, 2], [(1 << 63) - 2, 2]),
        strangers("digits or bytes, joined without a separator", collisions.cut_elsewhere()),
        strangers("equal but for one high bit", collisions.high_bits()),
        strangers("equal modulo a prime, a vocabulary, a power of ten", collisions.moduli()),
        strangers("a token more, and base times as much less", collisions.rolling()),
        strangers("high bits that cancel", collisions.mixing()),
        strangers("the same checksum", collisions.checksums()),
        served_by_first("thirteen blocks after another first one", *window, then=[[2, *range(10, 23)]], block_size=1),
        routes("thousands of blocks, then strangers", 8, *thousands, *([n] for n in range(9000, 9100)), block_size=1),
    ]


def insertion() -> list[Case]:
    known = [1, 2, 3, 4]
    return [
        routes("a stranger is written down", 3, known, known, known, block_size=2),
        routes("what was sent for balance is written down", 2, *[known] * 4, block_size=2, balance_abs=1),
        routes("the new end of a known prompt", 2, [1, 2, 3], [1, 2, 3, 4, 5], range(1, 9), block_size=1),
        routes("nothing is written down elsewhere", 3, known, [5, 6, 7, 8], known, [5, 6, 7, 8], block_size=2),
    ]


def recency() -> list[Case]:
    one, two, three, four, five = ([number] * 2 for number in range(1, 6))
    lookup = Calls("looking up renews nothing", 2, block_size=2, index_blocks=2)
    first, busy = lookup.route([9]), lookup.route([9])
    lookup.finish(first)
    lookup.serve(one, two)  # both on worker 0, which now becomes the busier one
    again = lookup.route([9])
    lookup.finish(busy)
    busy = lookup.route([*one, 8, 8, 8, 8])  # a short match on worker 0; it goes to worker 1
    lookup.finish(again)
    lookup.serve(three)
    lookup.finish(busy)
    lookup.route(two)
    lookup.route(one)
    default = Calls("the default index", 2, block_size=1)
    first, busy = default.route([9]), default.route([9])
    default.finish(first)
    default.serve([1], range(10, 10 + 1100))
    default.finish(busy)
    default.route([1])
    own = Calls("each worker has its own index", 2, block_size=2, index_blocks=1)
    own.route(one, two, one, two)
    return [
        served_by_first("the oldest goes", one, two, three, then=[one, three], index_blocks=2),
        served_by_first("as many as index_blocks stay", one, two, then=[one], index_blocks=2),
        served_by_first("the child goes before its parent", one + two, three, then=[one, one + two], index_blocks=2),
        served_by_first("a known block is renewed", one, two, one, three, then=[one], index_blocks=2),
        served_by_first(
            "a known parent is renewed after its new child", one, one + two, three, then=[one], index_blocks=2
        ),
        served_by_first(
            "known and new in one pass", one + two, three, one + four, five, five + two, then=[one], index_blocks=3
        ),
        served_by_first("as many go as came", one, two, three + four, then=[two, three], index_blocks=2),
        served_by_first(
            "longer than the index", one + two + three, then=[one + two + three], index_blocks=2, match_threshold=0.75
        ),
        served_by_first(
            "longer than the index: its beginning stays", one + two + three, then=[one + two], index_blocks=2
        ),
        lookup.case(),
        default.case(),
        own.case(),
    ]


def load() -> list[Case]:
    ended = Calls("finish takes one off the load", 2, block_size=2)
    one, _, two = ended.route([1]), ended.route([1]), ended.route([1])
    ended.finish(one, two)
    ended.route([1])
    ended.route([1])
    counted = Calls("a request weighs until it has ended", 2, block_size=2)
    counted.route([1])
    counted.finish(counted.route([1]))
    counted.route([1])
    once = Calls("finish takes off one, not all", 2, block_size=2)
    three = [once.route([1]) for _ in range(6)]
    once.finish(three[0])
    once.finish(three[1], three[3])
    once.route([1])
    once.route([1])
    kept = Calls("finish leaves the index alone", 2, block_size=2)
    kept.serve([1, 2, 3, 4])
    kept.route([1, 2, 3, 4])
    return [ended.case(), counted.case(), once.case(), kept.case()]


def objects() -> list[Case]:
    one = Calls("two routers at the same time", 2, block_size=2)
    running = one.route([1, 2, 3, 4])
    other = one.other()
    other.route([5, 6, 7, 8])
    one.route([1, 2, 3, 4])
    other.route([1, 2, 3, 4])
    one.finish(running)
    one.route([5, 6, 7, 8])
    return [one.case()]


def groups(seed: int) -> list[Group]:
    def group(name: str, points: int, cases: list[Case], en: str, zh: str) -> Group:
        return Group(name, {"en": en, "zh": zh}, points, tuple(cases))

    return [
        group("examples", 5, examples(), "the examples of the statement", "题目里的例子"),
        group("balance", 10, balance(), "when the loads are too uneven", "负载什么时候算不均衡"),
        group("threshold", 10, threshold(), "when a match is long enough", "匹配多长才算够"),
        group("ties", 10, ties(), "the least loaded, and ties", "最低负载与平局"),
        group("keys", 10, keys(), "different prefixes, different keys", "前缀不同，键就不同"),
        group("insertion", 10, insertion(), "the index learns on every path", "每条路径都要记入索引"),
        group("recency", 15, recency(), "what an index forgets, and when", "索引忘掉什么，什么时候忘"),
        group("load", 5, load(), "finish", "finish：请求结束"),
        group("objects", 5, objects(), "each object has a state of its own", "每个对象有自己的状态"),
        group("random", 5, [*random_calls(seed), *random_branches(seed)], "random calls", "随机的调用序列"),
        group("full_index", 5, [full_index(seed)], "a full index costs no time", "索引再满，也不费时间"),
        group("many_workers", 5, [many_workers(seed)], "a prompt is hashed once", "提示词只哈希一次"),
        group(
            "long_prompt",
            5,
            [long_prompt(seed)],
            "time grows no faster than the prompt",
            "时间不比提示词长得快",
        ),
    ]
