"""The machine that is asked for: its nodes, how far they are apart, and the options that have QEMU make it."""

import dataclasses
import json
import re

# As ACPI counts, where 10 is a node's own memory. Nodes lie in a ring.
OWN, NEIGHBOUR, FAR, SLOW = 10, 16, 22, 42

MEBIBYTE = 1 << 20
UNITS = {"": MEBIBYTE, "K": 1 << 10, "M": MEBIBYTE, "G": 1 << 30}

# QEMU's ACPI tables number cpus in a byte, and the kernel takes no node that is smaller.
CPUS_MAX = 255
SMALLEST_NODE = 4 * MEBIBYTE


class Refused(Exception):
    """What was asked for cannot be had; the text says what, and what to do."""


def size(text):
    """Bytes of `256M` or `1GiB`; a number without a unit is MiB."""
    found = re.fullmatch(r"([0-9]+)([KMG]?)(?:i?B)?", text)
    if not found or not int(found[1]):
        raise ValueError(f"`{text}` is no size: `256M`, `1G`, or a number of MiB")
    return int(found[1]) * UNITS[found[2]]


@dataclasses.dataclass(frozen=True)
class Machine:
    nodes: int
    cpus_per_node: int
    memory_per_node: int  # bytes
    slow_node: bool

    def __post_init__(self):
        if self.cpus > CPUS_MAX:
            raise Refused(f"{self.cpus} cpus are too many: a guest has {CPUS_MAX} at most")
        if self.memory_per_node < SMALLEST_NODE or self.memory_per_node % MEBIBYTE:
            raise Refused(f"a node's memory is a whole number of MiB, {SMALLEST_NODE // MEBIBYTE} at least")

    @property
    def cpus(self):
        return self.nodes * self.cpus_per_node

    @property
    def all_nodes(self):
        return self.nodes + int(self.slow_node)

    def distance(self, a, b):
        if a == b:
            return OWN
        if max(a, b) >= self.nodes:
            return SLOW
        return NEIGHBOUR if abs(a - b) in (1, self.nodes - 1) else FAR

    def description(self):
        """What programs in the guest are told of it: the machine as it should be, in JSON."""
        cpus = [list(range(n * self.cpus_per_node, (n + 1) * self.cpus_per_node)) for n in range(self.nodes)]
        return json.dumps(
            {
                "cpus": cpus + [[]] * int(self.slow_node),
                "distances": [[self.distance(a, b) for b in range(self.all_nodes)] for a in range(self.all_nodes)],
                "memory_per_node": self.memory_per_node,
            }
        )

    def options(self):
        """QEMU's options. Each node is a socket, so that no cache serves two."""
        yield from ("-machine", f"q35,hmat={'on' if self.slow_node else 'off'}")
        yield from ("-smp", f"cpus={self.cpus},sockets={self.nodes},cores={self.cpus_per_node},threads=1")
        yield from ("-m", f"{self.all_nodes * self.memory_per_node // MEBIBYTE}M")
        for node in range(self.all_nodes):
            yield from ("-object", f"memory-backend-ram,id=m{node},size={self.memory_per_node}")
            first = node * self.cpus_per_node
            whose = f"cpus={first}-{first + self.cpus_per_node - 1}" if node < self.nodes else "initiator=0"
            yield from ("-numa", f"node,nodeid={node},memdev=m{node},{whose}")
        for a in range(self.all_nodes):
            for b in range(self.all_nodes):
                yield from ("-numa", f"dist,src={a},dst={b},val={self.distance(a, b)}")
        if self.slow_node:
            yield from self.speeds()

    def speeds(self):
        """Latency and bandwidth from each node with cpus to each node (ACPI's HMAT): 100 ns and 10 GiB/s for a node's own."""
        for a in range(self.nodes):
            for b in range(self.all_nodes):
                place = f"hmat-lb,initiator={a},target={b},hierarchy=memory"
                far = self.distance(a, b)
                yield from ("-numa", f"{place},data-type=access-latency,latency={10 * far}")
                yield from ("-numa", f"{place},data-type=access-bandwidth,bandwidth={10 * 1024 * OWN // far}M")
