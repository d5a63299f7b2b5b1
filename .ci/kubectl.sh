#!/bin/sh
# Builds kubectl from its Go module: .ci/kubectl.sh FOLDER writes FOLDER/kubectl, or leaves the one that is there.
# Needs Go; the module proxy and checksum database are whatever Go is set up to use.
set -eu

version=v0.32.4

[ $# -eq 1 ] || { echo "usage: $0 FOLDER" >&2; exit 2; }
mkdir -p "$1"
folder=$(CDPATH= cd -- "$1" && pwd)
[ "$(cat "$folder/version" 2>/dev/null)" != "$version" ] || exit 0

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat >"$work/main.go" <<'GO'
package main

import (
	"k8s.io/component-base/cli"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
)

func main() {
	if err := cli.RunNoErrOutput(cmd.NewDefaultKubectlCommand()); err != nil {
		util.CheckErr(err)
	}
}
GO
cat >"$work/go.mod" <<GO
module kubectl-for-tests

go 1.24.0

require (
	k8s.io/component-base $version
	k8s.io/kubectl $version
)
GO
cd "$work"
CGO_ENABLED=0 go build -mod=mod -trimpath -ldflags="-s -w" -o "$folder/kubectl" .
echo "$version" >"$folder/version"
