# The steps of .ci/run, each a function step_<name>. Sourced; every one runs in a shell of its own with `set -e`.

# Programs that are not part of every machine: cargo-deny; etcd and kubectl built from their Go modules.
step_tools() {
    trim_builds
    local deny=$cache/cargo-deny version=0.20.2
    if [ "$("$deny/bin/cargo-deny" --version 2>/dev/null)" != "cargo-deny $version" ]; then
        # Unoptimized: it is built in a fifth of the time and needs two seconds for its work.
        CARGO_TARGET_DIR=$cache/cargo-deny-target cargo install cargo-deny --version "$version" --locked --debug \
            --quiet --root "$deny"
        rm -rf "$cache/cargo-deny-target"
    fi
    require go || return 0
    .ci/etcd.sh "$cache/etcd"
    command -v kubectl >/dev/null || .ci/kubectl.sh "$cache/kubectl"
}

step_format() {
    cargo fmt --all --check
    local example
    for example in examples/*/; do
        (cd "$example" && cargo fmt --check)
    done
}

step_clippy() {
    cargo clippy --quiet --locked --workspace --all-targets --keep-going -- -D warnings
    # What servers of one's own are made of.
    cargo clippy --quiet --locked -p keelson --lib --no-default-features -- -D warnings
}

# The README's test command: among others the kubectl and kube-rs suites.
step_test() {
    name_tools
    # All failures in one run, not only those of the first program.
    cargo test --locked --workspace --no-fail-fast
}

# Random sequences under printed seeds, more of them than `cargo test` runs.
step_seeds() {
    KEELSON_SEQUENCES=100000 cargo test --quiet --locked -p keelson-storage embedded::tests::sequences
}

# Traffic and faults on each store with a check of what clients saw, and servers that are killed and ended under load; both
# are longer by hand.
step_history() {
    name_tools
    cargo build --quiet --locked
    cargo build --quiet --locked -p keelson-history
    "$CARGO_TARGET_DIR/debug/keelson-history" traffic --seconds 15
    "$CARGO_TARGET_DIR/debug/keelson-history" crash --rounds 24 --objects 2000
    "$CARGO_TARGET_DIR/debug/keelson-history" disk
}

# Programs of users: linted, tested, and built (the server of widgets is used by the steps below). Their lock files may lag
# behind the dependencies of the root, so they are not held to them; but that of the template is copied with it. It also
# builds nothing twice, for its build script and for itself.
step_examples() {
    local example twice
    (
        cd examples/template
        cargo metadata --quiet --locked --format-version 1 >/dev/null
        twice=$(cargo tree --locked --edges normal,build --duplicates --depth 0 | grep ' v' | sort | uniq --repeated)
        [ -z "$twice" ] || { echo "built twice, with other features: $twice"; exit 1; }
    )
    for example in examples/*/; do
        (
            cd "$example"
            cargo clippy --quiet --all-targets -- -D warnings
            cargo test --quiet
            cargo build --quiet
        )
    done
}

# Licences, banned crates, sources. (The advisory database is not a package, so it can't be had everywhere.)
step_deny() {
    "$cache/cargo-deny/bin/cargo-deny" --locked check --hide-inclusion-graph licenses bans sources
}

# One definition file added to a clean clone, and nothing else touched, gives the main server that kind; the clone is
# built without a protoc in PATH.
step_definition() {
    local clone=$work/clone kind=apis/example.org/v1
    git clone --quiet "$root" "$clone"
    mkdir -p "$clone/api-defs/example.org/v1"
    cp tests/data/gadget.proto "$clone/api-defs/example.org/v1/gadget.proto"
    cd "$clone"
    # etcd-client's build script is the one that calls protoc: it must run again here.
    cargo clean --quiet -p etcd-client
    env -u PROTOC PATH="$(path_without protoc)" cargo build --quiet --locked
    start_server "$CARGO_TARGET_DIR/debug/keelson" --storage-backend=embedded
    admin_get "/$kind" | grep -E '"name": ?"gadgets"' >/dev/null
    admin_get "/openapi/v3/$kind" | grep 'How many teeth it has' >/dev/null
    name_tools
    if require kubectl; then
        kubectl create -f - <<<'{"apiVersion":"example.org/v1","kind":"Gadget","metadata":{"name":"cog"},"spec":{"teeth":8}}'
        kubectl get gadgets | grep '^cog .*8' >/dev/null
        kubectl explain gadget.spec.teeth | grep 'How many teeth it has' >/dev/null
    fi
    stop_server
}

# PATH without the folders that hold the program $1.
path_without() {
    local folder kept=()
    while IFS= read -r -d : folder; do
        [ -x "$folder/$1" ] || kept+=("$folder")
    done <<<"$PATH:"
    (IFS=:; echo "${kept[*]}")
}

# The README's recipe of a server of one's own, word for word, in an empty folder, with git dependencies and without a
# protoc; then the first commands that it shows.
step_recipe() {
    local blocks=$work/blocks folder=$work/recipe port
    mkdir -p "$blocks" "$folder"
    awk -v out="$blocks/" '/^## /{own = /^## A server of your own$/} own && /^```sh$/{n++; code = 1; next}
        /^```$/{code = 0} code && own{print > (out n)}' README.md
    grep '^cargo run$' "$blocks/1" >/dev/null
    port=$(free_port)
    sed -i "s/^cargo run\$/exec cargo run -- --secure-port=$port/" "$blocks/1"
    (
        cd "$folder"
        export KEELSON=file://$root XDG_DATA_HOME=$folder/data
        unset PROTOC
        PATH=$(path_without protoc) exec bash -eu "$blocks/1"
    ) >"$folder/out" 2>"$folder/log" &
    server_pid=$!
    for _ in $(seq 1800); do
        if grep '^export KUBECONFIG=' "$folder/out" >/dev/null; then break; fi
        kill -0 "$server_pid" || { cat "$folder/log" >&2; return 1; }
        sleep 1
    done
    eval "$(cat "$folder/out")"
    name_tools
    if require kubectl; then
        (cd "$folder/fleet" && bash -eu "$blocks/2") | tee "$folder/said"
        grep '^ann .*800' "$folder/said" >/dev/null
    fi
    stop_server
}

step_go_client() {
    require go || return 0
    start_server "$(widgets)" --storage-backend=memory
    (cd tests/clients/go && go run .)
    stop_server
}

# A controller of a custom resource in controller-runtime's envtest, with our server in the place of kube-apiserver.
step_envtest() {
    require go || return 0
    name_tools
    [ -n "${ETCD_BIN:-}" ] || require etcd || return 0
    cargo build --quiet --locked
    local assets=$work/assets
    mkdir -p "$assets"
    ln -sf "$CARGO_TARGET_DIR/debug/keelson" "$assets/kube-apiserver"
    ln -sf "${ETCD_BIN:-$(command -v etcd)}" "$assets/etcd"
    (cd tests/clients/envtest && KUBEBUILDER_ASSETS=$assets go run .)
}

step_python_client() {
    { require python3 && require java; } || return 0
    start_server "$(widgets)" --storage-backend=memory
    admin_get /openapi/v2 >"$work/swagger.json"
    tests/clients/python/generate.sh "$work/swagger.json" "$cache/python" widgets_client
    "$cache/python/env/bin/python" tests/clients/python/widgets.py "$cache/python/client" "$KUBECONFIG"
    stop_server

    # The same of everything that the main server serves.
    cargo build --quiet --locked
    start_server "$CARGO_TARGET_DIR/debug/keelson" --storage-backend=memory
    admin_get /openapi/v2 >"$work/swagger.json"
    tests/clients/python/generate.sh "$work/swagger.json" "$cache/python" kubernetes_client
    "$cache/python/env/bin/python" -m compileall -q -j 2 "$cache/python/client/kubernetes_client"
    "$cache/python/env/bin/python" tests/clients/python/kubernetes.py "$cache/python/client" "$KUBECONFIG"
    stop_server
}

# Types of the documents that the example server publishes, for TypeScript, and that they compile.
step_typescript() {
    require npx || return 0
    local folder=$cache/typescript
    mkdir -p "$folder"
    [ -d "$folder/node_modules/typescript" ] || npm install --silent --no-audit --no-fund --prefix "$folder" \
        openapi-typescript@5.4.1 openapi-typescript-7@npm:openapi-typescript@7.13.0 typescript@5
    start_server "$(widgets)" --storage-backend=memory
    admin_get /openapi/v2 >"$work/v2.json"
    admin_get /openapi/v3/apis/example.com/v1 >"$work/v3.json"
    stop_server
    cd "$folder"
    node node_modules/openapi-typescript/bin/cli.js "$work/v2.json" --output "$work/v2.ts"
    node node_modules/openapi-typescript-7/bin/cli.js "$work/v3.json" --output "$work/v3.ts"
    node_modules/.bin/tsc --noEmit --strict "$work/v2.ts" "$work/v3.ts"
    grep 'sizeMillimeters' "$work/v2.ts" >/dev/null
    grep 'sizeMillimeters' "$work/v3.ts" >/dev/null
}

# The example server's program, built if it isn't.
widgets() {
    (cd examples/widgets && cargo build --quiet)
    echo "$CARGO_TARGET_DIR/debug/widgets"
}

# Recorded conversations alone; they are among the tests of the workspace.
step_conformance() {
    name_tools
    cargo test --locked --test conversations
}
