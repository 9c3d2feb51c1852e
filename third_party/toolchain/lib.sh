# lib.sh: what every part of ./bazelw shares: messages, locks, process identity, sizes.
#
# Sourced, never run. Needs bash 4.4 and coreutils; nothing here touches the network.
# shellcheck shell=bash

# Prints one line for the person; standard output belongs to Bazel.
say() { printf 'bazelw: %s\n' "$*" >&2; }

# Ends the run with one sentence that says what is wrong and what would be right.
die() {
  printf 'bazelw: error: %s\n' "$*" >&2
  exit 1
}

# Starts the step named $1 of the set-up; STEP and STEPS give its place.
step() {
  STEP=$((${STEP:-0} + 1)) STEP_NAME=$1 STEP_START=$SECONDS
  PROGRESS_SHOWN=-1
}

# Shows how far the step is. On a terminal one line is rewritten; elsewhere a
# line appears every PROGRESS_EVERY seconds, so that a log stays readable.
PROGRESS_EVERY=5
progress() {
  local elapsed=$((SECONDS - STEP_START)) line
  printf -v line '[%s/%s] %-9s %s  %s s' "$STEP" "$STEPS" "$STEP_NAME" "$*" "$elapsed"
  if [[ -t 2 ]]; then
    printf '\r\033[K%s' "$line" >&2
  elif ((PROGRESS_SHOWN < 0 || elapsed - PROGRESS_SHOWN >= PROGRESS_EVERY)); then
    printf '%s\n' "$line" >&2
    PROGRESS_SHOWN=$elapsed
  fi
}

# Ends the step's line with its outcome.
step_done() {
  PROGRESS_SHOWN=-1
  progress "$*"
  if [[ -t 2 ]]; then printf '\n' >&2; fi
}

# Prints $1 bytes in whole megabytes (10^6), rounded up.
mb() { printf '%s' "$((($1 + 999999) / 1000000))"; }

# Prints the first sixteen hex digits of the sha256 of standard input.
hash16() {
  local sum
  sum=$(sha256sum)
  printf '%s' "${sum:0:16}"
}

# Prints the start time of process $1 in clock ticks since boot, or fails. A
# process number is reused sooner or later; number and start time are not.
start_time() {
  local stat
  { read -r stat <"/proc/$1/stat"; } 2>/dev/null || return 1
  # The command name is in parentheses and may hold blanks: count after it.
  # Field 22 of proc(5) is the twentieth after the name.
  local -a field
  read -ra field <<<"${stat##*) }"
  [[ ${field[0]} != Z ]] || return 1
  printf '%s' "${field[19]}"
}

# True if process $1 is alive and started at $2.
is_same_process() { [[ -n ${1:-} && -n ${2:-} && $(start_time "$1") == "$2" ]]; }

# Takes the lock file $1, waiting for whoever holds it, and leaves a handle in
# LOCK_HANDLE for unlock. A holder that dies loses the lock.
lock() {
  local path=$1 me owner stale waited=
  if command -v flock >/dev/null; then
    exec {LOCK_HANDLE}>>"$path"
    if ! flock -n "$LOCK_HANDLE"; then
      say "another bazelw is at work on ${path%/*}; waiting for it"
      flock "$LOCK_HANDLE"
    fi
    return
  fi
  # Without flock: a link is made by one process only and names its owner in the
  # same moment; number and start time tell a live owner from one that was killed.
  # Two that find a dead owner at the same time could in the end both get in; then
  # they do work twice, but what they finish is still verified and moved whole.
  me=$BASHPID
  me=$me.$(start_time "$me")
  LOCK_HANDLE=$path.owner
  until ln -s "$me" "$LOCK_HANDLE" 2>/dev/null; do
    owner=$(readlink "$LOCK_HANDLE") || continue
    if ! is_same_process "${owner%.*}" "${owner#*.}"; then
      stale=$LOCK_HANDLE.${me%.*}
      mv -T "$LOCK_HANDLE" "$stale" 2>/dev/null || continue
      # If a new owner came in between, give it back its lock.
      if [[ $(readlink "$stale") == "$owner" ]]; then rm -f "$stale"; else mv -nT "$stale" "$LOCK_HANDLE"; fi
      continue
    fi
    [[ -n $waited ]] || say "another bazelw (process ${owner%.*}) is at work on ${path%/*}; waiting for it"
    waited=yes
    sleep 0.2
  done
}

# Gives back the lock whose handle is $1.
unlock() {
  if [[ $1 =~ ^[0-9]+$ ]]; then
    eval "exec $1>&-"
  else
    rm -f "$1"
  fi
}
