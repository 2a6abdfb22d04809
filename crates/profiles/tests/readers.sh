#!/bin/sh
# Installs other people's readers of the forms that this crate writes (Perfetto's schema, DuckDB, Polars) into a virtual
# environment of their own: target/oracles/readers. `make test` calls this; a second call does nothing.
set -eu
root=$(cd "$(dirname "$0")/../../.." && pwd)
venv=${1:-$root/target/oracles/readers}
packages="perfetto==0.59.1 protobuf==6.33.6 duckdb==2.0.1 polars==2.1.0"
if [ "$(cat "$venv/packages" 2>/dev/null)" = "$packages" ]; then
    exit 0
fi
if ! python3 -c 'import venv, ensurepip' 2>/dev/null; then
    echo "readers.sh: python3 with venv is missing; on Debian: apt-get install python3-venv" >&2
    exit 1
fi
mkdir -p "$(dirname "$venv")"
python3 -m venv "$venv"
# shellcheck disable=SC2086  # words are packages
"$venv/bin/pip" install --quiet --disable-pip-version-check $packages
"$venv/bin/python" -c 'import duckdb, polars, perfetto.protos.perfetto.trace.perfetto_trace_pb2'
echo "$packages" >"$venv/packages"
