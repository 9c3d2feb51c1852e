# doctor.sh: `./bazelw doctor` and `./bazelw prune`: what is pinned, found and taken up.
#
# Sourced, never run. doctor changes nothing and ends with 0 if a build could start.
# shellcheck shell=bash

# Prints one line of the report: $1 what, the rest its value.
row() {
  local what=$1
  shift
  printf '%-16s %s\n' "$what" "$*"
}

# Prints the megabytes folder $1 takes up, 0 if there is none.
folder_mb() {
  local size=0 _
  if [[ -d $1 ]]; then read -r size _ < <(du -sm "$1" 2>/dev/null) || true; fi
  printf '%s' "${size:-0}"
}

# Prints the version that the lock read last has for the packages matching $1.
locked_version() {
  local row
  for row in "${!LOCK_NAME[@]}"; do
    # shellcheck disable=SC2053 # the right side is a pattern
    if [[ ${LOCK_NAME[row]} == $1 ]]; then
      printf '%s %s' "${LOCK_NAME[row]}" "${LOCK_VERSION[row]}"
      return
    fi
  done
  printf 'not in the lock'
}

# Prints the report.
doctor() {
  local part sound=0 mirror
  read_lock "$LOCK_FILE"
  row workspace "$WORKSPACE"
  row machine "$(uname -s) $(uname -m), kernel $(uname -r), $(nproc) processors, user $EUID"
  row lock "$LOCK_FILE: ${#LOCK_NAME[@]} packages, $(mb "$LOCK_BYTES") MB; identity $LOCK_ID"
  if [[ -n $NOTICE ]]; then row '' "$NOTICE"; fi
  for part in bazel-bootstrap bazel-rules-rust rustc 'lld-*' gcc qemu-system-x86 ovmf capnproto xorriso gdb bubblewrap; do
    row '' "$(locked_version "$part")"
  done
  group_names
  for part in "${GROUP_NAMES[@]}"; do
    read_lock "$TOOLCHAIN/lock.$part"
    if [[ -e $(group_folder "$part")/.complete ]]; then mirror='set up'; else mirror="not set up; './bazelw group $part' does it"; fi
    row "group $part" "${LOCK_NAME[0]} ${LOCK_VERSION[0]}, $(mb "$LOCK_BYTES") MB: $mirror"
  done
  if mirror=$(find_mirror); then row mirror "$mirror"; else row mirror 'none known; set CAPOS_DEBIAN_MIRROR'; fi
  if command -v apt-get >/dev/null && find_keyring >/dev/null; then
    row 'signed apt' "yes, keyring $(find_keyring)"
  else
    row 'signed apt' 'no (needed only by relock and when a pinned package has left the mirror)'
  fi
  row cache "$CACHE: $(free_mb "$CACHE") MB free"
  for part in root group debs crates disk out; do
    row '' "$part $(folder_mb "$CACHE/$part") MB"
  done
  if [[ -e $ROOT/.complete ]]; then
    row 'root file system' "$ROOT, complete"
    if probe_sandbox; then
      row sandbox "works ($([[ $SANDBOX_MODE == direct ]] && echo 'as root' || echo 'in a user namespace')), network unshared, second user namespace inside"
    else
      row sandbox "refused: $SANDBOX_ERROR"
      sound=1
    fi
  else
    row 'root file system' 'not set up yet; the next Bazel command does it'
    if (check_namespaces_early) 2>/dev/null; then row sandbox 'namespaces are allowed'; else
      row sandbox "$( (check_namespaces_early) 2>&1)"
      sound=1
    fi
  fi
  setup_crates_name
  if [[ -n $CRATES && -d $CRATES ]]; then row crates "$CRATES"; else row crates 'not fetched yet'; fi
  holder_state
  if holder_lives; then
    row holder "process $HOLDER_PID, $HOLDER_MODE mode, $HOLDER_IS"
  else
    row holder 'none; the next Bazel command starts one'
  fi
  return "$sound"
}

# Removes root file systems, packages and crates that this checkout does not use.
# Another checkout with the same cache sets up again what it misses.
prune() {
  local before path name groups=' '
  before=$(folder_mb "$CACHE")
  group_names
  for name in "${GROUP_NAMES[@]}"; do groups+="$(group_folder "$name") "; done
  setup_crates_name
  for path in "$CACHE"/root/* "$CACHE"/root/.new-* "$CACHE"/group/* "$CACHE"/group/.new-* "$CACHE"/crates/* "$CACHE"/crates/.new-* "$CACHE"/debs/*; do
    if [[ -e $path && $path != "$ROOT" && $path != "$CRATES" && $groups != *" $path "* ]]; then rm -rf "$path"; fi
  done
  say "the cache took $before MB and takes $(folder_mb "$CACHE") MB now"
}
