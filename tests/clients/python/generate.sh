#!/usr/bin/env bash
# generate.sh SWAGGER FOLDER PACKAGE: makes a Python client of a server's /openapi/v2, in FOLDER/client, with a virtual
# environment in FOLDER/env that has what the client needs.
set -euo pipefail

[ $# -eq 3 ] || { echo "usage: $0 SWAGGER FOLDER PACKAGE" >&2; exit 2; }
swagger=$1 folder=$2 package=$3
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$folder"
if ! cmp -s "$here/requirements.txt" "$folder/env/requirements.txt"; then
    rm -rf "$folder/env"
    python3 -m venv "$folder/env"
    "$folder/env/bin/pip" install --quiet --disable-pip-version-check -r "$here/requirements.txt"
    cp "$here/requirements.txt" "$folder/env/requirements.txt"
fi
rm -rf "$folder/client"
"$folder/env/bin/openapi-generator-cli" generate --skip-validate-spec -i "$swagger" -g python -o "$folder/client" \
    --package-name "$package" --global-property=apiTests=false,modelTests=false >"$folder/generate.log" 2>&1 ||
    { tail -n 30 "$folder/generate.log" >&2; exit 1; }
