#!/bin/bash
# The document in docs/ is the table: compare.sh GENERATED DOCUMENT
set -euo pipefail
diff -u "$2" "$1" || { echo "docs/conformance.md is not what the table says: ./bazelw run //test/conformance:update"; exit 1; }
