"""The files of a guest: busybox, a program, its libraries, and what else was asked for, as one archive that the kernel unpacks."""

import os
import pathlib
import re
import shutil
import subprocess

from machine import Refused

FOLDERS = ["bin", "dev", "etc", "proc", "root", "run", "sys", "tmp", "var/tmp"]
# When all files were written, in seconds: 2026 begins.
DATE = 1767225600
# Programs look up who they are.
ETC = {
    "etc/passwd": "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n",
    "etc/group": "root:x:0:\nnogroup:x:65534:\n",
    "etc/hostname": "guest\n",
}


def libraries(file):
    """The shared libraries that a file needs, its loader among them; none where it is no dynamic program."""
    said = subprocess.run(["ldd", file], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    lacking = re.findall(r"^\s*(\S+) => not found", said.stdout, re.M)
    if lacking:
        raise Refused(f"{file} needs {', '.join(lacking)}, which this machine lacks")
    return re.findall(r"^\s*(?:\S+ => )?(/\S+) \(0x", said.stdout, re.M) if said.returncode == 0 else []


class Files:
    """A folder that becomes the guest's root."""

    def __init__(self, root):
        self.root = pathlib.Path(root)
        for folder in FOLDERS:
            (self.root / folder).mkdir(parents=True)
        for folder in ("tmp", "var/tmp"):
            (self.root / folder).chmod(0o1777)
        for place, text in ETC.items():
            self.write(place, text)
        busybox = shutil.which("busybox")
        if busybox is None:
            raise Refused("busybox is not installed; setup/debian numa installs it")
        if libraries(busybox):
            raise Refused(f"{busybox} is not static; setup/debian numa installs one that is")
        shutil.copy(busybox, self.root / "bin/busybox")
        commands = subprocess.run([busybox, "--list"], check=True, stdout=subprocess.PIPE, text=True).stdout.split()
        self.commands = set(commands) - {"busybox"}
        for command in self.commands:
            (self.root / "bin" / command).symlink_to("busybox")

    def inside(self, place):
        if not place.startswith("/") or ".." in place.split("/"):
            raise Refused(f"`{place}` is no place in the guest; it is a path from /, without `..`")
        return self.root / place.lstrip("/")

    def write(self, place, content, mode=0o644):
        path = self.root / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        path.chmod(mode)

    def put(self, file, place):
        """Copies a file or a folder to its place, and the libraries of what is a program to where they are on this machine."""
        path = self.inside(place)
        if path.is_dir() and not os.path.isdir(file):
            raise Refused(f"`{place}` is a folder in the guest; --file {file}:{place}/{os.path.basename(file)} puts the file into it")
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            if os.path.isdir(file):
                shutil.copytree(file, path, dirs_exist_ok=True)
                return
            path.unlink(missing_ok=True)
            shutil.copy(file, path)
        except (OSError, shutil.Error) as error:
            raise Refused(f"{file} cannot be copied: {error}") from error
        for library in libraries(file):
            if not self.inside(library).exists():
                self.put(library, library)

    def pack(self, archive):
        """The kernel unpacks it as it is: compressing it would take the guest longer than reading it. The same files give the same bytes."""
        with open(archive, "wb") as out:
            found = subprocess.run(["find", ".", "-print0"], cwd=self.root, check=True, stdout=subprocess.PIPE).stdout
            paths = sorted(path for path in found.split(b"\0") if path)
            for path in paths:
                os.utime(os.path.join(os.fsencode(self.root), path), (DATE, DATE), follow_symlinks=False)
            names = b"\0".join(paths) + b"\0"
            cpio = ["cpio", "--null", "--create", "--format=newc", "--quiet", "--reproducible", "--owner=+0:+0"]
            subprocess.run(cpio, cwd=self.root, check=True, input=names, stdout=out)
