# sandbox.sh: the sandbox that Bazel and every action live in.
#
# Sourced, never run. bubblewrap and nsenter come from the root file system and
# run through its own dynamic loader, so the machine's C library does not matter.
#
# Inside: the root file system read-only at /usr and /etc, the workspace, the
# cache and the output root at their own paths, nothing else of the machine; an
# environment made from nothing; no network beside its own loopback.
#
# Bazel's server must outlive the command that started it, and a second sandbox
# could not reach it. So one process, the holder, keeps one sandbox alive for each
# pair of workspace and output root (that is: for each Bazel server), and every
# command enters that sandbox. The holder ends by itself once nothing has run in
# its sandbox for a while.
#
# Uses ROOT, CACHE, WORKSPACE, OUTPUT_ROOT, LOCK_ID and NET (yes or no).
# shellcheck shell=bash

# How often the holder looks whether anybody is left, in seconds. It ends at the
# second look in a row that finds nobody.
HOLDER_LOOKS_EVERY=300

# Bazel's server ends after this many seconds without a command.
SERVER_IDLE_SECONDS=10800

# Runs program $1 of the root file system on the machine itself.
run_root_program() {
  local program=$1
  shift
  "$ROOT/usr/lib64/ld-linux-x86-64.so.2" --library-path "$ROOT/usr/lib/x86_64-linux-gnu" "$ROOT/usr/bin/$program" "$@"
}

# Prints the machine's bundle of certificate authorities, if it has one.
host_certificates() {
  local file
  for file in "${SSL_CERT_FILE:-}" /etc/ssl/certs/ca-certificates.crt /etc/pki/tls/certs/ca-bundle.crt /etc/ssl/ca-bundle.pem /etc/ssl/cert.pem; do
    if [[ -n $file && -r $file ]]; then
      readlink -f "$file"
      return
    fi
  done
}

# Sets SANDBOX to bubblewrap's arguments. $1: `direct` as root with the rights to
# mount, `user` inside a user namespace. $2: `yes` shares the machine's network.
sandbox_arguments() {
  local mode=$1 net=$2 path file
  SANDBOX=(
    --unshare-ipc --unshare-uts --hostname builder
    --ro-bind "$ROOT/usr" /usr --ro-bind "$ROOT/etc" /etc
    --symlink usr/bin /bin --symlink usr/sbin /sbin --symlink usr/lib /lib --symlink usr/lib64 /lib64
    # A fresh /proc would be partly masked, and Bazel's own sandbox could then
    # not mount one inside: the machine's is bound instead.
    --dev /dev --dev-bind /proc /proc --ro-bind /sys /sys
    --tmpfs /tmp --dir /run --dir /var/tmp --dir /root
  )
  # The capabilities are over the new user namespace alone. Without them the user
  # namespaces that Bazel makes inside could not map their root.
  if [[ $mode == user ]]; then SANDBOX+=(--unshare-user --uid 0 --gid 0 --cap-add ALL); fi
  if [[ $net == yes ]]; then
    file=$(readlink -f /etc/resolv.conf || true)
    if [[ -r $file ]]; then SANDBOX+=(--ro-bind "$file" /etc/resolv.conf); fi
    if [[ -r /etc/hosts ]]; then SANDBOX+=(--ro-bind /etc/hosts /etc/hosts); fi
    file=$(host_certificates)
    if [[ -n $file ]]; then SANDBOX+=(--ro-bind "$file" /etc/ssl/certs/ca-certificates.crt); fi
  else
    SANDBOX+=(--unshare-net)
  fi
  # A folder inside another one is bound after it.
  while read -r _ path; do
    SANDBOX+=(--bind "$path" "$path")
  done < <(for path in "$WORKSPACE" "$CACHE" "$OUTPUT_ROOT"; do printf '%s %s\n' "${#path}" "$path"; done | sort -n)
}

# Sets ENVIRONMENT to the variables that exist inside, each as NAME=value.
sandbox_environment() {
  ENVIRONMENT=(
    PATH=/usr/bin:/bin:/usr/sbin:/sbin HOME="$CACHE/home" USER=builder LOGNAME=builder LANG=C.UTF-8 TERM="${TERM:-dumb}"
  )
}

# Runs "$4"… in a sandbox of its own that ends with it. $1: direct or user, $2:
# network, $3: the folder to run in.
run_once() {
  local mode=$1 net=$2 folder=$3
  shift 3
  sandbox_arguments "$mode" "$net"
  sandbox_environment
  run_root_program bwrap --die-with-parent "${SANDBOX[@]}" --chdir "$folder" -- /usr/bin/env -i "${ENVIRONMENT[@]}" "$@"
}

# Tries what the build does: a sandbox without network, and inside it a second
# user namespace with a /proc of its own. Sets SANDBOX_MODE, or fails with the
# sandbox's words in SANDBOX_ERROR.
probe_sandbox() {
  local mode modes=user
  if ((EUID == 0)); then modes='direct user'; fi
  for mode in $modes; do
    sandbox_arguments "$mode" no
    if SANDBOX_ERROR=$(run_root_program bwrap --die-with-parent "${SANDBOX[@]}" -- \
      /usr/bin/unshare --user --map-root-user --net --mount --pid --fork --mount-proc /usr/bin/unshare --version 2>&1 >/dev/null); then
      SANDBOX_MODE=$mode
      return 0
    fi
  done
  return 1
}

# What the holder runs inside: says that it is there, then waits until nobody is.
# shellcheck disable=SC2016 # expanded by the holder's shell
HOLDER_PROGRAM='
  state=$1 every=$2 alone=0
  read -r stat </proc/$$/stat
  set -- ${stat##*) }
  sleeper=
  trap "kill \$sleeper; exit" TERM
  printf "%s %s\n" $$ ${20} >"$state/holder.new" && mv "$state/holder.new" "$state/holder"
  while [ $alone -lt 2 ]; do
    sleep $every & sleeper=$!
    wait $sleeper
    alone=$((alone + 1))
    for ns in /proc/[0-9]*/ns/mnt; do
      process=${ns#/proc/} process=${process%%/*}
      if [ $process != $$ ] && [ $ns -ef /proc/$$/ns/mnt ]; then alone=0; fi
    done
  done 2>/dev/null
'

# Sets STATE, the folder that describes this workspace's holder, and HOLDER_WANTED,
# what the holder must be like to be of use.
holder_state() {
  STATE=$CACHE/server/$(printf '%s\n' "$WORKSPACE" "$OUTPUT_ROOT" "$UID" | hash16)
  # A folder that was removed and made again has the same path and is not the one
  # the sandbox sees. Its number cannot be taken again while the sandbox holds it.
  HOLDER_WANTED="root=$ROOT net=$NET cache=$CACHE folders=$(stat -c %d:%i "$WORKSPACE" "$CACHE" "$OUTPUT_ROOT" | tr '\n' ,)"
}

# True if a holder lives; sets HOLDER_PID, HOLDER_MODE and HOLDER_IS.
holder_lives() {
  local started=''
  HOLDER_PID='' HOLDER_MODE='' HOLDER_IS=''
  { read -r HOLDER_PID started <"$STATE/holder" && read -r HOLDER_MODE HOLDER_IS <"$STATE/holder.is"; } 2>/dev/null || return 1
  is_same_process "$HOLDER_PID" "$started"
}

# Makes sure that the holder lives and is as wanted.
ensure_holder() {
  holder_state
  if holder_lives && [[ $HOLDER_IS == "$HOLDER_WANTED" ]]; then return; fi
  mkdir -p "$STATE"
  lock "$STATE/lock"
  local handle=$LOCK_HANDLE
  # Somebody else may have started it while this one waited for the lock.
  if ! holder_lives || [[ $HOLDER_IS != "$HOLDER_WANTED" ]]; then
    stop_holder
    start_holder "$handle"
  fi
  unlock "$handle"
}

# Starts a holder; $1 is the lock's handle, which the holder must not inherit.
start_holder() {
  local tries
  probe_sandbox || namespaces_refused "$SANDBOX_ERROR"
  sandbox_arguments "$SANDBOX_MODE" "$NET"
  rm -f "$STATE/holder"
  printf '%s %s\n' "$SANDBOX_MODE" "$HOLDER_WANTED" >"$STATE/holder.is"
  (
    if [[ $1 =~ ^[0-9]+$ ]]; then unlock "$1"; fi
    cd /
    run_root_program setsid "$ROOT/usr/lib64/ld-linux-x86-64.so.2" --library-path "$ROOT/usr/lib/x86_64-linux-gnu" \
      "$ROOT/usr/bin/bwrap" "${SANDBOX[@]}" -- \
      /usr/bin/env -i PATH=/usr/bin /bin/bash -c "$HOLDER_PROGRAM" bazelw-holder "$STATE" "$HOLDER_LOOKS_EVERY" \
      </dev/null >"$STATE/holder.log" 2>&1 &
  )
  for ((tries = 0; tries < 100; tries++)); do
    if holder_lives; then return; fi
    sleep 0.05
  done
  die "the sandbox did not start: $(tail -n 1 "$STATE/holder.log")"
}

# Ends Bazel's server and then the holder, if there is one.
stop_holder() {
  local space process
  if holder_lives; then
    if ! (enter_holder "$WORKSPACE" bazel "${STARTUP[@]}" shutdown) >/dev/null 2>&1; then
      # The workspace it sees is gone, or the server does not answer: end what is left there.
      for space in /proc/[0-9]*/ns/mnt; do
        process=${space#/proc/} process=${process%%/*}
        if [[ $process != "$HOLDER_PID" && $space -ef /proc/$HOLDER_PID/ns/mnt ]]; then kill "$process" 2>/dev/null || true; fi
      done
    fi
    kill "$HOLDER_PID" 2>/dev/null || true
  fi
  rm -f "$STATE/holder" "$STATE/holder.is"
}

# Replaces this process by "$2"… in the holder's sandbox, in folder $1. Nothing
# stands between the terminal and the command: signals, exit status and standard
# streams are its own.
enter_holder() {
  local folder=$1
  local -a spaces=(--mount --net --uts --ipc)
  shift
  if [[ $HOLDER_MODE == user ]]; then spaces=(--user --preserve-credentials "${spaces[@]}"); fi
  sandbox_environment
  exec "$ROOT/usr/lib64/ld-linux-x86-64.so.2" --library-path "$ROOT/usr/lib/x86_64-linux-gnu" "$ROOT/usr/bin/nsenter" \
    --target "$HOLDER_PID" "${spaces[@]}" -- /usr/bin/env -i --chdir="$folder" "${ENVIRONMENT[@]}" "$@"
}
