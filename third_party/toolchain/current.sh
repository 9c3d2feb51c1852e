# current.sh: which lock is in force, and the way out when a pinned package is gone.
#
# Sourced, never run. The suite moves and old packages leave the mirrors. When the
# pinned set can no longer be fetched, one consistent current set takes its place:
# all of it, resolved through signed apt, in a lock of its own in the cache. It is
# loud about that, at once and at the end of every run, until somebody adopts it.
#   current/lock                the current set
#   current/instead-of-<id>     the pinned lock <id> cannot be fetched from the mirror
# shellcheck shell=bash

# Sets LOCK_FILE, LOCK_ID, ROOT and NOTICE (what to repeat at the end of the run).
choose_lock() {
  local pinned=$TOOLCHAIN/lock
  LOCK_FILE=$pinned NOTICE=''
  use_lock
  case ${CAPOS_TOOLCHAIN:-pinned} in
    pinned)
      if [[ ! -e $ROOT/.complete && -e $CACHE/current/instead-of-$LOCK_ID && -e $CACHE/current/lock ]]; then
        LOCK_FILE=$CACHE/current/lock
        NOTICE="NOT the pinned tool chain: the mirror no longer has it, so the suite's current packages are used; to adopt them: cp $LOCK_FILE $pinned"
        use_lock
      fi
      ;;
    current)
      mkdir -p "$CACHE/current"
      LOCK_FILE=$CACHE/current/lock
      NOTICE="NOT the pinned tool chain: CAPOS_TOOLCHAIN=current asks for the suite's current packages; to adopt them: cp $LOCK_FILE $pinned"
      if [[ ! -e $LOCK_FILE ]]; then current_lock; fi
      local pinned_id=$LOCK_ID
      use_lock
      if [[ $LOCK_ID == "$pinned_id" ]]; then NOTICE=''; fi
      ;;
    *) die "CAPOS_TOOLCHAIN is '$CAPOS_TOOLCHAIN'; it is either 'pinned', the default, or 'current'" ;;
  esac
}

# Sets LOCK_ID and ROOT for LOCK_FILE.
use_lock() {
  LOCK_ID=$(lock_id "$LOCK_FILE")
  ROOT=$CACHE/root/$LOCK_ID
}

# Writes current/lock anew and prints how it differs from the pinned one.
current_lock() {
  preflight "$CACHE"
  mkdir -p "$CACHE/current"
  resolve_lock "$CACHE/current/lock"
  local difference
  difference=$(lock_difference "$TOOLCHAIN/lock" "$CACHE/current/lock")
  if [[ -n $difference ]]; then
    say "the current packages differ from the pinned ones:"
    printf '%s\n' "$difference" >&2
  else
    say 'the current packages are the pinned ones'
  fi
}

# Says at the end of the run what it was built with: always the notice, and the
# difference again if this run fell back.
repeat_notice() {
  if [[ -n ${FELL_BACK:-} ]]; then lock_difference "$TOOLCHAIN/lock" "$LOCK_FILE" >&2; fi
  say "$NOTICE"
}

# Brings the root file system of the lock in force into the cache, falling back to
# the current set if the pinned one is gone.
ensure_root() {
  if [[ -e $ROOT/.complete ]]; then return; fi
  setup_root "$LOCK_FILE"
  if ((${#FETCH_MISSING[@]} == 0)); then return; fi
  say "=============================================================================="
  say "the mirror no longer has: ${FETCH_MISSING[*]}"
  say "falling back from $LOCK_FILE to the suite's current packages, all of them"
  say "=============================================================================="
  current_lock
  FELL_BACK=yes
  if [[ $LOCK_FILE == "$TOOLCHAIN/lock" ]]; then : >"$CACHE/current/instead-of-$LOCK_ID"; fi
  choose_lock
  STEP=0
  if [[ -e $ROOT/.complete ]]; then return; fi
  setup_root "$LOCK_FILE"
  ((${#FETCH_MISSING[@]} == 0)) ||
    die "the mirror does not have ${FETCH_MISSING[*]} although its own index names it; it is being updated, try again in a while"
}
