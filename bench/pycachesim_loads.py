"""Loads through pycachesim, for its speed: the caches of plain_loop.c, all references as loads.

Usage: pycachesim_loads.py RAW COUNT
"""

import array
import json
import sys

from cachesim import Cache, CacheSimulator, MainMemory


def main():
    memory = MainMemory()
    l2 = Cache("L2", 1024, 16, 64, "LRU")
    memory.load_to(l2)
    memory.store_from(l2)
    l1 = Cache("L1", 64, 8, 64, "LRU", load_from=l2, store_to=l2)
    simulator = CacheSimulator(l1, memory)
    left = int(sys.argv[2])
    with open(sys.argv[1], "rb") as raw:
        while left > 0:
            words = array.array("Q")
            words.frombytes(raw.read(8 * min(left, 1 << 16)))
            if not words:
                break
            left -= len(words)
            # Bit 0 stays: it is within the line.
            simulator.load(words, length=1)
    print(json.dumps({"references": l1.stats()["LOAD_count"], "misses": [c.stats()["MISS_count"] for c in (l1, l2)]}))


main()
