#!/bin/bash
# compile_fail.sh OUTPUT TEXT: the compiler refused, and for that reason.
set -euo pipefail
cat "$1"
if grep -qF 'IT COMPILES' "$1"; then echo "expected an error with: $2"; exit 1; fi
grep -qF -- "$2" "$1" || { echo "refused, but not because of: $2"; exit 1; }
