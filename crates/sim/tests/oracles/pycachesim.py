"""Loads through pycachesim: its counts for each level, as JSON.

Usage: pycachesim.py LEVELS FILE. LEVELS is JSON, innermost first: [[sets, ways, line bytes], ...];
FILE holds one load a line, `<hex address> <bytes>`.
"""

import json
import sys

from cachesim import Cache, CacheSimulator, MainMemory


def main():
    levels = json.loads(sys.argv[1])
    memory = MainMemory()
    outer = None
    caches = []
    for number, (sets, ways, line) in reversed(list(enumerate(levels))):
        cache = Cache(f"L{number + 1}", sets, ways, line, "LRU", load_from=outer, store_to=outer)
        if outer is None:
            memory.load_to(cache)
            memory.store_from(cache)
        outer = cache
        caches.insert(0, cache)
    simulator = CacheSimulator(outer, memory)
    with open(sys.argv[2]) as loads:
        for load in loads:
            address, size = load.split()
            simulator.load(int(address, 16), int(size))
    counts = [cache.stats() for cache in caches]
    print(json.dumps([[c["LOAD_count"], c["HIT_count"], c["MISS_count"]] for c in counts]))


main()
