#!/usr/bin/env bash
# From a definition that was changed to a server that serves it: CPU and time of a build in which a field was added to the
# definition of a kind, and of the start until `/readyz` says ok. In the repository (a kind added to those of the main
# server) and outside (a copy of examples/template with the repository as a git dependency); there also a build from
# nothing.
#
#   benches/definition.sh [FOLDER]      FOLDER: for clones and what is built, several GB (default: a new one, removed)
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
folder=${1:-}
if [ -z "$folder" ]; then
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
fi
cd "$folder"
unset PROTOC CARGO_TARGET_DIR

# timed WHAT COMMAND …: a line with the CPU time (user and system) and the time that a command took.
timed() {
    local what=$1 TIMEFORMAT='%U %S %R' taken
    shift
    { taken=$({ time "$@" >/dev/null 2>"$folder/log" 3>&-; } 2>&1); } || { cat "$folder/log" >&2; return 1; }
    read -r user system real <<<"$taken"
    awk -v what="$what" -v u="$user" -v s="$system" -v r="$real" \
        'BEGIN {printf "%-48s %6.1f s of CPU, %6.1f s\n", what, u + s, r}'
}

# serves PROGRAM: starts it in a new folder until it is ready.
serves() {
    local port data pid
    port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
    data=$(mktemp -d -p "$folder")
    "$1" --data-dir="$data" --secure-port="$port" &
    pid=$!
    until [ "$(curl --silent --insecure "https://127.0.0.1:$port/readyz")" = ok ]; do
        kill -0 "$pid" || return 1
        sleep 0.01
    done
    kill "$pid"
    wait "$pid" || true
}

# changed FILE: adds a field to the last message of a definition.
changed() {
    sed -i '$ d' "$1"
    printf '  string added_%s = %s;\n}\n' "$2" "$2" >>"$1"
}

rm -rf outside inside
cp -r "$root/examples/template" outside
cd outside
rm -rf target
sed -i "s|path = \"../..[^\"]*\"|git = \"file://$root\"|" Cargo.toml
cargo fetch
timed "outside, a build from nothing" cargo build
for version in v1beta1 v1; do changed "api-defs/fleet.example.com/$version/van.proto" 90; done
timed "outside, a build after a field was added" cargo build
timed "outside, from the start until it is ready" serves target/debug/fleet
cd ..

git clone --quiet "$root" inside
cd inside
mkdir -p api-defs/example.org/v1
cp tests/data/gadget.proto api-defs/example.org/v1/gadget.proto
cargo build
changed api-defs/example.org/v1/gadget.proto 90
timed "in the repository, a build after a field was added" cargo build
timed "in the repository, from the start until it is ready" serves target/debug/keelson
