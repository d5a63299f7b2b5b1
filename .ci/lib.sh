# Functions that the steps of .ci/run share. Sourced; needs $cache, $work and $root.

# require PROGRAM: true if there is one. In CI its absence ends the step, elsewhere one line tells it.
require() {
    command -v "$1" >/dev/null && return 0
    if [ "${CI:-}" = true ]; then
        echo "$1 is missing, and CI must run this step" >&2
        exit 1
    fi
    echo "skipped: there is no $1 on this machine"
    return 1
}

# Removes what earlier commits left of the workspace's own crates when the disk runs short; dependencies stay.
trim_builds() {
    local free
    free=$(df --output=avail --block-size=1G "$CARGO_TARGET_DIR" 2>/dev/null | tail -n 1) || return 0
    if [ "$free" -lt 40 ]; then
        echo "$free GB of disk are left: the workspace's own crates are built anew"
        cargo clean --quiet --workspace
    fi
}

# Names the programs that the tests use and that step_tools may have built.
name_tools() {
    [ ! -x "$cache/etcd/etcd" ] || export ETCD_BIN="$cache/etcd/etcd"
    [ ! -x "$cache/kubectl/kubectl" ] || export PATH="$PATH:$cache/kubectl"
    [ "${CI:-}" != true ] || export KEELSON_REQUIRE_ETCD=1
}

free_port() {
    python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

# start_server PROGRAM [FLAG ...]: starts a server with its data in a new folder and waits until it is ready. Sets
# $server_pid, $server_url, $server_folder and KUBECONFIG.
start_server() {
    local program=$1 port
    shift
    port=$(free_port)
    server_folder=$(mktemp -d -p "$work")
    server_url=https://127.0.0.1:$port
    export KUBECONFIG=$server_folder/kubeconfig
    "$program" --data-dir="$server_folder/data" --kubeconfig-out="$KUBECONFIG" --secure-port="$port" "$@" \
        >"$server_folder/out" 2>"$server_folder/log" &
    server_pid=$!
    for _ in $(seq 300); do
        if [ "$(curl --silent --insecure "$server_url/readyz")" = ok ]; then return 0; fi
        kill -0 "$server_pid" 2>/dev/null || break
        sleep 0.1
    done
    echo "the server did not become ready:" >&2
    cat "$server_folder/log" >&2
    return 1
}

stop_server() {
    [ -n "$server_pid" ] || return 0
    kill "$server_pid" 2>/dev/null || true
    wait "$server_pid" 2>/dev/null || true
    server_pid=
}

# admin_get PATH [HEADER]: the answer for the admin, whose certificate is taken from the kubeconfig.
admin_get() {
    local folder=$server_folder
    if [ ! -s "$folder/admin.pem" ]; then
        python3 - "$KUBECONFIG" "$folder/admin.pem" <<'PY'
import base64, json, sys
user = json.load(open(sys.argv[1]))["users"][0]["user"]
with open(sys.argv[2], "wb") as out:
    for part in ("client-certificate-data", "client-key-data"):
        out.write(base64.b64decode(user[part]))
PY
    fi
    curl --silent --show-error --fail --insecure --cert "$folder/admin.pem" -H "${2:-Accept: application/json}" "$server_url$1"
}
