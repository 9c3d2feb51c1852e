#!/bin/bash
# Compares what building bad manifests says with what each expects.
# Arguments: for each manifest, its source and what was said.
set -euo pipefail
failed=0
while (($#)); do
  expected=$(sed -n 's/^# refused: //p' "$1")
  if [[ -z $expected ]] || ! grep -qF "$1: $expected" "$2" && ! grep -qF "$expected" <(grep "^$1:[0-9]" "$2"); then
    printf '%s:\n  expected %s\n  said     %s\n' "$1" "$expected" "$(<"$2")"
    failed=1
  fi
  shift 2
done
exit $failed
