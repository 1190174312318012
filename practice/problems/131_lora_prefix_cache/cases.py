"""The cases of problem 131: each directed case sets one trap, and the title of its group says which kind."""

from __future__ import annotations

from collections.abc import Sequence

from practice.grader.contract import Case, Group
from practice.problems import collisions

from .calls import Calls
from .seeded import large_pool, long_prompt, random_branches, random_calls

FOLD = (1 << 61) - 1  # Python's hash of an int is the int modulo this
ADAPTERS = 1, 999, 1001, 4097, 10**6, (1 << 31) - 1, (1 << 48) + 1, 1 << 53, (1 << 53) + 1, 1 << 62, (1 << 63) - 1


def prompts(name: str, block_size: int, *each: Sequence[int], num_blocks: int = 12) -> Case:
    """Prompts of the base model, one after another, all of them kept."""
    calls = Calls(name, num_blocks, block_size)
    for tokens in each:
        calls.allocate(tokens)
    return calls.case()


def requests(name: str, block_size: int, *each: tuple[Sequence[int], int | None]) -> Case:
    """Prompts with their adapters, one after another, all of them kept."""
    calls = Calls(name, 64, block_size)
    for tokens, lora_id in each:
        calls.allocate(tokens, lora_id=lora_id)
    return calls.case()


def examples() -> list[Case]:
    first = Calls("two prompts with the same beginning", 6, 2)
    one = first.allocate([1, 2, 3, 4, 5])
    first.allocate([1, 2, 3, 4, 9])
    first.free(one)
    first.allocate([1, 2, 3, 4], lora_id=0)
    first.allocate([6, 7, 8])
    second = Calls("a block is forgotten when it is taken", 3, 2)
    second.free(second.allocate([1, 2, 3]))
    second.free(second.allocate([5, 6, 7]))
    second.allocate([1, 2, 4])
    return [first.case(), second.case()]


def chain() -> list[Case]:
    return [
        prompts("the same block after another one", 2, [1, 2, 3, 4, 9], [5, 6, 3, 4, 9], [5, 6, 3, 4, 8]),
        prompts("blocks in another order", 2, [1, 2, 3, 4, 9], [3, 4, 1, 2, 9]),
        prompts("the grandparent counts", 1, [1, 3, 4, 9], [2, 3, 4, 9], [2, 3, 4, 8]),
        prompts("the same block twice", 2, [1, 2, 1, 2, 1, 2, 9], [1, 2, 1, 2, 7], [1, 2, 7]),
        prompts("the same block at another place", 2, [1, 2, 3, 4, 9], [3, 4, 9]),
        prompts("a miss in the middle", 2, [1, 2, 3, 4, 5, 6, 9], [1, 2, 7, 8, 5, 6, 9], [1, 2, 7, 8, 5, 6, 0]),
        *(
            prompts(name, 1, *([*start, *range(10, 22), end] for end in (8, 9) for start in starts), num_blocks=60)
            for name, starts in [
                ("twelve blocks after another first one", [[1], [2]]),
                ("twelve blocks after another second one", [[1, 1], [1, 2]]),
            ]
        ),
    ]


def adapter() -> list[Case]:
    one, other = [1, 2, 3, 4, 9], [1, 2, 3, 4, 8]
    by_position = Calls("an adapter that is given without its name", 6, 2)
    by_position.allocate(one)
    by_position.call("allocate", other, 1)
    return [
        requests("base model, then adapter 0", 2, (one, None), (other, 0), (one, 0), (other, None)),
        requests("adapter 0, then base model", 2, (one, 0), (other, None), (one, 0)),
        requests("two adapters", 2, (one, 1), (other, 2), (other, 1), (one, 2)),
        requests("far apart, alike in their last bits", 2, (one, 1), (one, 257), (one, 1 + (1 << 32)), (one, 1 + FOLD)),
        requests("an adapter is no token before the prompt", 1, ([5, 6, 7, 8], None), ([6, 7, 8], 5), ([5, 6, 9], 5)),
        requests("an adapter is no token after a block", 1, ([1, 3, 9], None), ([1, 5], 3), ([1, 3, 8], 3)),
        requests("the adapter counts in every block", 1, ([1, 2, 3, 9], 1), ([4, 2, 3, 9], 2), ([4, 2, 3, 8], 2)),
        requests("the digits of an adapter, then those of a token", 1, ([23, 9], 1), ([3, 9], 12)),
        requests("the digits of a token, then those of an adapter", 1, ([3, 9], 21), ([32, 9], 1)),
        requests("many adapters, and none", 2, *((one, lora_id) for lora_id in (None, *ADAPTERS))),
        by_position.case(),
    ]


def distinct() -> list[Case]:
    def pair(name: str, one: list[int], other: list[int]) -> Case:
        return prompts(name, len(one), [*one, 9], [*other, 9], [*one, 8], [*other, 8])

    def pairs(name: str, all_of_them: list[collisions.Pair]) -> Case:
        blocks = dict.fromkeys(tuple(tokens) for pair in all_of_them for tokens in pair)
        each = [[*tokens, 9] for tokens in blocks]
        return prompts(name, len(each[0]) - 1, *each, num_blocks=2 * len(each))

    thousand = list(range(1000, 2000))
    return [
        pair("equal modulo 2**61 - 1", [1, 2], [1 + FOLD, 2]),
        pair("zero and 2**61 - 1", [0, 0], [0, FOLD]),
        pair("equal in their last 32 bits", [7, 2], [7 + (1 << 32), 2]),
        pair("equal in their last 16 bits", [7, 2], [7 + (1 << 16), 2]),
        pair("equal in their last byte", [7, 2], [263, 2]),
        pair("equal as floats", [(1 << 53) + 1, 2], [1 << 53, 2]),
        pair("equal modulo a usual prime", [3, 2], [3 + 1_000_000_007, 2]),
        pair("the same digits, cut elsewhere", [1, 23], [12, 3]),
        pair("the same tokens in another order", [1, 2, 3], [3, 1, 2]),
        pair("a token twice", [1, 1, 2], [1, 2, 2]),
        pair("the largest token", [(1 << 63) - 1, 2], [(1 << 63) - 2, 2]),
        pairs("digits or bytes, joined without a separator", collisions.cut_elsewhere()),
        pairs("equal but for one high bit", collisions.high_bits()),
        pairs("equal modulo a prime, a vocabulary, a power of ten", collisions.moduli()),
        pairs("a token more, and base times as much less", collisions.rolling()),
        pairs("high bits that cancel", collisions.mixing()),
        pairs("the same checksum", collisions.checksums()),
        prompts("a thousand blocks, twice", 1, thousand, [*thousand[:-1], 1 << 20], num_blocks=1100),
    ]


def last_token() -> list[Case]:
    return [
        prompts("an exact multiple, twice", 2, [1, 2, 3, 4], [1, 2, 3, 4], [1, 2, 3, 4, 5]),
        prompts("one block, twice", 3, [1, 2, 3], [1, 2, 3]),
        prompts("one token", 1, [7], [7], [7, 7], [7, 7]),
        prompts("blocks of one token", 1, [1, 2, 3], [1, 2, 3], [1, 2, 3, 4]),
        prompts("one token more than full blocks", 2, [1, 2, 3, 4, 5], [1, 2, 3, 4, 6]),
        prompts("one token less than full blocks", 3, [1, 2, 3, 4, 5], [1, 2, 3, 4, 5]),
        prompts("blocks of sixteen", 16, range(32), range(32), range(33), range(16)),
    ]


def full_blocks() -> list[Case]:
    return [
        prompts("half a block, then the whole", 2, [1, 2, 5], [1, 2, 5, 6, 7], [1, 2, 5, 6, 8]),
        prompts("half a block is not filled up with zeros", 2, [1, 2, 5], [1, 2, 5, 0, 9], [1, 2, 5, 0, 8]),
        prompts("half a block is not filled up with its last token", 3, [1, 2], [1, 2, 2, 9]),
        prompts("half a block is not the beginning of another", 3, [1, 2, 3, 9], [1, 2], [1, 2, 4, 9], [1, 2, 4, 8]),
        prompts("shorter than a block", 4, [1, 2, 3], [1, 2, 3], [1, 2, 3, 4, 5]),
    ]


def queue() -> list[Case]:
    order = Calls("the last block of a table is freed first", 6, 2)
    one, two = order.allocate([1, 2, 3, 4, 5]), order.allocate([6, 7])
    order.free(one, two)
    order.allocate(range(10, 22))
    tail = Calls("head and tail", 5, 1)
    one, two = tail.allocate([1, 2]), tail.allocate([3])
    tail.free(two, one)
    tail.allocate([5, 6, 7, 8])
    hit = Calls("a hit leaves the queue", 4, 2)
    hit.free(hit.allocate([1, 2, 3]))
    hit.allocate([1, 2, 4])
    hit.allocate([5, 6, 7])
    hit.allocate([8])
    shared = Calls("a block that somebody still holds is not free", 5, 2)
    one = shared.allocate([1, 2, 3])
    two = shared.allocate([1, 2, 4])
    three = shared.allocate([1, 2, 5])
    shared.free(one)
    shared.allocate([6, 7, 8, 9])
    shared.free(two)
    shared.allocate([10])
    shared.free(three)
    shared.allocate([11, 12, 13])
    renewed = Calls("a hit that is freed again waits at the tail", 4, 2)
    one, two = renewed.allocate([1, 2, 3]), renewed.allocate([5, 6, 7])
    renewed.free(one, two)
    renewed.free(renewed.allocate([1, 2, 4]))
    renewed.allocate([8, 9])
    renewed.allocate([1, 2, 8])
    tails = Calls("blocks without a key wait their turn too", 4, 2)
    tails.free(tails.allocate([1, 2, 3]))
    tails.free(tails.allocate([5, 6, 7]))
    tails.allocate([8])
    tails.allocate([9, 9, 9])
    nine = Calls("nine hold one block", 11, 1)
    tables = [nine.allocate([1, number]) for number in range(2, 11)]
    nine.free(*tables[1:])
    nine.allocate(range(20, 29))
    nine.allocate([30])
    return [each.case() for each in (order, tail, hit, shared, renewed, tails, nine)]


def shortage() -> list[Case]:
    waiting = Calls("a hit in the queue is not available", 4, 2)
    waiting.allocate([9])
    waiting.free(waiting.allocate([1, 2, 3, 4]))
    waiting.allocate([1, 2, 3, 4, 5, 6, 7])
    waiting.allocate([1, 2, 3, 4, 5])
    enough = Calls("just enough", 4, 2)
    enough.free(enough.allocate([1, 2, 3, 4, 5, 6, 7]))
    enough.free(enough.allocate([1, 2, 3, 4, 5, 6, 8]))
    enough.allocate([9, 9, 9, 9, 9, 9, 9, 9])
    held = Calls("a hit that is held takes nothing from the queue", 4, 2)
    held.allocate([1, 2, 3, 4, 5])
    held.allocate([1, 2, 3, 4, 6])
    held.allocate([1, 2, 3, 4, 7])
    held.allocate([1])
    order = Calls("the order of the queue survives a refusal", 5, 2)
    order.free(order.allocate([1, 2, 3]))
    order.free(order.allocate([5, 6]))
    order.allocate([4])
    order.free(order.allocate([8]))
    order.allocate([1, 2, 3, 4, 5, 6, 7, 8, 9])
    order.allocate(range(20, 28))
    count = Calls("a refusal holds nothing", 4, 2)
    one = count.allocate([1, 2, 3])
    count.allocate([1, 2, 4, 5, 6, 7, 8, 9])
    count.free(one)
    count.allocate(range(20, 28))
    keys = Calls("a refusal forgets nothing", 4, 2)
    keys.free(keys.allocate([1, 2, 3, 4, 5]))
    keys.allocate(range(20, 30))
    two = keys.allocate([1, 2, 3, 4, 5])
    keys.free(two)
    keys.allocate([1, 2, 7, 7, 7, 7, 7, 7, 7, 7])
    keys.allocate([1, 2, 3, 4, 6])
    learns = Calls("a refusal registers nothing", 3, 2)
    one = learns.allocate([9, 9, 9])
    learns.allocate([1, 2, 3, 4])
    learns.free(one)
    learns.allocate([1, 2, 3, 4, 5])
    several = Calls("four hits wait in the queue", 6, 1)
    several.free(several.allocate([1, 2, 3, 4, 5, 6]))
    several.allocate([1, 2, 3, 4, 7, 8, 9])
    several.allocate([1, 2, 3, 4, 7, 8])
    some = Calls("one hit is held, two wait in the queue", 6, 1)
    one = some.allocate([1, 2, 3, 4])
    some.allocate([1, 9])
    some.free(one)
    some.allocate([1, 2, 3, 7, 8, 9])
    some.allocate([1, 2, 3, 7, 8])
    single = Calls("a pool of one block", 1, 2)
    single.free(single.allocate([1]))
    single.allocate([1, 2, 3])
    single.allocate([1, 2])
    single.allocate([3])
    return [each.case() for each in (waiting, enough, held, order, count, keys, learns, several, some, single)]


def reuse() -> list[Case]:
    stale = Calls("the block was given to somebody else", 2, 2)
    stale.free(stale.allocate([1, 2, 3]))
    stale.free(stale.allocate([5, 6, 7, 8]))
    stale.allocate([1, 2, 4])
    kept = Calls("a free block can be hit", 4, 2)
    kept.free(kept.allocate([1, 2, 3, 4, 5]))
    kept.free(kept.allocate([1, 2, 3, 4, 6]))
    kept.allocate([1, 2, 7])
    tail = Calls("the end is forgotten before the beginning", 4, 2)
    tail.free(tail.allocate([1, 2, 3, 4, 5, 6, 7, 8]))
    tail.free(tail.allocate([9, 9, 9, 9]))
    tail.allocate([1, 2, 3, 4, 5, 6, 7])
    itself = Calls("a prompt is given the very block that holds it", 2, 2)
    for _ in range(3):
        itself.free(itself.allocate([1, 2]))
    itself.allocate([1, 2, 3])
    again = Calls("forgotten, computed again, found again", 3, 2)
    again.free(again.allocate([1, 2, 3]))
    again.free(again.allocate([4, 4, 5, 5, 6, 6]))
    again.free(again.allocate([1, 2, 3]))
    again.allocate([1, 2, 8])
    return [each.case() for each in (stale, kept, tail, itself, again)]


def copies() -> list[Case]:
    first = Calls("the first block that has a key keeps it", 6, 2)
    first.allocate([1, 2])
    two = first.allocate([1, 2])
    first.allocate([1, 2, 3])
    first.free(two)
    first.allocate([1, 2, 4])
    promoted = Calls("a copy that is held is not promoted", 3, 2)
    one, two = promoted.allocate([1, 2]), promoted.allocate([1, 2])
    promoted.free(one)
    promoted.free(promoted.allocate([5, 6, 7]))
    promoted.allocate([1, 2, 9])
    freed = Calls("a copy that is freed is not promoted", 4, 2)
    one, two = freed.allocate([1, 2]), freed.allocate([1, 2])
    freed.free(one)
    freed.free(freed.allocate([5, 6, 7, 7, 8, 8]))
    freed.free(two)
    freed.allocate([1, 2, 9])
    taken = Calls("a copy is taken, and its key stays where it is", 4, 2)
    one, two = taken.allocate([1, 2]), taken.allocate([1, 2])
    taken.free(two)
    taken.free(taken.allocate([5, 6, 7, 7, 8, 8]))
    taken.free(one)
    taken.allocate([1, 2, 9])
    return [each.case() for each in (first, promoted, freed, taken)]


def objects() -> list[Case]:
    one = Calls("two caches at the same time", 4, 2)
    mine = one.allocate([1, 2, 3])
    other = one.other()
    one.allocate([1, 2, 4])
    other.free(other.allocate([1, 2, 3]))
    other.allocate([5, 6, 7, 8, 9, 10])
    one.free(mine)
    one.allocate([1, 2, 5])
    return [one.case()]


def groups(seed: int) -> list[Group]:
    def group(name: str, points: int, cases: list[Case], en: str, zh: str, late: bool = False) -> Group:
        return Group(name, {"en": en, "zh": zh}, points, tuple(cases), late)

    random = [*random_calls(seed), *random_branches(seed)]
    return [
        group("examples", 5, examples(), "the examples of the statement", "题目里的例子"),
        group("chain", 10, chain(), "a key knows the whole prefix", "键要概括整个前缀"),
        group("adapter", 10, adapter(), "adapters are kept apart", "适配器之间隔离"),
        group("distinct", 10, distinct(), "different tokens, different keys", "token 不同，键就不同"),
        group("last_token", 5, last_token(), "the last token is left to compute", "最后一个 token 总要算"),
        group("full_blocks", 5, full_blocks(), "only full blocks are cached", "只缓存装满的块"),
        group("queue", 10, queue(), "the free queue and its order", "空闲队列和它的顺序"),
        group("shortage", 10, shortage(), "too few blocks: None, and nothing changed", "块不够：返回 None，什么都不变"),
        group("reuse", 10, reuse(), "a block that is taken loses its key", "被取走的块失去它的键"),
        group("copies", 5, copies(), "copies of a registered block", "已登记的块的副本"),
        group("objects", 5, objects(), "each object has a state of its own", "每个对象有自己的状态"),
        group("random", 5, random, "random calls", "随机的调用序列", late=True),
        group("large_pool", 5, [large_pool(seed)], "a large pool costs no time", "块池再大，也不费时间"),
        group(
            "long_prompt",
            5,
            [long_prompt(seed)],
            "time grows no faster than the prompt",
            "时间不比提示词长得快",
        ),
    ]
