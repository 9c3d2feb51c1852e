#!/bin/bash
# //platforms:iso and :usb say path, size and sha256 of the file they built, and copy it if asked.
set -euo pipefail
for run in "$@"; do
  out=$("$run")
  echo "$out"
  path=$(sed -n 's/^path *//p' <<<"$out")
  [[ $(sed -n 's/^size *\([0-9]*\) bytes$/\1/p' <<<"$out") == "$(stat -c %s "$path")" ]]
  [[ $(sed -n 's/^sha256 *//p' <<<"$out") == "$(sha256sum <"$path" | cut -c1-64)" ]]
  "$run" --out "$TEST_TMPDIR/copy.iso" >/dev/null
  cmp "$path" "$TEST_TMPDIR/copy.iso"
  if "$run" --oops 2>"$TEST_TMPDIR/err"; then echo "a wrong word was taken"; exit 1; fi
  grep -q -- '--out FILE' "$TEST_TMPDIR/err"
done
