# testing.sh: what the tests of ./bazelw share. Sourced first; runs each function
# named case_* in a shell and a folder of its own, then prints counts.
# shellcheck shell=bash
set -euo pipefail

HERE=$(cd "${BASH_SOURCE[0]%/*}" && pwd)
TOOLCHAIN=${TOOLCHAIN:-$HERE/../../third_party/toolchain}
TEMP=$(mktemp -d "${TEST_TMPDIR:-/tmp}/bazelw.XXXXXX")
trap 'rm -rf "$TEMP"' EXIT

# Ends the case as failed; the arguments say what was expected and what was seen.
fail() {
  printf '    %s\n' "$*" >&2
  exit 1
}

# $1 must be equal to $2; $3 says what they are.
expect_equal() { [[ $1 == "$2" ]] || fail "$3: expected '$2', got '$1'"; }

# Text $1 must hold $2.
expect_words() { [[ $1 == *"$2"* ]] || fail "expected the words '$2' in: $1"; }

# Runs all cases, or those named on the command line; of all, only this shard's if
# Bazel asks for shards.
run_cases() {
  local name passed=0 failed=0 place=0
  local -a cases
  mapfile -t cases < <(compgen -A function case_)
  if (($#)); then cases=("$@"); fi
  if [[ -n ${TEST_SHARD_STATUS_FILE:-} ]]; then : >"$TEST_SHARD_STATUS_FILE"; fi
  for name in "${cases[@]}"; do
    place=$((place + 1))
    if ((place % ${TEST_TOTAL_SHARDS:-1} != ${TEST_SHARD_INDEX:-0})); then continue; fi
    mkdir "$TEMP/$name"
    # Not in a condition: there errexit would be off inside the case.
    set +e
    (
      set -e
      cd "$TEMP/$name"
      "$name"
    )
    local status=$?
    set -e
    if ((status == 0)); then
      printf 'ok   %s\n' "$name"
      passed=$((passed + 1))
    else
      printf 'FAIL %s\n' "$name"
      failed=$((failed + 1))
    fi
  done
  printf '%s passed, %s failed\n' "$passed" "$failed"
  ((failed == 0 && passed > 0))
}
