# preflight.sh: what must be true of this machine before anything is downloaded.
#
# Sourced, never run. Each check that fails ends the run with one sentence. The
# machine's settings are looked at, never changed.
# shellcheck shell=bash

# Free space the first set-up and a first build need, in megabytes: packages and
# root file system 1 900, crates 200, Bazel's output and disk cache the rest.
DISK_NEEDED_MB=4500

# Runs every check. $1 is the folder that will hold the cache.
preflight() {
  check_machine "$(uname -s)" "$(uname -m)"
  check_tools
  check_disk "$1"
  check_namespaces_early
}

# The tool chain is made of Linux programs for x86_64. $1: system, $2: processor.
check_machine() {
  [[ $1 == Linux && $2 == x86_64 ]] ||
    die "this is $1 on $2, and the pinned tool chain runs on Linux on x86_64 only"
}

# The few programs the set-up itself needs.
check_tools() {
  local tool
  for tool in tar xz sha256sum stat dd mkfifo; do
    command -v "$tool" >/dev/null || die "$tool is not installed; the set-up needs bash, tar, xz, coreutils and curl or wget"
  done
  command -v curl >/dev/null || command -v wget >/dev/null || die "neither curl nor wget is installed; one of them is needed to fetch packages"
}

# Prints the free megabytes of the file system that folder $1 is or will be on.
free_mb() {
  local folder=$1 blocks size
  until [[ -d $folder ]]; do folder=${folder%/*} folder=${folder:-/}; done
  read -r blocks size < <(stat -f -c '%a %S' "$folder")
  printf '%s' "$((blocks * size / 1000000))"
}

# Enough room for packages, root file system and a first build.
check_disk() {
  local free
  free=$(free_mb "$1")
  ((free >= ${CAPOS_DISK_NEEDED_MB:-$DISK_NEEDED_MB})) ||
    die "$1 has $free MB free and ${CAPOS_DISK_NEEDED_MB:-$DISK_NEEDED_MB} MB are needed; make room or set CAPOS_CACHE to a folder that has it"
}

# The mirror $1 answers at all. $2 is a path that it should have; an answer of
# "not found" is an answer too.
check_network() {
  local status=0 words
  if [[ ${CAPOS_DOWNLOADER:-} != wget ]] && command -v curl >/dev/null; then
    words=$(curl --silent --show-error --head --location --connect-timeout "${CAPOS_FETCH_STALL:-30}" \
      --max-time "$((${CAPOS_FETCH_STALL:-30} * 2))" --output /dev/null "$1/$2" 2>&1) || status=$?
  else
    words=$(LC_ALL=C wget --no-verbose --spider --tries=1 --timeout="${CAPOS_FETCH_STALL:-30}" "$1/$2" 2>&1) || status=$?
    # 8: the server answered with an error, so there is a network.
    if ((status == 8)); then status=0; fi
  fi
  ((status == 0)) || die "no network: the mirror $1 does not answer (${words##*$'\n'}); check the connection or set CAPOS_DEBIAN_MIRROR"
}

# Does with the machine's own unshare what the sandbox will do. Without one the
# check waits for bubblewrap, which is among the first packages.
check_namespaces_early() {
  local -a inner=(unshare --user --map-root-user --net --mount --pid --fork --mount-proc true)
  local words
  command -v unshare >/dev/null || return 0
  if ((EUID == 0)) && words=$(unshare --mount --net --uts --ipc "${inner[@]}" 2>&1); then return 0; fi
  if words=$(unshare --user --map-root-user --mount --net --uts --ipc "${inner[@]}" 2>&1); then return 0; fi
  namespaces_refused "${words##*$'\n'}"
}

# Prints the value of kernel setting $1, nothing if it does not exist.
setting() {
  local value=''
  { read -r value <"/proc/sys/${1//.//}"; } 2>/dev/null || true
  printf '%s' "$value"
}

# Ends the run because a sandbox cannot be made, with what an administrator would
# change. $1: the words of the program that was refused.
namespaces_refused() {
  local advice
  if [[ $(setting kernel.apparmor_restrict_unprivileged_userns) == 1 ]] && ((EUID != 0)); then
    advice='an administrator could run: sysctl kernel.apparmor_restrict_unprivileged_userns=0'
  elif [[ $(setting kernel.unprivileged_userns_clone) == 0 ]] && ((EUID != 0)); then
    advice='an administrator could run: sysctl kernel.unprivileged_userns_clone=1'
  elif [[ $(setting user.max_user_namespaces) == 0 || ${1:-} == *'No space left on device'* ]]; then
    advice='an administrator could run: sysctl user.max_user_namespaces=10000'
  else
    advice='in a container, whoever starts it could allow them (for instance --privileged, or --security-opt seccomp=unconfined --security-opt apparmor=unconfined --security-opt systempaths=unconfined --cap-add SYS_ADMIN)'
  fi
  die "this machine does not let bazelw make a sandbox without network and a user namespace inside it (${1:-no reason given}); $advice"
}
