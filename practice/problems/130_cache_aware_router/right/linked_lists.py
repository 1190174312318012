# verdict: AC
"""Each index is a hand-made linked list under a dict."""

from hashlib import md5


class Entry:
    __slots__ = "key", "newer", "older"

    def __init__(self, key):
        self.key = key
        self.newer = self.older = None


class Index:
    def __init__(self, limit):
        self.limit = limit
        self.entries = {}
        self.newest = Entry(None)  # two ends that hold no block
        self.oldest = Entry(None)
        self.newest.older, self.oldest.newer = self.oldest, self.newest

    def renew(self, key):
        entry = self.entries.get(key)
        if entry is None:
            entry = self.entries[key] = Entry(key)
        else:
            self.unlink(entry)
        entry.newer, entry.older = self.newest, self.newest.older
        entry.older.newer = self.newest.older = entry
        if len(self.entries) > self.limit:
            last = self.oldest.newer
            self.unlink(last)
            del self.entries[last.key]

    def unlink(self, entry):
        entry.newer.older, entry.older.newer = entry.older, entry.newer


class CacheAwareRouter:
    def __init__(
        self, num_workers, *, block_size=16, match_threshold=0.5, balance_abs=32, balance_rel=1.1, index_blocks=4096
    ):
        self.options = block_size, match_threshold, balance_abs, balance_rel
        self.indexes = [Index(index_blocks) for _ in range(num_workers)]
        self.running = [0] * num_workers
        self.given = [0] * num_workers

    def route(self, tokens):
        size, threshold, absolute, relative = self.options
        digests, state = [], md5()
        for number, token in enumerate(tokens, 1):
            state.update(b"%d " % token)
            if number % size == 0:
                digests.append(state.digest())
        workers = sorted(range(len(self.running)), key=lambda worker: (self.running[worker], self.given[worker]))
        chosen = workers[0]
        top, bottom = self.running[workers[-1]], self.running[chosen]
        if not (top - bottom > absolute and top > relative * bottom):
            lengths = [self.length(worker, digests) for worker in workers]
            if max(lengths) * size / len(tokens) > threshold:
                chosen = workers[lengths.index(max(lengths))]
        for digest in reversed(digests):
            self.indexes[chosen].renew(digest)
        self.running[chosen] += 1
        self.given[chosen] += 1
        return chosen

    def length(self, worker, digests):
        known = self.indexes[worker].entries
        return next((number for number, digest in enumerate(digests) if digest not in known), len(digests))

    def finish(self, worker):
        self.running[worker] -= 1
