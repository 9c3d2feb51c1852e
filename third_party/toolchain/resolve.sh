# resolve.sh: makes a lock from the suite as it is today, through signed apt.
#
# Sourced, never run. Used by `./bazelw relock`, and when a pinned package has
# left the mirror. The machine's apt-get does the resolving with a state of its own
# and checks the archive's signature with Debian's keyring; hashes in the new lock
# come out of that signed index and nowhere else. There is no unsigned way.
# shellcheck shell=bash

# Reads file $1, `packages` without one, into SUITE, WANTED and LEFT_OUT; a group's file
# also into NEEDED_BY and SKIPPED (see group.sh).
read_packages() {
  local file=${1:-$TOOLCHAIN/packages} kind name rest
  SUITE='' WANTED=() LEFT_OUT=() NEEDED_BY=() SKIPPED=()
  while read -r kind name rest || [[ -n $kind ]]; do
    case $kind in
      '' | '#'*) ;;
      suite) SUITE=$name ;;
      want) WANTED+=("$name") ;;
      drop) LEFT_OUT+=("$name") ;;
      for | skip)
        [[ $file == */packages.* ]] || die "$file: '$kind' belongs into the packages of a group"
        if [[ $kind == for ]]; then NEEDED_BY+=("$name"); else SKIPPED+=("$name"); fi
        ;;
      *) die "$file: a line begins with suite, want or drop, in a group also with for or skip, not with '$kind $name $rest'" ;;
    esac
  done <"$file"
}

# True if package $1 is left out.
is_left_out() {
  local pattern
  for pattern in "${LEFT_OUT[@]}"; do
    # shellcheck disable=SC2053 # the right side is a pattern
    if [[ $1 == $pattern ]]; then return 0; fi
  done
  return 1
}

# Prints the keyring with which Debian's archive is verified, or fails.
find_keyring() {
  local file
  for file in "${CAPOS_DEBIAN_KEYRING:-}" /usr/share/keyrings/debian-archive-keyring.{gpg,pgp}; do
    if [[ -n $file && -r $file ]]; then
      printf '%s' "$file"
      return
    fi
  done
  return 1
}

# Runs apt-get with a state of its own in folder $1, so that the machine's is
# neither read nor changed.
private_apt() {
  local state=$1
  shift
  LC_ALL=C apt-get -o Dir::State="$state" -o Dir::State::status="$state/status" -o Dir::Cache="$state/cache" \
    -o Dir::Etc::sourcelist="$state/sources.list" -o Dir::Etc::sourceparts=/dev/null -o Dir::Etc::parts=/dev/null \
    -o Dir::Etc::preferences=/dev/null -o Dir::Etc::preferencesparts=/dev/null -o Dir::Etc::trusted=/dev/null -o Dir::Etc::trustedparts=/dev/null \
    -o APT::Architecture=amd64 -o APT::Architectures=amd64 -o APT::Install-Recommends=false -o APT::Get::AllowUnauthenticated=false \
    -o Acquire::AllowInsecureRepositories=false -o Acquire::Check-Valid-Until=false -o Acquire::Languages=none -o Acquire::ForceHash=SHA256 \
    -o APT::Update::Error-Mode=any -o Debug::NoLocking=1 -o APT::Sandbox::User= -qq "$@"
}

# Prints what apt would fetch for packages $2…, with state $1: 'address' file size hash.
apt_closure() {
  local state=$1 words
  shift
  words=$(private_apt "$state" --print-uris --yes install "$@" 2>"$state/log") ||
    die "apt finds no consistent set of packages in suite $SUITE today ($(grep '^E:' "$state/log" | tail -n 1)); try again later or use another mirror"
  printf '%s\n' "$words"
}

# Writes to file $1 a lock of the suite as it is today, for the list of packages $2,
# `packages` without one.
resolve_lock() {
  local out=$1 list=${2:-$TOOLCHAIN/packages} mirror keyring state llvm='' name version address file size sum arch
  local -a wanted=()
  command -v apt-get >/dev/null ||
    die "a current set of packages is resolved with signed apt, and this machine has no apt-get; run on Debian, or use a mirror that still has the locked packages (CAPOS_DEBIAN_MIRROR)"
  keyring=$(find_keyring) ||
    die "Debian's archive keyring is not installed, so signatures cannot be checked; install the package debian-archive-keyring or set CAPOS_DEBIAN_KEYRING to the file"
  mirror=$(require_mirror)
  read_packages "$list"
  state=$CACHE/current/apt
  rm -rf "$state"
  mkdir -p "$state/lists/partial" "$state/cache/archives/partial"
  : >"$state/status"
  printf 'deb [arch=amd64 signed-by=%s] %s %s main\n' "$keyring" "$mirror" "$SUITE" >"$state/sources.list"
  say "resolving suite $SUITE of $mirror, signature checked with $keyring"
  private_apt "$state" update >"$state/log" 2>&1 ||
    die "the index of suite $SUITE could not be fetched and verified ($(grep -E '^[EW]:' "$state/log" | tail -n 1))"

  # rustc says which LLVM it is built on; linker and tools are those of that LLVM.
  if [[ " ${WANTED[*]} " =~ \ (lld|llvm)-\*\  ]]; then
    while read -r address file size sum; do
      if [[ $file == libllvm[0-9]*_* ]]; then llvm=${file#libllvm} llvm=${llvm%%_*}; fi
    done < <(apt_closure "$state" rustc)
    [[ -n $llvm ]] || die "rustc of suite $SUITE depends on no libllvm package, so the linker and the tools to go with it are unknown"
  fi
  for name in "${WANTED[@]}"; do
    case $name in
      'lld-*' | 'llvm-*') wanted+=("${name/%\*/$llvm}") ;;
      *) wanted+=("$name") ;;
    esac
  done

  apt_closure "$state" "${wanted[@]}" >"$state/closure"
  while read -r address file size sum; do
    [[ $address == \'*\' && $sum == SHA256:* ]] || continue
    address=${address#\'} address=${address%\'} address=${address#"$mirror/"}
    address=${address//%2b/+} address=${address//%7e/'~'} address=${address//%2B/+} address=${address//%7E/'~'}
    # File names are package_version_architecture.deb with an epoch's colon escaped.
    name=${file%%_*} version=${file#*_} arch=${version##*_} version=${version%_*} arch=${arch%.deb}
    version=${version//%3a/:}
    is_left_out "$name" || printf '%s %s %s %s %s %s\n' "$name" "$version" "$arch" "$address" "$size" "${sum#SHA256:}"
  done <"$state/closure" | LC_ALL=C sort >"$out.new"
  read_lock "$out.new"
  mv "$out.new" "$out"
  rm -rf "$state"
}

# Prints how lock $2 differs from lock $1, one package a line.
lock_difference() {
  local -A before=()
  local name version rest
  while read -r name version rest; do before[$name]=$version; done <"$1"
  while read -r name version rest; do
    if [[ -z ${before[$name]:-} ]]; then
      printf '  + %s %s\n' "$name" "$version"
    elif [[ ${before[$name]} != "$version" ]]; then
      printf '    %s %s -> %s\n' "$name" "${before[$name]}" "$version"
    fi
    unset "before[$name]"
  done <"$2"
  for name in "${!before[@]}"; do printf '  - %s %s\n' "$name" "${before[$name]}"; done | LC_ALL=C sort
}
