#!/bin/bash
# Replays a fuzz target's kept inputs: replay.sh PROGRAM INPUT...
# libFuzzer runs each file once and fails on the first that does.
set -euo pipefail
program=$1; shift
echo "replaying $# inputs"
exec "$program" -runs=1 "$@"
