# setup.sh: brings the tool chain of a lock into the cache, step by step.
#
# Sourced, never run. Finished things appear under their final name in one move,
# so that an interrupted set-up is never taken for a finished one:
#   debs/<sha256>.deb   a package, while it is needed (see fetch.sh)
#   root/<id>/          a root file system; <id> is the hash of lock and recipe
#   crates/<id>/        the registry crates of a Cargo.lock, vendored
# shellcheck shell=bash

# Prints the identity of lock file $1: it names the root file system and is part
# of every action's key.
lock_id() { cat "$1" "$TOOLCHAIN/rootfs.sh" | hash16; }

# Brings the root file system of lock file $1 to $ROOT. If the mirror no longer has
# some of the packages, they are left in FETCH_MISSING and there is no $ROOT; any
# other failure ends the run. Not to be called in a condition: bash would then go on
# after a command that failed.
setup_root() {
  local lock_file=$1 row mirror new unpacked=0 running=0 jobs
  local -a first=() rest=()
  umask 022
  FETCH_MISSING=()
  preflight "$CACHE"
  mirror=$(require_mirror)
  read_lock "$lock_file"
  check_network "$mirror" "${LOCK_PATH[0]}"
  mkdir -p "$CACHE/root" "$CACHE/home" "$OUTPUT_ROOT"
  lock "$CACHE/root/.lock"
  local handle=$LOCK_HANDLE
  if [[ -e $ROOT/.complete ]]; then
    unlock "$handle"
    return
  fi
  say "setting up the tool chain ${ROOT##*/} in $CACHE (once; ${#LOCK_NAME[@]} packages, $(mb "$LOCK_BYTES") MB from $mirror)"

  step packages
  new=$CACHE/root/.new-${ROOT##*/}
  rm -rf "$new"
  mkdir "$new"
  for row in "${!LOCK_NAME[@]}"; do
    if is_first_package "${LOCK_NAME[row]}"; then first+=("$row"); else rest+=("$row"); fi
  done
  fetch "$CACHE/debs" "$mirror" "${first[@]}"
  if ((${#FETCH_MISSING[@]} == 0)); then
    for row in "${first[@]}"; do unpack_deb "$CACHE/debs/${LOCK_SHA256[row]}.deb" "$new"; done
    ROOT=$new probe_sandbox || namespaces_refused "$SANDBOX_ERROR"
    fetch "$CACHE/debs" "$mirror"
  fi
  if ((${#FETCH_MISSING[@]})); then
    rm -rf "$new"
    unlock "$handle"
    return
  fi
  step_done "${#LOCK_NAME[@]} packages, $(mb "$LOCK_BYTES") MB, every hash verified,"

  step unpack
  jobs=$(nproc)
  for row in "${rest[@]}"; do
    if ((running >= jobs)); then
      wait -n || die "a package could not be unpacked (see above)"
      running=$((running - 1)) unpacked=$((unpacked + 1))
      progress "$((unpacked + ${#first[@]})) of ${#LOCK_NAME[@]} packages,"
    fi
    unpack_deb "$CACHE/debs/${LOCK_SHA256[row]}.deb" "$new" &
    running=$((running + 1))
  done
  while ((running > 0)); do
    wait -n || die "a package could not be unpacked (see above)"
    running=$((running - 1))
  done
  finish_root "$new"
  cp "$lock_file" "$new/.lock"
  : >"$new/.complete"
  sync -f "$new/.complete" 2>/dev/null || true
  mv -T "$new" "$ROOT"
  # The packages have done their work; a root file system is all a build needs.
  if [[ -z ${CAPOS_KEEP_DEBS:-} ]]; then
    for row in "${!LOCK_NAME[@]}"; do rm -f "$CACHE/debs/${LOCK_SHA256[row]}.deb"; done
  fi
  unlock "$handle"
  step_done "root file system of $(du -sm --apparent-size "$ROOT" | cut -f1) MB,"
  local -a roots=("$CACHE"/root/*/)
  if ((${#roots[@]} > 1)); then say "the cache holds $((${#roots[@]} - 1)) other tool chain(s); './bazelw prune' removes what this checkout does not use"; fi
}

# Sets CRATES to the folder of the vendored crates of the workspace's Cargo.lock,
# whether it is there yet or not; empty if the workspace has no such file.
setup_crates_name() {
  CRATES=''
  if [[ -e $WORKSPACE/third_party/crates/Cargo.lock ]]; then
    CRATES=$CACHE/crates/$(hash16 <"$WORKSPACE/third_party/crates/Cargo.lock")
  fi
}

# Removes from the vendored crates in folder $1 what is of other systems. Cargo resolves
# for every system at once, so these crates are in the lock and their manifests are
# needed; their sources and import libraries are never compiled here.
trim_crates() {
  local crate
  for crate in "$1"/windows-sys-[0-9]* "$1"/windows_*-[0-9]* "$1"/winapi-[0-9]* "$1"/winapi-*-gnu-[0-9]*; do
    if [[ -d $crate ]]; then
      find "$crate" -type f ! -name Cargo.toml ! -name .cargo-checksum.json ! -name build.rs ! -path "$crate/src/lib.rs" -delete
      find "$crate" -mindepth 1 -type d -empty -delete
    fi
  done
}

# Sets CRATES and fetches the crates if they are not there. This is the only step
# of the sandbox that has the network.
setup_crates() {
  local manifest=$WORKSPACE/third_party/crates/Cargo.toml new
  setup_crates_name
  if [[ -z $CRATES || -d $CRATES ]]; then return; fi
  mkdir -p "$CACHE/crates" "$CACHE/home"
  lock "$CACHE/crates/.lock"
  local handle=$LOCK_HANDLE
  if [[ ! -d $CRATES ]]; then
    step crates
    progress 'fetching with cargo,'
    new=$CACHE/crates/.new-${CRATES##*/}
    rm -rf "$new" "$new.cargo"
    mkdir -p "$new.cargo"
    probe_sandbox || namespaces_refused "$SANDBOX_ERROR"
    local -a variables=(CARGO_HOME="$new.cargo")
    local name
    for name in http_proxy https_proxy no_proxy HTTPS_PROXY NO_PROXY; do
      if [[ -n ${!name:-} ]]; then variables+=("$name=${!name}"); fi
    done
    run_once "$SANDBOX_MODE" yes "$WORKSPACE" /usr/bin/env "${variables[@]}" \
      cargo --quiet vendor --locked --versioned-dirs --manifest-path "$manifest" "$new" >"$new.cargo/source.toml" 2>"$new.cargo/log" ||
      die "the crates of third_party/crates/Cargo.lock could not be fetched: $(grep -v '^ *$' "$new.cargo/log" | tail -n 4 | tr '\n' ' ')"
    rm -rf "$new.cargo"
    trim_crates "$new"
    mv -T "$new" "$CRATES"
    step_done "$(find "$CRATES" -mindepth 1 -maxdepth 1 | wc -l) crates, checksums verified by cargo,"
  fi
  unlock "$handle"
}
