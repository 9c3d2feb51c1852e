#!/bin/bash
# Gives the schema compiler files it must refuse, and compares what it says with what the file
# expects. Arguments: the compiler, then the files.
set -euo pipefail
compiler=$PWD/$1
shift
out=$(mktemp -d)
failed=0
for file in "$@"; do
  expected="schema compiler: $(sed -n 's/^# refused: //p' "$file")"
  if said=$(capnp compile --no-standard-import "-o$compiler:$out" --src-prefix="${file%/*}" "$file" 2>&1); then
    echo "$file: accepted"
    failed=1
  elif [[ $said != "$expected"* ]]; then
    printf '%s:\n  expected %s\n  said     %s\n' "$file" "$expected" "$said"
    failed=1
  fi
done
exit $failed
