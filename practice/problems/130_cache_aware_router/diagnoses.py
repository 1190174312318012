"""The misconceptions that problem 130 knows: each belongs to solutions in wrong/, whose first lines name it."""

from __future__ import annotations

from practice.grader.contract import Diagnosis

STATEMENT = "practice/problems/130_cache_aware_router/statement"
CHAPTER = "notebooks/zh/07_routing.ipynb"  # in Chinese only, so that the statement explains the rules in English


def _because(zh_link: str, en_section: str, en: str, zh: str) -> Diagnosis:
    return Diagnosis({"en": en, "zh": zh}, {"zh": zh_link, "en": f"{STATEMENT}.en.md#{en_section}"})


RULES = f"{CHAPTER}#近似的索引，和两条规则"
LOAD, KEYS, BALANCE, THRESHOLD = (
    (f"{CHAPTER}#公共的部分：数排队数，平手怎么分", "load"),
    (f"{STATEMENT}.zh.md#键与匹配", "keys-and-match"),
    (RULES, "balance"),
    (RULES, "threshold"),
)
TIES, INDEX, TIME = (f"{CHAPTER}#实验五：平手归谁", "ties"), (RULES, "index"), (f"{STATEMENT}.zh.md#时间", "time")

DIAGNOSES = {
    # balance
    "balance_reached": _because(
        *BALANCE,
        "It looks as if a limit that is just reached counts as imbalance: both comparisons are strict.",
        "看起来刚好达到界限也算不均衡：两个比较都是严格大于。",
    ),
    "either_condition": _because(
        *BALANCE,
        "It looks as if one of the two conditions is enough for imbalance: both must hold.",
        "看起来两个条件满足一个就算不均衡：要两个都满足。",
    ),
    "one_condition": _because(
        *BALANCE,
        "It looks as if only one of the two conditions is tested: difference and factor must both be too large.",
        "看起来只检查了两个条件中的一个：差和倍数都要过大才算。",
    ),
    "quotient": _because(
        *BALANCE,
        "It looks as if an idle worker is a special case, or the loads are divided: compare the product, as written, "
        "with 0, too.",
        "看起来把空闲的实例当成了特例，或者把两个负载相除了：请照题目写的比较乘积，负载为 0 时也一样。",
    ),
    "compared_with_mean": _because(
        *BALANCE,
        "It looks as if the largest load is compared with the mean: it is compared with the smallest.",
        "看起来最大负载是和平均值比的：应当和最小负载比。",
    ),
    "totals_for_loads": _because(
        *LOAD,
        "It looks as if requests that have ended still weigh: the load counts those that are running.",
        "看起来已经结束的请求还参与比较：负载只算正在运行的。",
    ),
    "cache_before_balance": _because(
        *BALANCE,
        "It looks as if a long match wins over imbalance: the balance is looked at first.",
        "看起来匹配够长就不管均衡了：应当先看是否均衡。",
    ),
    "balance_among_best": _because(
        *BALANCE,
        "It looks as if an imbalance is answered among the best matches: then the least loaded worker of ALL is due.",
        "看起来不均衡时只在匹配最好的实例里选：应当在所有实例里选负载最低的。",
    ),
    "load_too_early": _because(
        *LOAD,
        "It looks as if the request is counted before the worker is chosen: its load grows afterwards.",
        "看起来还没选好实例，就把这个请求算进了负载：选定之后才加一。",
    ),
    # threshold
    "threshold_reached": _because(
        *THRESHOLD,
        "It looks as if a match of exactly the threshold is enough: the comparison is strict.",
        "看起来匹配刚好等于阈值就够了：比较是严格大于。",
    ),
    "share_of_full_blocks": _because(
        *THRESHOLD,
        "It looks as if the match is measured against the full blocks: the tail of the prompt counts in its length.",
        "看起来匹配是和装满的块比的：提示词的尾巴也算在长度里。",
    ),
    "blocks_for_tokens": _because(
        *THRESHOLD,
        "It looks as if a match in blocks is compared with a length in tokens: multiply by block_size.",
        "看起来拿块数和 token 数相比：匹配要乘以 block_size。",
    ),
    "any_match": _because(
        *THRESHOLD,
        "It looks as if any match is enough: a first block that all prompts share would draw everything to one worker.",
        "看起来只要有匹配就够了：大家共有的第一块会把所有请求引到同一个实例。",
    ),
    "last_block_left_out": _because(
        *KEYS,
        "It looks as if the last token is left out, as in a cache: a router matches all full blocks.",
        "看起来像缓存那样留出了最后一个 token：路由器匹配所有装满的块。",
    ),
    # ties
    "ties_by_number": _because(
        *TIES,
        "It looks as if ties go to the smallest number at once: the fewest requests so far come first.",
        "看起来平局直接给了编号最小的实例：应当先看谁到目前为止分到的请求最少。",
    ),
    "fewest_requests_first": _because(
        *TIES,
        "It looks as if the requests so far come before the load: they only decide ties.",
        "看起来先比了分到过的请求数，再比负载：它只用来决定平局。",
    ),
    "first_best_match": _because(
        *TIES,
        "It looks as if the first of several best matches is taken: among them the least loaded is due.",
        "看起来在几个最长匹配里取了第一个：应当取其中负载最低的。",
    ),
    "not_the_best_match": _because(
        *THRESHOLD,
        "It looks as if every match above the threshold is good enough: only workers with the best match are asked.",
        "看起来超过阈值的匹配都算数：只有匹配最长的实例才参加挑选。",
    ),
    # keys
    "no_parent": _because(
        *KEYS,
        "It looks as if the key does not include the parent: the same tokens after another prefix matched.",
        "看起来键里没有父块：token 相同、前文不同的块也算匹配了。",
    ),
    "one_block_back": _because(
        *KEYS,
        "It looks as if the key looks one block back only: the parent's own key must go in, not the parent's tokens.",
        "看起来键只往回看了一块：要放进去的是父块的键，而不只是父块的 token。",
    ),
    "python_hash": _because(
        *KEYS,
        "It looks as if Python's `hash` is the key: it takes ints modulo 2**61 - 1, so different tokens collide.",
        "看起来用 Python 的 `hash` 作键：它对整数取模 2**61 - 1，不同的 token 会相撞。",
    ),
    "tokens_cut": _because(
        *KEYS,
        "It looks as if only the last bits of a token go into the key.",
        "看起来只有 token 的末几位进了键。",
    ),
    "joined_digits": _because(
        *KEYS,
        "It looks as if numbers are joined, and where one ends is lost: 1, 23 and 12, 3 become the same.",
        "看起来数连在一起，分不清一个数到哪里为止：1、23 和 12、3 变成了同一串。",
    ),
    "weak_hash": _because(
        *KEYS,
        "It looks as if the key is a checksum, or too short: different prefixes have the same key.",
        "看起来键是校验和，或者太短：不同的前缀得到了同样的键。",
    ),
    "order_lost": _because(
        *KEYS,
        "It looks as if the order of the tokens in a block is lost in the key.",
        "看起来块内 token 的顺序在键里丢了。",
    ),
    "half_a_block": _because(
        *KEYS,
        "It looks as if a block that is not full is indexed too: only full blocks are.",
        "看起来没装满的块也进了索引：只有装满的块才进。",
    ),
    # insertion
    "not_written_on_imbalance": _because(
        *INDEX,
        "It looks as if what was sent for the sake of balance is not written down: the index learns on every path.",
        "看起来为了均衡而派出的请求没有记入索引：每条路径都要记。",
    ),
    "strangers_not_written": _because(
        *INDEX,
        "It looks as if only what followed a match is written down: then no prefix ever becomes known.",
        "看起来只有因匹配而派出的请求才记入索引：这样没有任何前缀会变成已知的。",
    ),
    "known_not_extended": _because(
        *INDEX,
        "It looks as if the new blocks after a match are not written down: every full block of the request is.",
        "看起来匹配之后的新块没有记入索引：请求的每个装满的块都要记。",
    ),
    "written_everywhere": _because(
        *INDEX,
        "It looks as if all workers' indexes learn a request: only the chosen worker's does.",
        "看起来所有实例的索引都记下了这个请求：只有被选中的实例才记。",
    ),
    # recency
    "lookup_renews": _because(
        *INDEX,
        "It looks as if blocks become recent where the request was not sent: looking up renews nothing, nor does what "
        "another worker gets.",
        "看起来请求没有派到的实例，索引里的块也变新了：查找不刷新，派给别的实例也不刷新。",
    ),
    "first_to_last": _because(
        *INDEX,
        "It looks as if blocks are renewed from the first to the last: then a parent is forgotten before its child.",
        "看起来块是从前往后刷新的：这样父块会比子块先被忘掉。",
    ),
    "not_renewed": _because(
        *INDEX,
        "It looks as if a known block keeps its age: every block of the request becomes recent, known or new.",
        "看起来已知的块没有变新：请求的每个块，不论新旧，都要变成最近使用的。",
    ),
    "known_then_new": _because(
        *INDEX,
        "It looks as if known and new blocks are renewed in two passes: it is one, from the last block to the first.",
        "看起来已知的块和新块分两遍刷新：应当只有一遍，从最后一块到第一块。",
    ),
    "never_forgets": _because(
        *INDEX,
        "It looks as if the index forgets nothing: after each request at most index_blocks remain.",
        "看起来索引什么都不忘：每个请求之后，最多留下 index_blocks 块。",
    ),
    "limit_missed": _because(
        *INDEX,
        "It looks as if the index does not hold exactly what it may: after each request the oldest go until "
        "index_blocks remain.",
        "看起来索引留下的块数不对：每个请求之后，最旧的块离开，直到剩下 index_blocks 块。",
    ),
    "one_index_for_all": _because(
        *INDEX,
        "It looks as if index_blocks limits all workers together: each worker's index has that room.",
        "看起来所有实例合用 index_blocks 这个上限：每个实例的索引各有这么多。",
    ),
    # load
    "finish_ignored": _because(
        *LOAD,
        "It looks as if a request that has ended goes on weighing: finish takes one off the load.",
        "看起来请求结束之后仍占着负载：finish 要让负载减一。",
    ),
    "load_never_counted": _because(
        *LOAD,
        "It looks as if a request that was sent does not weigh: the load grows by one until it is finished.",
        "看起来派出的请求没有算进负载：在它结束之前，负载要加一。",
    ),
    # objects
    "shared_state": _because(
        f"{STATEMENT}.zh.md#说明",
        "notes",
        "It looks as if the state belongs to the class or the module, not to the object: a second object changes it.",
        "看起来状态属于类或模块，而不属于对象：再创建一个对象，前一个的状态就变了。",
    ),
    # time
    "hashes_whole_prefix": _because(
        *TIME,
        "It looks as if every key is made from the whole prefix anew: made from the parent's key, it costs one block.",
        "看起来每个键都从头算一遍整个前缀：用父块的键来算，只需要看一块。",
    ),
    "hashes_for_each_worker": _because(
        *TIME,
        "It looks as if the tokens are hashed anew for each worker: once a request is enough.",
        "看起来每个实例都把 token 重新哈希了一遍：每个请求哈希一次就够了。",
    ),
    "searches_index": _because(
        *TIME,
        "It looks as if an index is searched, sorted or made anew: finding, renewing, forgetting a block are O(1).",
        "看起来把整个索引找了一遍、排了序或者重做了：查找、刷新、忘掉一块，都应当是 O(1)。",
    ),
}
