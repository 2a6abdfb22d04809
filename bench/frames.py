"""What frames of chosen colors cost: Ding11's figure 13, and recoloring memory that is in use."""

import contextlib
import json
import os
import pathlib
import subprocess
import tempfile
import time

from measure import Failed, run

# 64 colors of 64 KiB, as the paper's machine has. Whether they mean anything to the caches here does not matter:
# frames with given bits are as hard to get.
ENVIRONMENT = {**os.environ, "DOMICILE_COLORS": "force:12:6:65536"}
# One color of 64 has to serve 32 MiB, and again while what was handed out comes back.
STOCK = "4G"
WAYS = ("without daemon", "with daemon", "with daemon, untouched")


@contextlib.contextmanager
def daemon(domicile):
    """The socket of a daemon that has 32 MiB of each color, or as much as it got in half a minute."""
    with tempfile.TemporaryDirectory() as folder:
        socket, log = os.path.join(folder, "daemon.sock"), pathlib.Path(folder, "log")
        command = [domicile, "daemon", "--socket", socket, "--stock", STOCK, "--quota", "64G"]
        with log.open("w") as said:
            process = subprocess.Popen(command, env=ENVIRONMENT, stdout=said, stderr=said)
        try:
            for _ in range(30):
                time.sleep(1)
                if process.poll() is not None:
                    raise Failed(log.read_text().strip())
                if least_of_a_color(domicile, socket) >= 32 << 20:
                    break
            yield socket
        finally:
            process.terminate()
            process.wait()


def least_of_a_color(domicile, socket):
    status = run([domicile, "daemon", "status", "--socket", socket, "--json"])["output"]
    return 4096 * min(json.loads(status)["frames"]["by_color"])


def slot_cost(domicile, rounds):
    """Rows and figures of figure 13: milliseconds, and times what allocating and copying 32 MiB takes."""
    with daemon(domicile) as socket:
        command = [domicile, "reproduce", "ding11", "figure13", "--rounds", str(rounds), "--json"]
        lines = json.loads(run(command, env={**ENVIRONMENT, "DOMICILE_SOCKET": socket})["output"])
    took = {(line["row"], line["column"]): line["value"] for line in lines}
    plain = next(
        took["allocate", size] + took["copy", size] for row, size in took if row == "allocate"
    )
    rows = [["allocate and copy", "", f"{plain * 1e3:.1f}", "1.00"]]
    for (way, size), seconds in took.items():
        if way in WAYS:
            cells = ["-", "-"] if seconds is None else [f"{seconds * 1e3:.1f}", f"{seconds / plain:.2f}"]
            rows.append([way, size, *cells])
    return rows, {"lines": lines}


def in_use(release, seconds):
    """The table of the example: pages a second and waits while two threads write to what is recolored."""
    return run([release / "examples" / "recolor", str(seconds)])["output"]


def handed_over(release, rounds):
    """The table of the example: untouched pages from a daemon, each round beside page faults and a copy."""
    return run([release / "examples" / "handover", str(rounds), "3072"], env=ENVIRONMENT)["output"]
