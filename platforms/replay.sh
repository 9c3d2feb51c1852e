#!/bin/bash
# Replays a fuzz target's kept inputs, then explores for a moment: replay.sh PROGRAM INPUT...
# libFuzzer runs each file once and fails on the first that does. What the exploration finds is
# left among the test's outputs, with the command that keeps it.
set -euo pipefail
program=$1; shift
folder=$(dirname "$1")
echo "replaying $# inputs"
"$program" -runs=1 "$@"

# So many inputs, not so long: a run on a busy machine looks at as many.
runs=5000
outputs=${TEST_UNDECLARED_OUTPUTS_DIR:-$TEST_TMPDIR}
new=$TEST_TMPDIR/new
mkdir -p "$new"
echo "exploring $runs inputs"
"$program" -runs=$runs -artifact_prefix="$outputs/" "$new" "$folder" && exit 0
package=${TEST_TARGET#//}
for input in "$outputs"/*-*; do
    echo "a new failure: keep its input, so that every run tries it; at the root of the workspace:"
    echo "  cp bazel-testlogs/${package/://}/test.outputs/${input##*/} $folder/"
done
exit 1
