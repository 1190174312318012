"""The misconceptions that problem 131 knows: each belongs to solutions in wrong/, whose first lines name it."""

from __future__ import annotations

from practice.grader.contract import Diagnosis

CHAPTER = "notebooks/zh/03_hash_blocks.ipynb"  # in Chinese; in English the statement explains it
STATEMENT = "practice/problems/131_lora_prefix_cache/statement.en.md"


def _because(heading: str, section: str, en: str, zh: str) -> Diagnosis:
    return Diagnosis({"en": en, "zh": zh}, {"zh": f"{CHAPTER}#{heading}", "en": f"{STATEMENT}#{section}"})


CHAIN, FIRST, SECOND = "链式哈希", "第一幕：装满、登记", "第二幕：结束、排队"
FOURTH, FIFTH, LAST = "第四幕：取走", "第五幕：淘汰", "接进调度器，以及最后一个-token-的规则"
NO_PARENT, PYTHON_HASH = "没有父哈希：用别的租户的名字说话", "Python-的-hash：故意造得出来的碰撞"
DEFENCE = "哈希在防什么"

DIAGNOSES = {
    # the key
    "no_parent": _because(
        NO_PARENT,
        "keys",
        "It looks as if the key does not include the parent: a block with the same tokens after another prefix was "
        "taken for a hit.",
        "看起来键里没有父块：token 相同、前文不同的块被当成了命中。",
    ),
    "one_block_back": _because(
        CHAIN,
        "keys",
        "It looks as if the key looks one block back only: the parent's own key must go in, not the parent's tokens.",
        "看起来键只往回看了一块：要放进去的是父块的键，而不只是父块的 token。",
    ),
    "no_adapter": _because(
        DEFENCE,
        "keys",
        "It looks as if the adapter is not in the key: what one adapter computed was a hit for another.",
        "看起来键里没有适配器：一个适配器算出的块，被另一个命中了。",
    ),
    "zero_is_none": _because(
        DEFENCE,
        "keys",
        "It looks as if adapter 0 is taken for the base model: 0 is false in Python, as None is. Test `is None`.",
        "看起来适配器 0 被当成了基础模型：在 Python 里 0 和 None 都为假，请用 `is None` 判断。",
    ),
    "adapter_as_token": _because(
        CHAIN,
        "keys",
        "It looks as if the adapter stands among the tokens: then some prompt of the base model has the same key.",
        "看起来适配器和 token 混在一起：这样总有一个基础模型的提示词会得到相同的键。",
    ),
    "adapter_in_first_block": _because(
        NO_PARENT,
        "keys",
        "It looks as if only the first block's key knows the adapter, and the later keys do not hang on the first.",
        "看起来只有第一块的键里有适配器，后面的键又没有和它连成链。",
    ),
    "python_hash": _because(
        PYTHON_HASH,
        "keys",
        "It looks as if Python's `hash` is the key: it takes ints modulo 2**61 - 1, so different tokens collide.",
        "看起来用 Python 的 `hash` 作键：它对整数取模 2**61 - 1，不同的 token 会相撞。",
    ),
    "tokens_cut": _because(
        CHAIN,
        "keys",
        "It looks as if only the last bits of a token go into the key: tokens may be as large as 2**63 - 1.",
        "看起来只有 token 的末几位进了键：token 可以大到 2**63 - 1。",
    ),
    "joined_digits": _because(
        CHAIN,
        "keys",
        "It looks as if numbers are joined, and where one ends is lost: 1, 23 and 12, 3 become the same.",
        "看起来数连在一起，分不清一个数到哪里为止：1、23 和 12、3 变成了同一串。",
    ),
    "weak_hash": _because(
        DEFENCE,
        "keys",
        "It looks as if the key is a checksum, or too short: different prefixes collide, and nobody compares the "
        "tokens.",
        "看起来键是校验和，或者太短：不同的前缀会相撞，而命中之后没有人再核对 token。",
    ),
    "order_lost": _because(
        CHAIN,
        "keys",
        "It looks as if the order of the tokens in a block, or their number, is lost in the key.",
        "看起来块内 token 的顺序或个数在键里丢了。",
    ),
    # hits
    "last_token": _because(
        LAST,
        "hits",
        "It looks as if a prompt may be a hit as a whole: at least the last token is left to compute.",
        "看起来整个提示词都可以命中：至少要留下最后一个 token 来计算。",
    ),
    "unaligned": _because(
        LAST,
        "hits",
        "It looks as if one token was taken off the number while its block stayed a hit: hits are whole blocks.",
        "看起来只从命中数里减去了一个 token，那一块却仍算命中：命中以整块为单位。",
    ),
    "too_careful": _because(
        LAST,
        "hits",
        "It looks as if too much is left to compute: (len(tokens) - 1) // block_size blocks may be hits.",
        "看起来留下来计算的太多了：最多可以命中 (len(tokens) - 1) // block_size 块。",
    ),
    "blocks_for_tokens": _because(
        LAST,
        "hits",
        "It looks as if the hits are returned in blocks: they are counted in tokens.",
        "看起来返回的命中数以块为单位：应当以 token 为单位。",
    ),
    # the queue and the counts
    "first_block_first": _because(
        SECOND,
        "freeing",
        "It looks as if a table is freed from its first block on: then a parent is forgotten before its child.",
        "看起来块表是从第一块开始归还的：这样父块会比子块先被淘汰。",
    ),
    "last_in_first_out": _because(
        SECOND,
        "freeing",
        "It looks as if the block that was freed last is reused first: freed blocks join the tail, and the head goes.",
        "看起来最后归还的块最先被重用：归还的块排到队尾，取块从队首取。",
    ),
    "wrong_end": _because(
        SECOND,
        "new-blocks",
        "It looks as if blocks come from the wrong end of the queue: it starts as 0, 1, 2, ..., and its head goes "
        "first.",
        "看起来块是从队列的另一头取的：队列一开始是 0、1、2、……，取块从队首取。",
    ),
    "keyless_to_head": _because(
        SECOND,
        "freeing",
        "It looks as if blocks without a key jump the queue, as they do in vLLM: here every block joins the tail.",
        "看起来没有键的块插了队，像 vLLM 那样：在这道题里，每个块都排到队尾。",
    ),
    "smallest_number": _because(
        SECOND,
        "new-blocks",
        "It looks as if a free block is taken by its number, as from a heap or a set: the one that has waited longest "
        "is due.",
        "看起来是按编号取空闲块的，像从堆或集合里取：应当取等得最久的那一块。",
    ),
    "hit_stays_queued": _because(
        FOURTH,
        "hits",
        "It looks as if a hit stays in the free queue: then it is given to somebody else while it is in use.",
        "看起来命中的块还留在空闲队列里：它会在使用中被发给别人。",
    ),
    "hit_keeps_its_place": _because(
        SECOND,
        "freeing",
        "It looks as if a block that was hit comes back to its old place in the queue: it joins the tail anew.",
        "看起来命中过的块归还时回到了队列里的老位置：它应当重新排到队尾。",
    ),
    "hit_not_counted": _because(
        FOURTH,
        "hits",
        "It looks as if a hit does not add one to the count: whoever frees first frees the block of the others.",
        "看起来命中没有让引用计数加一：谁先归还，谁就把别人还在用的块放走了。",
    ),
    # refusals
    "hits_are_available": _because(
        LAST,
        "new-blocks",
        "It looks as if hits that lie in the free queue are counted as blocks to give out: they leave it first.",
        "看起来躺在空闲队列里的命中块被算成了可以发出去的块：它们会先离开队列。",
    ),
    "held_hits_subtracted": _because(
        LAST,
        "new-blocks",
        "It looks as if all hits are taken off the free blocks: one that somebody holds does not lie in the queue.",
        "看起来所有命中的块都从空闲块里扣掉了：有人持有的命中块本来就不在队列里。",
    ),
    "refusal_holds_hits": _because(
        FOURTH,
        "new-blocks",
        "It looks as if a refused call keeps its hits: count first, and change something only when it suffices.",
        "看起来被拒绝的请求仍占着命中的块：先算够不够，够了再动手。",
    ),
    "refusal_reorders": _because(
        LAST,
        "new-blocks",
        "It looks as if a refused call takes the hits and frees them again: that changes the order of the queue.",
        "看起来被拒绝的请求先占住命中块、再归还：队列的顺序因此变了。",
    ),
    "refusal_forgets": _because(
        LAST,
        "new-blocks",
        "It looks as if a refused call takes blocks before it gives up: their keys are lost.",
        "看起来被拒绝的请求在放弃之前已经取了块：它们的键丢了。",
    ),
    "refusal_registers": _because(
        LAST,
        "new-blocks",
        "It looks as if a refused call registers blocks: nothing may change.",
        "看起来被拒绝的请求也登记了块：什么都不该变。",
    ),
    "one_block_spare": _because(
        LAST,
        "new-blocks",
        "It looks as if the last free block is never given out: as many as are free may be taken.",
        "看起来最后一个空闲块永远发不出去：有几个空闲，就可以取几个。",
    ),
    # keys of blocks
    "stale_key": _because(
        FIFTH,
        "new-blocks",
        "It looks as if a block that is given out stays known under its old key: a later prompt hits foreign content.",
        "看起来块发出去以后，旧的键还指着它：后来的提示词会命中别人的内容。",
    ),
    "key_lost_when_freed": _because(
        SECOND,
        "freeing",
        "It looks as if a block loses its key when it is freed: until it is taken it can be hit.",
        "看起来块一归还就失去了键：它要到被取走时才失去，在那之前都可以命中。",
    ),
    "registers_before_taking": _because(
        FIFTH,
        "registration",
        "It looks as if keys are looked up before blocks are taken: the block taken may be the one that has the key.",
        "看起来先查键、后取块：取到的可能正是登记着这个键的那一块。",
    ),
    "registers_late": _because(
        FIRST,
        "registration",
        "It looks as if blocks are registered when they are freed: here full blocks are registered at once.",
        "看起来块在归还时才登记：在这道题里，装满的新块立刻登记。",
    ),
    "last_block_unregistered": _because(
        FIRST,
        "registration",
        "It looks as if the last block is never registered: when it is full, it is, though this prompt cannot hit it.",
        "看起来最后一块从不登记：只要装满了就要登记，尽管同样的提示词命中不了它。",
    ),
    "padded": _because(
        CHAIN,
        "keys",
        "It looks as if a block that is not full is filled up and registered: it is then taken for another, full one.",
        "看起来没装满的块被补齐后登记了：它会被当成另一个装满的块。",
    ),
    # copies
    "copy_takes_over": _because(
        FIRST,
        "registration",
        "It looks as if a later block takes the key over: a key that is registered keeps its block.",
        "看起来后来的块抢走了键：已经登记的键不换块。",
    ),
    "copy_deletes_key": _because(
        FIFTH,
        "registration",
        "It looks as if a copy that is taken deletes the key of the registered block: a copy has no key to lose.",
        "看起来副本被取走时，把登记着的那一块的键删掉了：副本没有键可丢。",
    ),
    "copy_promoted": _because(
        FIRST,
        "registration",
        "It looks as if a copy takes the place of the registered block when that is gone: here it stays without a key.",
        "看起来登记的块没了以后，副本顶了上来：在这道题里，副本始终没有键。",
    ),
    "copy_replaced": _because(
        FIRST,
        "registration",
        "It looks as if a block that was computed again is replaced by the registered one: the table keeps the copy.",
        "看起来重算的块被换成了登记着的那一块：副本要留在块表里。",
    ),
    # objects
    "shared_state": Diagnosis(
        {
            "en": "It looks as if the state belongs to the class or the module, not to the object: a second object "
            "changes it.",
            "zh": "看起来状态属于类或模块，而不属于对象：再创建一个对象，前一个的状态就变了。",
        },
        {"en": f"{STATEMENT}#notes", "zh": f"{STATEMENT.replace('.en.', '.zh.')}#说明"},
    ),
    # time
    "quadratic": _because(
        CHAIN,
        "time",
        "It looks as if each block of a long prompt takes time like the whole of it: a key needs the parent's key and "
        "one block, the rest need not be copied, and a block's own key can be remembered with it.",
        "看起来长提示词的每一块，都要花整个提示词那么多时间：算键只需要父块的键和这一块，剩下的部分不用复制，块自己的键可以记在块上。",
    ),
    "searches_pool": _because(
        FOURTH,
        "time",
        "It looks as if a call goes through the whole pool or copies it: taking a block out of the middle of a queue, "
        "too, can be O(1).",
        "看起来一次调用要把整个块池看一遍，或者复制一遍：从队列中间抽走一块，也应当是 O(1)。",
    ),
}
