#!/bin/bash
# Compares the layout of the compiled schema with the released one. A line that is gone or
# different breaks programs that are already built; a line that is new is an addition, and goes
# into the golden file with it. Arguments: the folder of generated code, the golden file.
set -euo pipefail
if ! diff -u "$2" "$1/layout.txt"; then
  echo "The schema's numbering or layout is not that of $2."
  echo "If it only grew: cp bazel-bin/$1/layout.txt $2"
  exit 1
fi
