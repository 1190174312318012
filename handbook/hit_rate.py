"""Hit rates: what the two caches of this course find again, on workloads of the field.

The idea: a workload is a list of prompts in the order in which they come, a simulation serves them one after another
on the real cache without a model, and what counts is tokens found. Each prompt is looked up without its last token,
which an engine always computes, counted whole, and inserted whole.

Invariants: with unlimited capacity, blocks of size B find exactly what the tree finds, rounded down to a multiple of B;
a bounded cache never holds more than its capacity.
Source: SGLang's paper (arXiv 2312.07104) measures its tree on workloads of these kinds, agents among them.
"""

# Woven from notebooks/zh/05_hit_rates.ipynb by make build: edit it there.

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import zip_longest
from random import Random

from handbook.prefix_cache import PrefixCachingBlockPool
from handbook.radix_tree import RadixCache

Prompt = list[int]


def tokens(random: Random, n: int) -> Prompt:
    """n token ids that occur nowhere else, as good as certainly."""
    return [random.randrange(1000, 50_000) for _ in range(n)]


def shared_system_prompt(random: Random) -> list[Prompt]:
    """100 questions of 20 to 200 tokens behind one system prompt of 1,000."""
    system = tokens(random, 1000)
    return [system + tokens(random, random.randint(20, 200)) for _ in range(100)]


def multi_turn(random: Random) -> list[Prompt]:
    """20 conversations one after another, each of 8 turns behind 300 tokens: every turn sends all that was said."""
    prompts = []
    for _ in range(20):
        history = tokens(random, 300)
        for _ in range(8):
            history = history + tokens(random, random.randint(10, 60))  # the user
            prompts.append(history)
            history = history + tokens(random, random.randint(50, 300))  # the answer
    return prompts


def few_shot(random: Random) -> list[Prompt]:
    """100 questions behind a header and the first two to five of five examples."""
    examples = [tokens(random, random.randint(100, 200)) for _ in range(5)]
    header = tokens(random, 37)
    prompts = []
    for _ in range(100):
        shown = examples[: random.randint(2, 5)]
        prompts.append(sum(shown, header) + tokens(random, random.randint(20, 80)))
    return prompts


def parallel_sampling(random: Random) -> list[Prompt]:
    """30 problems, each sent 8 times: to the cache, the same prompt with another last token."""
    prompts = []
    for _ in range(30):
        problem = tokens(random, random.randint(80, 400))
        prompts += [problem + tokens(random, 1) for _ in range(8)]
    return prompts


def workloads(seed: int = 0) -> dict[str, list[Prompt]]:
    """The four by name, drawn one after another from one source."""
    random = Random(seed)
    return {
        "shared system prompt": shared_system_prompt(random),
        "multi-turn": multi_turn(random),
        "few-shot": few_shot(random),
        "parallel sampling": parallel_sampling(random),
    }


def tree_hits(prompts: Iterable[Prompt], capacity: int | None = None) -> list[int]:
    """Tokens that a radix tree of `capacity` tokens (None: unlimited) finds of each prompt."""
    tree, hits = RadixCache(), []
    for prompt in prompts:
        found, node = tree.match_prefix(prompt[:-1])
        tree.inc_lock_ref(node)
        if capacity is not None:
            check_fits(len(prompt), capacity)
            tree.evict(max(0, tree.total_size() + len(prompt) - len(found) - capacity))
        tree.insert(prompt, range(len(prompt)))
        tree.dec_lock_ref(node)
        hits.append(len(found))
    return hits


def block_hits(prompts: Sequence[Prompt], block_size: int, capacity: int | None = None) -> list[int]:
    """Tokens that a pool of hash blocks for `capacity` tokens (None: unlimited) finds of each prompt."""
    if block_size < 1:
        raise ValueError(f"a block holds at least one token; got block_size {block_size}.")
    tables = [-(-len(prompt) // block_size) for prompt in prompts]  # in blocks; the last one may stay half empty
    pool = PrefixCachingBlockPool(max(1, sum(tables) if capacity is None else capacity // block_size), block_size)
    hits = []
    for prompt, num_blocks in zip(prompts, tables, strict=True):
        check_fits(num_blocks * block_size, pool.num_blocks * block_size)
        hashes = pool.block_hashes(prompt)
        found = pool.lookup(prompt[:-1], hashes)
        pool.touch(found)
        new = pool.allocate(num_blocks - len(found)) or []
        pool.free(pool.cache_blocks(prompt, found + new, len(prompt), hashes))
        hits.append(len(found) * block_size)
    return hits


def check_fits(num_tokens: int, capacity: int) -> None:
    """ValueError if a prompt is larger than the whole cache, which must hold it while it is served."""
    if num_tokens > capacity:
        raise ValueError(f"a prompt takes {num_tokens} tokens of the cache, which has {capacity}: give it more.")


def hit_rate(hits: Sequence[int], prompts: Sequence[Prompt]) -> float:
    """Tokens found, of all tokens."""
    return sum(hits) / sum(map(len, prompts))


def loss_per_shared_prefix(prompts: Sequence[Prompt], block_size: int) -> float:
    """Tokens that the tree finds and blocks of this size do not, on average over the prompts that share anything.

    Where shared prefixes end anywhere, that is half a block: (block_size - 1) / 2.
    """
    pairs = zip(tree_hits(prompts), block_hits(prompts, block_size), strict=True)
    losses = [by_tree - by_blocks for by_tree, by_blocks in pairs if by_tree > 0]
    if not losses:
        raise ValueError("these prompts share no prefixes, so there is nothing that blocks could lose.")
    return sum(losses) / len(losses)


def agent(random: Random, tools: Prompt, num_turns: int = 20) -> list[Prompt]:
    """An agent's requests: behind the description of its tools and a task, the context grows by call and result."""
    context = tools + tokens(random, random.randint(50, 200))  # the task
    prompts = []
    for _ in range(num_turns):
        prompts.append(context)
        context = context + tokens(random, random.randint(30, 100))  # the model calls a tool
        context = context + tokens(random, random.randint(50, 500))  # what the tool returns
    return prompts


def agents(num_agents: int, num_turns: int = 20, seed: int = 0) -> list[list[Prompt]]:
    """Several agents with the same 1,000 tokens of tools, each with its own task."""
    random = Random(seed)
    tools = tokens(random, 1000)
    return [agent(random, tools, num_turns) for _ in range(num_agents)]


def interleaved(sessions: Iterable[Sequence[Prompt]]) -> list[Prompt]:
    """One prompt of each session in turn, until all have ended."""
    return [prompt for turn in zip_longest(*sessions) for prompt in turn if prompt is not None]


def questions_about_documents(
    num_documents: int, document_tokens: int, num_questions: int, seed: int = 0
) -> list[Prompt]:
    """Questions of 20 to 80 tokens, each behind one of several long documents, drawn at random."""
    random = Random(seed)
    documents = [tokens(random, document_tokens) for _ in range(num_documents)]
    return [random.choice(documents) + tokens(random, random.randint(20, 80)) for _ in range(num_questions)]


def block_ids(prompts: Iterable[Prompt], block_size: int) -> list[list[bytes]]:
    """Each prompt as the ids of its full blocks, equal id meaning equal whole prefix: what `handbook.capacity` asks."""
    pool = PrefixCachingBlockPool(1, block_size)
    return [pool.block_hashes(prompt) for prompt in prompts]
