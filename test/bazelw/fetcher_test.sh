#!/bin/bash
# fetcher_test.sh: the locked fetcher against a mirror that misbehaves.
#
# A lock of three packages is served from loopback. Whatever the mirror or the
# machine does, a run ends with verified files or with a clear error, and the run
# after it succeeds once the fault is gone. Nothing here depends on how fast it is.
. "${BASH_SOURCE[0]%/*}/testing.sh"

FETCH=$TOOLCHAIN/fetch.sh
export CAPOS_FETCH_STALL=2 CAPOS_FETCH_DELAY=0 CAPOS_FETCH_TRIES=2

# The fetcher may use these programs and no others.
TOOLS='bash stat sha256sum mkfifo rm mv cp mkdir sleep chmod ln readlink'

# Makes mirror, lock and an empty folder for packages in the case's folder, and
# starts the server. $1: the downloader, `curl` or `wget`; $2: further programs.
start_mirror() {
  local tool name sum size=1500
  mkdir -p pool/main faults bin
  for tool in $TOOLS "$1" ${2:-}; do ln -s "$(command -v "$tool")" "bin/$tool"; done
  for name in small middle large; do
    head -c "$size" /dev/urandom >"pool/main/$name.deb"
    sum=$(sha256sum <"pool/main/$name.deb")
    printf '%s 1.0 all pool/main/%s.deb %s %s\n' "$name" "$name" "$size" "${sum%% *}" >>lock
    size=$((size * 30))
  done
  python3 "$HERE/server.py" "$PWD" &
  SERVER=$!
  trap 'kill $SERVER 2>/dev/null || true; wait $SERVER 2>/dev/null || true' EXIT
  until [[ -s port ]]; do sleep 0.05; done
  MIRROR=http://127.0.0.1:$(<port)
}

# Runs the fetcher; sets STATUS and WORDS.
run_fetch() {
  STATUS=0
  WORDS=$(PATH=$PWD/bin "$FETCH" lock debs "$MIRROR" 2>&1) || STATUS=$?
}

# What is in the folder under a final name has the hash that is its name.
expect_sound() {
  local file sum
  for file in debs/*.deb; do
    [[ -e $file ]] || continue
    sum=$(sha256sum <"$file")
    expect_equal "$file" "debs/${sum%% *}.deb" 'a package under a final name'
  done
}

# The last run succeeded and all three packages are there.
expect_fetched() {
  expect_equal "$STATUS" 0 "exit status ($WORDS)"
  expect_sound
  expect_equal "$(find debs -name '*.deb' | wc -l)" 3 'packages'
  expect_equal "$(find debs -name '*.part' | wc -l)" 0 'unfinished files'
}

# The last run failed with the words $1 and did not leave package `large`; without
# the fault the next run succeeds.
expect_refused_then_fetched() {
  expect_equal "$STATUS" 1 "exit status ($WORDS)"
  expect_words "$WORDS" "$1"
  expect_words "$WORDS" 'large 1.0'
  expect_sound
  [[ ! -e debs/$(sum_of large).deb ]] || fail 'the faulty package is there under its final name'
  rm -f faults/*
  run_fetch
  expect_fetched
}

# Prints the hash the lock has for package $1.
sum_of() { grep "^$1 " lock | cut -d' ' -f6; }

# Sets how the mirror serves package $1.
fault() { printf '%s\n' "${*:2}" >"faults/$1.deb"; }

plain() {
  start_mirror "$1"
  run_fetch
  expect_fetched
  # A second run asks the mirror for nothing.
  rm log
  run_fetch
  expect_fetched
  [[ ! -e log ]] || fail "the second run asked for: $(<log)"
}
case_plain_curl() { plain curl; }
case_plain_wget() { plain wget; }

# Every connection ends early: each try continues where the one before ended.
cut_short() {
  start_mirror "$1"
  fault large cut 400000
  run_fetch
  expect_fetched
  grep -q '^206 400000 ' log || fail "no request continued the file: $(<log)"
}
case_truncated_by_broken_connections_curl() { cut_short curl; }
case_truncated_by_broken_connections_wget() { cut_short wget; }

truncated_file() {
  start_mirror "$1"
  fault large short 1000
  run_fetch
  expect_refused_then_fetched 'large 1.0: '
}
case_truncated_file_on_mirror_curl() { truncated_file curl; }
case_truncated_file_on_mirror_wget() { truncated_file wget; }

wrong_hash() {
  start_mirror "$1"
  fault large corrupt
  run_fetch
  expect_words "$WORDS" "$(sum_of large)"
  expect_refused_then_fetched 'the lock asks for'
}
case_wrong_hash_curl() { wrong_hash curl; }
case_wrong_hash_wget() { wrong_hash wget; }

case_wrong_hash_once_is_fetched_again() {
  start_mirror curl
  fault large corrupt once
  run_fetch
  expect_fetched
}

case_damaged_in_the_cache_is_fetched_again() {
  start_mirror curl
  run_fetch
  expect_fetched
  printf x >>"debs/$(sum_of middle).deb"
  run_fetch
  expect_words "$WORDS" 'is damaged'
  expect_fetched
}

# A part of something else: the right length cannot save it.
case_part_with_wrong_bytes_is_dropped() {
  start_mirror curl
  mkdir debs
  head -c 700 /dev/zero >"debs/$(sum_of small).part"
  run_fetch
  expect_fetched
}

case_part_longer_than_the_file_is_dropped() {
  start_mirror curl
  mkdir debs
  head -c 7000 /dev/zero >"debs/$(sum_of small).part"
  run_fetch
  expect_fetched
}

missing() {
  start_mirror "$1"
  fault middle missing
  run_fetch
  expect_equal "$STATUS" 4 "exit status ($WORDS)"
  expect_words "$WORDS" 'no longer has: middle 1.0'
  expect_sound
  rm faults/*
  run_fetch
  expect_fetched
}
case_missing_curl() { missing curl; }
case_missing_wget() { missing wget; }

stall() {
  start_mirror "$1"
  fault large stall 300000
  run_fetch
  expect_refused_then_fetched 'large 1.0: '
  grep -q '^206 300000 ' log || fail "the next run did not continue the file: $(<log)"
}
case_stall_curl() { stall curl; }
case_stall_wget() { stall wget; }

no_range() {
  start_mirror "$1"
  fault large cut 300000 once
  run_fetch
  rm -f "debs/$(sum_of large).deb"
  head -c 300000 pool/main/large.deb >"debs/$(sum_of large).part"
  fault large norange
  run_fetch
  expect_fetched
}
case_mirror_that_cannot_continue_curl() { no_range curl; }
case_mirror_that_cannot_continue_wget() { no_range wget; }

case_no_mirror_at_all() {
  start_mirror curl
  kill "$SERVER"
  wait "$SERVER" || true
  run_fetch
  expect_equal "$STATUS" 1 'exit status'
  expect_words "$WORDS" "$MIRROR"
}

# Prints how many bytes have arrived: of each package what the furthest has of it.
arrived() {
  local -A most=()
  local name size total=0
  while read -r name size; do
    if ((size > ${most[${name%%.*}]:-0})); then most[${name%%.*}]=$size; fi
  done < <(find debs -name '*.deb' -printf '%f %s\n' -o -name '*.part' -printf '%f %s\n' 2>/dev/null)
  for size in "${most[@]}"; do total=$((total + size)); done
  printf '%s' "$total"
}

# Waits until nobody of process group $1 is left.
await_group() { while kill -0 -- "-$1" 2>/dev/null; do sleep 0.01; done; }

# Killed ten times, each time further on: a point is a number of bytes that have
# arrived. Odd kills take the downloads with them, even ones leave them running.
killed() {
  start_mirror "$@"
  local point process total=1396500 goal
  local -a left=()
  for name in small middle large; do fault "$name" pace 6000; done
  for point in 1 2 3 4 5 6 7 8 9 10; do
    goal=$((total * point / 11))
    set -m
    PATH=$PWD/bin "$FETCH" lock debs "$MIRROR" 2>/dev/null &
    process=$!
    set +m
    left+=("$process")
    while (($(arrived) < goal)) && kill -0 "$process" 2>/dev/null; do :; done
    if ((point % 2)); then kill -9 -- "-$process"; else kill -9 "$process"; fi 2>/dev/null || true
    wait "$process" 2>/dev/null || true
    expect_sound
  done
  rm faults/*
  run_fetch
  # What even kills left running cleans up after itself.
  for process in "${left[@]}"; do await_group "$process"; done
  expect_fetched
  grep -q '^206 ' log || fail 'no run continued what an earlier one had begun'
}
case_killed_at_ten_points_curl() { killed curl flock; }
case_killed_at_ten_points_wget() { killed wget flock; }
case_killed_at_ten_points_without_flock() { killed curl; }

# Two at once: one fetches, the other waits and finds everything there.
together() {
  start_mirror "$@"
  for name in small middle large; do fault "$name" pace 20000; done
  PATH=$PWD/bin "$FETCH" lock debs "$MIRROR" >one 2>&1 &
  local first=$! second status=0
  PATH=$PWD/bin "$FETCH" lock debs "$MIRROR" >two 2>&1 &
  second=$!
  wait "$first" || status=$?
  expect_equal "$status" 0 "exit status of the first ($(<one))"
  wait "$second" || status=$?
  expect_equal "$status" 0 "exit status of the second ($(<two))"
  STATUS=0 WORDS=''
  expect_fetched
  expect_equal "$(wc -l <log)" 3 "requests for three packages ($(<log))"
}
case_two_at_once() { together curl flock; }
case_two_at_once_without_flock() { together curl; }

# Puts a gate before program $1 of the fetcher for every argument that holds text $2: its
# n-th caller makes the folder gate/at.n and waits until gate/go.n is there. The first two wait.
gate() {
  local real
  real=$(readlink "bin/$1")
  mkdir -p gate
  touch gate/go.{3..9}
  rm "bin/$1"
  cat >"bin/$1" <<EOF
#!$(command -v bash)
if [[ \$* == *$2* ]]; then
  n=1
  until mkdir "$PWD/gate/at.\$n" 2>/dev/null; do n=\$((n + 1)); done
  until [[ -e $PWD/gate/go.\$n ]]; do sleep 0.01; done
fi
exec $real "\$@"
EOF
  chmod +x "bin/$1"
}

# Waits until the $1-th caller stands at the gate.
await_gate() { until [[ -d gate/at.$1 ]]; do sleep 0.01; done; }

# Starts a fetcher, kills its first process when a download of it stands at the gate, and leaves
# that download running; its process group is in ORPHANS.
leave_orphans() {
  set -m
  PATH=$PWD/bin "$FETCH" lock debs "$MIRROR" 2>/dev/null &
  ORPHANS=$!
  set +m
  await_gate 1
  kill -9 "$ORPHANS"
  wait "$ORPHANS" 2>/dev/null || true
}

# What a killed fetcher left running finishes a package at the moment at which the next
# fetcher is about to.
case_overtaken_by_an_orphan_without_flock() {
  start_mirror curl
  gate chmod "$(sum_of small)"
  leave_orphans
  PATH=$PWD/bin "$FETCH" lock debs "$MIRROR" >words 2>&1 &
  local second=$!
  await_gate 2
  : >gate/go.1
  await_group "$ORPHANS"
  : >gate/go.2
  STATUS=0
  wait "$second" || STATUS=$?
  WORDS=$(<words)
  expect_fetched
}

# The same, when the mirror has nothing for the next fetcher any more: the package is there.
case_finished_by_an_orphan_without_flock() {
  start_mirror curl
  gate curl small.deb
  leave_orphans
  PATH=$PWD/bin "$FETCH" lock debs "$MIRROR" >words 2>&1 &
  local second=$!
  await_gate 2
  : >gate/go.1
  await_group "$ORPHANS"
  fault small short 1000
  : >gate/go.2
  STATUS=0
  wait "$second" || STATUS=$?
  WORDS=$(<words)
  expect_fetched
  expect_equal "$(grep -c small.deb log)" 2 "requests for the package ($(<log))"
}

# What a fetcher that is dead began of a package that is there goes; what a living one has stays.
case_parts_of_the_dead_are_removed() {
  start_mirror curl
  run_fetch
  expect_fetched
  local small
  small=debs/$(sum_of small)
  printf x >"$small.1000000000.7.part"
  printf x >"$small.part"
  # This shell has the second file.
  local start
  read -r start <"/proc/$BASHPID/stat"
  start=${start##*) }
  # shellcheck disable=SC2086 # words are wanted
  set -- $start
  printf x >"$small.$BASHPID.${20}.part"
  run_fetch
  expect_equal "$STATUS" 0 "exit status ($WORDS)"
  expect_equal "$(find debs -name '*.part')" "$small.$BASHPID.${20}.part" 'unfinished files'
}

run_cases "$@"
