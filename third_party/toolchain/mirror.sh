# mirror.sh: finds the Debian archive to fetch packages from.
#
# Sourced, never run. The project names no host: the address comes from the
# person (CAPOS_DEBIAN_MIRROR) or from the machine's own apt configuration.
# shellcheck shell=bash

# Debian's suites. Another distribution's archive has other suites and does not
# hold the pinned packages, so its address does not count.
DEBIAN_SUITES=' stable testing unstable oldstable oldoldstable sid experimental buster bullseye bookworm trixie forky duke '

# True if $1 is a suite of the main Debian archive; updates and backports live
# in the same archive, security does not.
is_debian_suite() {
  local suite=${1%/}
  suite=${suite%-updates} suite=${suite%-proposed} suite=${suite%-backports}
  [[ $DEBIAN_SUITES == *" $suite "* ]]
}

# True if $1 is an address both curl and wget can fetch from.
is_web_address() { [[ $1 == http://?* || $1 == https://?* ]]; }

# Prints the address of each Debian archive in the one-line source file $1.
mirrors_in_list() {
  local line word seen_type uri
  while read -r line || [[ -n $line ]]; do
    line=${line%%#*}
    # Options are in brackets after the type and may hold blanks.
    [[ $line =~ ^(deb)[[:space:]]+\[[^]]*\](.*)$ ]] && line="deb ${BASH_REMATCH[2]}"
    seen_type='' uri=''
    for word in $line; do
      if [[ -z $seen_type ]]; then
        [[ $word == deb ]] || break
        seen_type=yes
      elif [[ -z $uri ]]; then
        uri=$word
      else
        if is_web_address "$uri" && is_debian_suite "$word"; then printf '%s\n' "${uri%/}"; fi
        break
      fi
    done
  done <"$1"
}

# Prints the address of each Debian archive in the deb822 source file $1.
mirrors_in_sources() {
  local line key types='' uris='' suites='' enabled=yes
  _stanza_end() {
    local uri suite
    if [[ " $types " == *" deb "* && $enabled != no ]]; then
      for suite in $suites; do
        is_debian_suite "$suite" || continue
        for uri in $uris; do
          if is_web_address "$uri"; then printf '%s\n' "${uri%/}"; fi
        done
        break
      done
    fi
    types='' uris='' suites='' enabled=yes key=''
  }
  key=''
  while IFS= read -r line || [[ -n $line ]]; do
    if [[ $line == '#'* ]]; then continue; fi
    if [[ $line =~ ^[[:space:]]*$ ]]; then
      _stanza_end
      continue
    fi
    # A line that begins with a blank continues the field above.
    if [[ $line == [![:space:]]*:* ]]; then key=${line%%:*} key=${key,,} line=${line#*:}; fi
    read -r line <<<"$line" || true
    case $key in
      types) types+=" $line" ;;
      uris) uris+=" $line" ;;
      suites) suites+=" $line" ;;
      enabled) enabled=${line,,} ;;
    esac
  done <"$1"
  _stanza_end
}

# Prints the mirror to use, or fails if none is known. $1 is apt's
# configuration folder (default /etc/apt).
find_mirror() {
  local apt=${1:-/etc/apt} file found=''
  if [[ -n ${CAPOS_DEBIAN_MIRROR:-} ]]; then
    printf '%s' "${CAPOS_DEBIAN_MIRROR%/}"
    return
  fi
  for file in "$apt"/sources.list "$apt"/sources.list.d/*; do
    [[ -r $file ]] || continue
    case $file in
      *.list) found=$(mirrors_in_list "$file") ;;
      *.sources) found=$(mirrors_in_sources "$file") ;;
    esac
    if [[ -n $found ]]; then
      printf '%s' "${found%%$'\n'*}"
      return
    fi
  done
  return 1
}

# Prints the mirror to use or ends the run with the sentence that asks for it.
require_mirror() {
  find_mirror "$@" ||
    die "no Debian mirror is known: this machine's apt configuration names none; set CAPOS_DEBIAN_MIRROR to the address of one (the folder that holds 'dists' and 'pool')"
}
