# carry.sh: files that a program started by `./bazelw run` is told of.
#
# Sourced, never run. The program runs in the sandbox, which sees the workspace and the
# cache and nothing else of the machine. A word of its command line that names a file
# elsewhere is replaced by one in the cache: what is there is copied in before, what the
# program has written is copied out after it.
#
# Uses CACHE, WORKSPACE and OUTPUT_ROOT.
# shellcheck shell=bash

# The folder in the cache, if anything is carried; the files outside, and inside.
CARRIED='' CARRIED_OUTSIDE=() CARRIED_INSIDE=()
# The command line as it is inside.
WORDS=()

# True if path $1 means the same inside.
is_seen_inside() {
  local folder
  for folder in "$WORKSPACE" "$CACHE" "$OUTPUT_ROOT"; do
    if [[ $1 == "$folder" || $1 == "$folder"/* ]]; then return; fi
  done
  return 1
}

# Sets PLACE to the path inside of the file that $1 names; fails if $1 names none that
# has to be carried: it is no path, is seen inside, or has no folder to be in.
carry_one() {
  local path=$1 folder
  case $path in
    /*) ;;
    ./* | ../*) path=$PWD/$path ;;
    *) return 1 ;;
  esac
  folder=$(cd "${path%/*}/" 2>/dev/null && pwd -P) || return 1
  path=${folder%/}/${path##*/}
  if [[ -d $path ]] || is_seen_inside "$path"; then return 1; fi
  if [[ -z $CARRIED ]]; then
    mkdir -p "$CACHE/home"
    CARRIED=$(mktemp -d "$CACHE/home/carried.XXXXXX")
  fi
  PLACE=$CARRIED/${#CARRIED_INSIDE[@]}/${path##*/}
  mkdir "${PLACE%/*}"
  if [[ -e $path ]]; then cp "$path" "$PLACE" || die "$path cannot be read"; fi
  CARRIED_OUTSIDE+=("$path")
  CARRIED_INSIDE+=("$PLACE")
}

# Sets WORDS to the command line "$@" of Bazel with the files of `run`'s program carried.
carry_in() {
  local word is_programs=no
  WORDS=()
  for word; do
    if [[ $is_programs == no ]]; then
      if [[ $1 == run && $word == -- ]]; then is_programs=yes; fi
      WORDS+=("$word")
    elif [[ $word == --*=* ]] && carry_one "${word#*=}"; then
      WORDS+=("${word%%=*}=$PLACE")
    elif carry_one "$word"; then
      WORDS+=("$PLACE")
    else
      WORDS+=("$word")
    fi
  done
}

# Copies out what was written, and forgets the rest. False if a file could not be written.
carry_out() {
  local place outside inside is_whole=yes
  for place in "${!CARRIED_INSIDE[@]}"; do
    outside=${CARRIED_OUTSIDE[place]} inside=${CARRIED_INSIDE[place]}
    if [[ ! -e $inside ]] || cmp -s "$inside" "$outside"; then continue; fi
    if cp "$inside" "$outside"; then say "wrote $outside"; else is_whole=no; fi
  done
  if [[ -n $CARRIED && $is_whole == yes ]]; then rm -rf "$CARRIED"; fi
  if [[ $is_whole == no ]]; then say "what could not be written is in $CARRIED"; fi
  [[ $is_whole == yes ]]
}
