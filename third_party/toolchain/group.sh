# group.sh: packages beside the tool chain's own, for targets that few people ask for.
#
# Sourced, never run. A group NAME is the two files packages.NAME and lock.NAME. It is
# fetched and checked like the tool chain, but unpacked into a folder of its own, and
# only when somebody asks for a target it is for, or with `./bazelw group NAME`. Bazel
# is told where it is; its files are inputs of the actions that use them and part of no
# other action's key.
#   group/<id>/   a group, unpacked; <id> is the hash of its files and of the recipe
# shellcheck shell=bash

# Free space a group needs while it is set up, in megabytes.
GROUP_NEEDED_MB=600

# Sets GROUP_NAMES to the groups there are.
group_names() {
  local file
  GROUP_NAMES=()
  for file in "$TOOLCHAIN"/packages.*; do
    if [[ -e $file ]]; then GROUP_NAMES+=("${file##*/packages.}"); fi
  done
}

# Ends the run unless there is a group $1.
require_group() {
  local name
  group_names
  for name in "${GROUP_NAMES[@]}"; do if [[ $name == "${1:-}" ]]; then return; fi; done
  die "there is no group '${1:-}'; there is: ${GROUP_NAMES[*]}"
}

# Prints the folder of group $1, whether it is there yet or not.
group_folder() {
  printf '%s/group/%s' "$CACHE" "$(cat "$TOOLCHAIN/lock.$1" "$TOOLCHAIN/packages.$1" "$TOOLCHAIN/rootfs.sh" | hash16)"
}

# True if one of the words $2… is a target that group $1 is for.
group_is_asked_for() {
  local name=$1 word target
  shift
  read_packages "$TOOLCHAIN/packages.$name"
  for word in "$@"; do
    for target in "${NEEDED_BY[@]}"; do
      if [[ $word == "$target" || $word == "@$target" ]]; then return 0; fi
    done
  done
  return 1
}

# Brings group $1 to its folder if it is not there. Not to be called in a condition:
# bash would then go on after a command that failed.
ensure_group() {
  local name=$1 folder new mirror row
  folder=$(group_folder "$name")
  if [[ -e $folder/.complete ]]; then return; fi
  umask 022
  CAPOS_DISK_NEEDED_MB=${CAPOS_DISK_NEEDED_MB:-$GROUP_NEEDED_MB} preflight "$CACHE"
  mirror=$(require_mirror)
  read_lock "$TOOLCHAIN/lock.$name"
  read_packages "$TOOLCHAIN/packages.$name"
  check_network "$mirror" "${LOCK_PATH[0]}"
  mkdir -p "$CACHE/group"
  lock "$CACHE/group/.lock"
  local handle=$LOCK_HANDLE
  if [[ ! -e $folder/.complete ]]; then
    say "setting up the group $name in $CACHE (once; ${#LOCK_NAME[@]} packages, $(mb "$LOCK_BYTES") MB from $mirror)"
    local STEP=0 STEPS=1
    local -a ROOT_EXCLUDE=("${SKIPPED[@]}")
    step "$name"
    fetch "$CACHE/debs" "$mirror"
    ((${#FETCH_MISSING[@]} == 0)) ||
      die "the mirror no longer has ${FETCH_MISSING[*]}; './bazelw relock $name' names the packages of today, or use a mirror that still has them (CAPOS_DEBIAN_MIRROR)"
    new=$CACHE/group/.new-${folder##*/}
    rm -rf "$new"
    mkdir "$new"
    for row in "${!LOCK_NAME[@]}"; do unpack_deb "$CACHE/debs/${LOCK_SHA256[row]}.deb" "$new"; done
    : >"$new/.complete"
    sync -f "$new/.complete" 2>/dev/null || true
    mv -T "$new" "$folder"
    if [[ -z ${CAPOS_KEEP_DEBS:-} ]]; then
      for row in "${!LOCK_NAME[@]}"; do rm -f "$CACHE/debs/${LOCK_SHA256[row]}.deb"; done
    fi
    step_done "every hash verified, $(du -sm --apparent-size "$folder" | cut -f1) MB,"
  fi
  unlock "$handle"
}

# Sets up the groups that the words "$@" ask for, and sets GROUP_SETTINGS to what Bazel
# is told of those that are there.
ensure_groups() {
  local name folder asked
  group_names
  GROUP_SETTINGS=''
  for name in "${GROUP_NAMES[@]}"; do
    asked=no
    if group_is_asked_for "$name" "$@"; then asked=yes; fi
    if [[ $asked == yes ]]; then ensure_group "$name"; fi
    folder=$(group_folder "$name")
    if [[ -e $folder/.complete ]]; then
      GROUP_SETTINGS+=$'\n'"common --repo_env=CAPOS_GROUP_${name^^}=$folder"
    fi
  done
}
