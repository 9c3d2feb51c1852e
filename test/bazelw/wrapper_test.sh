#!/bin/bash
# wrapper_test.sh: ./bazelw as a whole where it must refuse: one clear sentence, exit
# status 1, and nothing left that a later run could take for a finished set-up.
. "${BASH_SOURCE[0]%/*}/testing.sh"

# Copies ./bazelw into the case's folder, with a lock of three packages that a server
# on loopback offers. Sets MIRROR.
start() {
  local name sum
  mkdir -p ws/third_party/toolchain pool/main faults cache
  cp -L "$HERE/../../bazelw" ws/
  cp -L "$TOOLCHAIN"/* ws/third_party/toolchain/ 2>/dev/null || true
  for name in base-files bubblewrap zebra; do
    head -c 3000 /dev/urandom >"pool/main/$name.deb"
    sum=$(sha256sum <"pool/main/$name.deb")
    printf '%s 1.0 all pool/main/%s.deb 3000 %s\n' "$name" "$name" "${sum%% *}"
  done >lock
  cp lock ws/third_party/toolchain/lock
  python3 "$HERE/server.py" "$PWD" &
  SERVER=$!
  trap 'kill $SERVER 2>/dev/null || true; wait $SERVER 2>/dev/null || true' EXIT
  until [[ -s port ]]; do sleep 0.05; done
  MIRROR=http://127.0.0.1:$(<port)
}

# What is asked of ./bazelw.
COMMAND=(build //...)

# Runs ./bazelw with settings "$@" and must be refused with the words $WANT in one sentence.
expect_refusal() {
  local status=0 words
  words=$(env -i PATH="$PATH" HOME="$PWD/home" CAPOS_CACHE="$PWD/cache" CAPOS_DISK_NEEDED_MB=0 \
    CAPOS_FETCH_TRIES=1 CAPOS_FETCH_STALL=5 "$@" ws/bazelw "${COMMAND[@]}" 2>&1) || status=$?
  expect_equal "$status" 1 "exit status ($words)"
  expect_equal "$(grep -c 'error:' <<<"$words")" 1 "errors ($words)"
  expect_words "$words" "$WANT"
  [[ -z $(find cache -name .complete) ]] || fail 'a set-up that failed looks finished'
}

case_help_needs_nothing() {
  start
  local words
  words=$(env -i PATH="$PATH" ws/bazelw help)
  expect_words "$words" './bazelw doctor'
  expect_words "$words" 'CAPOS_DEBIAN_MIRROR'
}

case_too_little_disk() {
  start
  WANT='MB are needed' expect_refusal CAPOS_DEBIAN_MIRROR="$MIRROR" CAPOS_DISK_NEEDED_MB=999999999
  [[ ! -e log ]] || fail "asked the mirror first: $(<log)"
}

case_no_network() {
  start
  kill "$SERVER"
  wait "$SERVER" || true
  WANT='no network: the mirror' expect_refusal CAPOS_DEBIAN_MIRROR="$MIRROR"
}

case_no_home() {
  start
  WANT='set CAPOS_CACHE' expect_refusal HOME= CAPOS_CACHE=
}

case_unknown_tool_chain() {
  start
  WANT="either 'pinned'" expect_refusal CAPOS_TOOLCHAIN=newest CAPOS_DEBIAN_MIRROR="$MIRROR"
}

case_cache_where_the_tool_chain_goes() {
  start
  WANT='outside /usr' expect_refusal CAPOS_OUTPUT_ROOT=/proc/self
}

case_wrong_hash() {
  start
  printf corrupt >faults/base-files.deb
  WANT='the lock asks for' expect_refusal CAPOS_DEBIAN_MIRROR="$MIRROR"
}

case_not_a_package() {
  start
  WANT='is not a Debian package' expect_refusal CAPOS_DEBIAN_MIRROR="$MIRROR"
}

# Gone from the mirror, and no index that could be verified: no way around signatures.
case_gone_and_nothing_signed() {
  start
  printf missing >faults/bubblewrap.deb
  local apt='no apt-get'
  if command -v apt-get >/dev/null; then apt='could not be fetched and verified'; fi
  if command -v apt-get >/dev/null && [[ ! -e /usr/share/keyrings/debian-archive-keyring.gpg ]]; then apt='keyring is not installed'; fi
  WANT=$apt expect_refusal CAPOS_DEBIAN_MIRROR="$MIRROR"
}

# A group is fetched and checked as the tool chain is.
case_group() {
  start
  COMMAND=(group nothing)
  WANT="there is no group 'nothing'; there is: go" expect_refusal CAPOS_DEBIAN_MIRROR="$MIRROR"
  cp lock ws/third_party/toolchain/lock.go
  COMMAND=(group go)
  printf corrupt >faults/zebra.deb
  WANT='the lock asks for' expect_refusal CAPOS_DEBIAN_MIRROR="$MIRROR"
  printf missing >faults/zebra.deb
  WANT="the mirror no longer has zebra 1.0; './bazelw relock go'" expect_refusal CAPOS_DEBIAN_MIRROR="$MIRROR"
  rm faults/zebra.deb
  WANT='is not a Debian package' expect_refusal CAPOS_DEBIAN_MIRROR="$MIRROR"
}

run_cases "$@"
