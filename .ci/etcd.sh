#!/bin/sh
# Builds etcd from its Go module: .ci/etcd.sh FOLDER writes FOLDER/etcd, or leaves the one of this version that is there.
# Needs Go; the module proxy and checksum database are whatever Go is set up to use.
set -eu

version=v3.6.8

[ $# -eq 1 ] || { echo "usage: $0 FOLDER" >&2; exit 2; }
mkdir -p "$1"
folder=$(CDPATH= cd -- "$1" && pwd)
binary="$folder/etcd"
if [ -x "$binary" ] && "$binary" --version 2>/dev/null | grep -qx "etcd Version: ${version#v}"; then
    exit 0
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat > "$work/main.go" <<'GO'
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() { etcdmain.Main(os.Args) }
GO
cat > "$work/go.mod" <<GO
module etcd-for-tests

go 1.24.0

require go.etcd.io/etcd/server/v3 $version
GO
cd "$work"
CGO_ENABLED=0 go build -mod=mod -trimpath -ldflags="-s -w" -o "$binary.new" .
mv "$binary.new" "$binary"
