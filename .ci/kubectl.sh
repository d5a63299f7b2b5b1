#!/bin/sh
# Builds kubectl from its Go module: .ci/kubectl.sh FOLDER writes FOLDER/kubectl, or leaves the one that is there.
# Needs Go; the module proxy and checksum database are whatever Go is set up to use.
set -eu

minor=32
version=v1.$minor.4
# The modules count from 0 where the release counts from 1.
modules=v0.${version#v1.}

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
	k8s.io/component-base $modules
	k8s.io/kubectl $modules
)
GO
cd "$work"
# Without a version of its own, `kubectl version` ends with an error.
names="-X k8s.io/component-base/version.gitVersion=$version -X k8s.io/component-base/version.gitMajor=1"
names="$names -X k8s.io/component-base/version.gitMinor=$minor"
CGO_ENABLED=0 go build -mod=mod -trimpath -ldflags="-s -w $names" -o "$folder/kubectl" .
echo "$version" >"$folder/version"
