#!/bin/bash
# fetch.sh: fetches the packages a lock names and keeps only what matches it.
#
#   fetch.sh LOCK FOLDER MIRROR        fetch every package of LOCK into FOLDER
#
# Needs bash, coreutils and curl or wget. A file FOLDER/<sha256>.deb exists only
# if its bytes had that hash; what is still on its way is
# <sha256>.<process>.<start time>.part, which only that process touches while it
# lives. A later run continues what a dead one began. Without flock a download
# that a killed fetcher left running may meet the next fetcher: both write parts of
# their own, and whoever finds the package there is done. Exit status: 0 all
# there, 1 an error that was printed, 4 the mirror no longer has some packages
# (they are listed).
#
# Knobs, each with its default:
#   CAPOS_FETCH_JOBS=4      downloads at a time
#   CAPOS_FETCH_STALL=30    seconds without data after which a download counts as stalled
#   CAPOS_FETCH_TRIES=4     tries in a row that bring no new byte before a package fails
#   CAPOS_FETCH_DELAY=1     seconds before the second try; each later one waits longer
# shellcheck source-path=SCRIPTDIR

if [[ ${BASH_SOURCE[0]} == "$0" ]]; then
  set -euo pipefail
  # shellcheck source=lib.sh
  . "${BASH_SOURCE[0]%/*}/lib.sh"
fi

FETCH_GONE=4

# Reads lock file $1 into the arrays LOCK_NAME, LOCK_VERSION, LOCK_ARCH,
# LOCK_PATH, LOCK_SIZE and LOCK_SHA256 and the sum LOCK_BYTES; a row that is not
# as it should be ends the run.
read_lock() {
  local file=$1 row=0 name version arch path size sha256 rest
  [[ -r $file ]] || die "cannot read the lock $file"
  LOCK_NAME=() LOCK_VERSION=() LOCK_ARCH=() LOCK_PATH=() LOCK_SIZE=() LOCK_SHA256=() LOCK_BYTES=0
  while read -r name version arch path size sha256 rest || [[ -n $name ]]; do
    row=$((row + 1))
    [[ -n $name && $name != '#'* ]] || continue
    [[ -z $rest && $size =~ ^[1-9][0-9]*$ && $sha256 =~ ^[0-9a-f]{64}$ && $path == pool/*.deb && $path != *..* ]] ||
      die "$file:$row: a row is 'package version architecture pool/path.deb size sha256', this one is not"
    LOCK_NAME+=("$name") LOCK_VERSION+=("$version") LOCK_ARCH+=("$arch")
    LOCK_PATH+=("$path") LOCK_SIZE+=("$size") LOCK_SHA256+=("$sha256")
    LOCK_BYTES=$((LOCK_BYTES + size))
  done <"$file"
  ((${#LOCK_NAME[@]})) || die "the lock $file names no package"
}

# Prints the size of file $1, 0 if there is none.
size_of() { stat -c %s "$1" 2>/dev/null || printf 0; }

# Prints the sha256 of file $1.
sha256_of() {
  local sum
  sum=$(sha256sum <"$1")
  printf '%s' "${sum%% *}"
}

# Brings the bytes of address $1 from offset $3 on into file $2. Leaves the HTTP
# status in HTTP_STATUS and the downloader's last words in HTTP_ERROR.
download() {
  local url=$1 part=$2 from=$3 stall=${CAPOS_FETCH_STALL:-30} status=0 words
  HTTP_STATUS=000 HTTP_ERROR=''
  if [[ ${CAPOS_DOWNLOADER:-} != wget ]] && command -v curl >/dev/null; then
    words=$(curl --silent --show-error --location --fail --connect-timeout "$stall" \
      --speed-limit 1 --speed-time "$stall" --continue-at "$from" --output "$part" \
      --write-out '\n%{http_code}' "$url" 2>&1) || status=$?
    HTTP_STATUS=${words##*$'\n'} HTTP_ERROR=${words%$'\n'*}
    HTTP_ERROR=${HTTP_ERROR%%$'\n'*}
    # 33: the server does not continue a file. The next try starts it anew.
    if ((status == 33)); then rm -f "$part"; fi
  elif command -v wget >/dev/null; then
    local -a range=()
    if ((from)); then range=(--continue); fi
    words=$(LC_ALL=C wget --no-verbose --server-response --tries=1 --timeout="$stall" "${range[@]}" \
      --output-document="$part" "$url" 2>&1) || status=$?
    [[ $words =~ .*HTTP/[0-9.]+\ ([0-9]{3}) ]] && HTTP_STATUS=${BASH_REMATCH[1]}
    HTTP_ERROR="wget: ${words##*$'\n'}"
  else
    HTTP_ERROR='neither curl nor wget is installed'
    return 1
  fi
  # 416: the server has no byte at the offset, so the part is not of this file.
  if [[ $HTTP_STATUS == 416 ]]; then rm -f "$part"; fi
  return "$status"
}

# True if file $1 is there and has the sha256 $2.
is_whole() { [[ -e $1 && $(sha256_of "$1") == "$2" ]]; }

# Prints those of the parts $@ that are there and whose process is dead, one a line.
abandoned() {
  local part owner
  for part in "$@"; do
    owner=${part##*/} owner=${owner#*.} owner=${owner%part} owner=${owner%.}
    if [[ -e $part ]] && ! is_same_process "${owner%.*}" "${owner#*.}"; then printf '%s\n' "$part"; fi
  done
}

# Continues in file $3 what dead processes began of the package with sha256 $2 in folder $1, and
# removes their parts. Copied, not moved: a downloader may outlive its process and write on.
adopt_part() {
  local part have best=0
  while IFS= read -r part; do
    have=$(size_of "$part")
    if ((have > best)) && cp -f "$part" "$3" 2>/dev/null; then best=$have; fi
    rm -f "$part"
  done < <(abandoned "$1/$2".*part)
}

# Removes from folder $1 what dead processes left of packages that are there.
drop_abandoned() {
  local part name
  while IFS= read -r part; do
    name=${part##*/}
    if [[ -e $1/${name%%.*}.deb ]]; then rm -f "$part"; fi
  done < <(abandoned "$1"/*.part)
}

# Fetches row $1 of the lock into folder $2 from mirror $3. Returns 0 if the
# verified file is there, FETCH_GONE if the mirror has none, 1 with the reason in
# FETCH_ERROR otherwise.
fetch_row() {
  local row=$1 dir=$2 mirror=$3
  local size=${LOCK_SIZE[row]} sha256=${LOCK_SHA256[row]} what="${LOCK_NAME[row]} ${LOCK_VERSION[row]}"
  local deb=$dir/$sha256.deb me=$BASHPID part have best=0 idle=0 sum
  part=$dir/$sha256.$me.$(start_time "$me").part
  FETCH_ERROR=''
  adopt_part "$dir" "$sha256" "$part"
  while ((idle < ${CAPOS_FETCH_TRIES:-4})); do
    if ((idle)); then sleep "$((idle * ${CAPOS_FETCH_DELAY:-1}))"; fi
    # Somebody else may have been faster.
    if is_whole "$deb" "$sha256"; then
      rm -f "$part"
      return 0
    fi
    if [[ -e $dir/.stop ]]; then return 1; fi
    have=$(size_of "$part")
    if ((have < size)) && ! download "$mirror/${LOCK_PATH[row]}" "$part" "$have"; then
      if [[ $HTTP_STATUS == 404 || $HTTP_STATUS == 410 ]]; then
        rm -f "$part"
        if is_whole "$deb" "$sha256"; then return 0; fi
        return "$FETCH_GONE"
      fi
      FETCH_ERROR="$what: ${HTTP_ERROR:-the download failed}"
    fi
    have=$(size_of "$part")
    if ((have == size)); then
      sum=$(sha256_of "$part")
      if [[ $sum == "$sha256" ]]; then
        if chmod 644 "$part" && mv -f "$part" "$deb"; then return 0; fi
        FETCH_ERROR="$what: cannot be written to $dir"
        return 1
      fi
      FETCH_ERROR="$what: the mirror's file has the sha256 $sum, the lock asks for $sha256"
      rm -f "$part"
    elif ((have > size)); then
      FETCH_ERROR="$what: the mirror's file is longer than the $size bytes of the lock"
      rm -f "$part"
    elif [[ -z $FETCH_ERROR ]]; then
      FETCH_ERROR="$what: the mirror's file ends after $have of $size bytes"
    fi
    # A try that got further is not a failed one: a slow line gets there.
    if ((have > best && have < size)); then best=$have idle=0; fi
    idle=$((idle + 1))
  done
  return 1
}

# Removes from folder $1 what has the name of a row of $2… and not its hash.
drop_damaged() {
  local dir=$1 row file
  shift
  for row in "$@"; do
    file=$dir/${LOCK_SHA256[row]}.deb
    [[ -e $file ]] && printf '%s  %s\n' "${LOCK_SHA256[row]}" "$file"
  done | sha256sum --check --quiet 2>/dev/null | while IFS= read -r file; do
    file=${file%: *}
    say "$file is damaged; fetching it again"
    rm -f "$file"
  done || true
}

# Fetches the rows of the lock that are given as $3… (all if none is) into folder
# $1 from mirror $2. Needs read_lock. What the mirror no longer has is left in
# FETCH_MISSING, which is empty if all is there; any other failure ends the run.
fetch() {
  local dir=$1 mirror=$2 row done_rows=0 done_bytes=0 bytes=0 jobs=${CAPOS_FETCH_JOBS:-4} channel line
  local -a rows todo=() parts
  local -A running=()
  shift 2
  rows=("$@")
  ((${#rows[@]})) || rows=("${!LOCK_NAME[@]}")
  mkdir -p "$dir"
  lock "$dir/.lock"
  local handle=$LOCK_HANDLE
  rm -f "$dir/.stop"
  drop_damaged "$dir" "${rows[@]}"
  drop_abandoned "$dir"
  for row in "${rows[@]}"; do
    bytes=$((bytes + LOCK_SIZE[row]))
    if [[ -e $dir/${LOCK_SHA256[row]}.deb ]]; then
      done_rows=$((done_rows + 1)) done_bytes=$((done_bytes + LOCK_SIZE[row]))
    else
      todo+=("$row")
    fi
  done

  # Workers answer through a pipe, so that one loop sees results and time pass.
  local pipe=$dir/.answers.$$
  mkfifo "$pipe"
  exec {channel}<>"$pipe"
  rm -f "$pipe"
  FETCH_MISSING=()
  local failed='' next=0 now begun=''
  while ((next < ${#todo[@]} && ${#FETCH_MISSING[@]} == 0)) && [[ -z $failed ]] || ((${#running[@]})); do
    while ((${#running[@]} < jobs && next < ${#todo[@]} && ${#FETCH_MISSING[@]} == 0)) && [[ -z $failed ]]; do
      row=${todo[next]} next=$((next + 1))
      (
        status=0
        fetch_row "$row" "$dir" "$mirror" || status=$?
        printf '%s %s %s\n' "$row" "$status" "$FETCH_ERROR" >&"$channel"
      ) &
      running[$row]=$dir/${LOCK_SHA256[row]}.$!
    done
    # On a busy machine the time can be up in the middle of a line: what was read of it
    # is kept, or its worker would be waited for without end.
    if ! read -r -t 0.5 -u "$channel" line; then
      begun+=$line
    else
      line=$begun$line begun=''
      row=${line%% *} line=${line#* }
      unset "running[$row]"
      case ${line%% *} in
        0) done_rows=$((done_rows + 1)) done_bytes=$((done_bytes + LOCK_SIZE[row])) ;;
        "$FETCH_GONE") FETCH_MISSING+=("${LOCK_NAME[row]} ${LOCK_VERSION[row]}") ;;
        *) if [[ -z $failed ]]; then failed=${line#* } && : >"$dir/.stop"; fi ;;
      esac
    fi
    now=$done_bytes
    parts=()
    for line in "${running[@]}"; do parts+=("$line".*.part); done
    if ((${#parts[@]})); then
      while read -r line; do now=$((now + line)); done < <(stat -c %s "${parts[@]}" 2>/dev/null)
    fi
    progress "$done_rows of ${#rows[@]} packages, $(mb "$now") of $(mb "$bytes") MB,"
  done
  wait
  exec {channel}>&-
  rm -f "$dir/.stop"
  unlock "$handle"
  if [[ -t 2 ]] && ((${#todo[@]})) && [[ -n $failed || ${#FETCH_MISSING[@]} -gt 0 ]]; then printf '\n' >&2; fi
  if [[ -n $failed ]]; then die "$failed (from $mirror); run the same command again to continue where it stopped"; fi
}

if [[ ${BASH_SOURCE[0]} == "$0" ]]; then
  (($# == 3)) || die "usage: fetch.sh LOCK FOLDER MIRROR"
  STEPS=1
  step packages
  read_lock "$1"
  fetch "$2" "${3%/}"
  if ((${#FETCH_MISSING[@]})); then
    say "the mirror no longer has: ${FETCH_MISSING[*]}"
    exit "$FETCH_GONE"
  fi
  step_done "${#LOCK_NAME[@]} packages, $(mb "$LOCK_BYTES") MB verified,"
fi
