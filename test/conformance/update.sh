#!/bin/bash
# Writes docs/conformance.md from the table: update.sh GENERATED
set -euo pipefail
cp -f "$1" "$BUILD_WORKSPACE_DIRECTORY/docs/conformance.md"
chmod 644 "$BUILD_WORKSPACE_DIRECTORY/docs/conformance.md"
echo "wrote docs/conformance.md"
