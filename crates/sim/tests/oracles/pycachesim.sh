#!/bin/sh
# Installs pycachesim, the peer that the simulator's counts of loads are compared with, into a virtual
# environment of its own: target/oracles/pycachesim. `make test` calls this; a second call does nothing.
set -eu
root=$(cd "$(dirname "$0")/../../../.." && pwd)
venv=${1:-$root/target/oracles/pycachesim}
if "$venv/bin/python" -c 'import cachesim' 2>/dev/null; then
    exit 0
fi
if ! python3 -c 'import venv, ensurepip' 2>/dev/null; then
    echo "pycachesim.sh: python3 with venv is missing; on Debian: apt-get install python3-venv python3-dev gcc" >&2
    exit 1
fi
mkdir -p "$(dirname "$venv")"
python3 -m venv "$venv"
"$venv/bin/pip" install --quiet --disable-pip-version-check pycachesim==0.3.1
"$venv/bin/python" -c 'import cachesim'
