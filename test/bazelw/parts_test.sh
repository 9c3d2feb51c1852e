#!/bin/bash
# parts_test.sh: the parts of ./bazelw that decide something without the network:
# mirror detection, lock and package lists, unpacking, machine checks, locks, carried files.
. "${BASH_SOURCE[0]%/*}/testing.sh"
for part in lib mirror fetch rootfs preflight sandbox carry setup resolve group; do
  # shellcheck disable=SC1090
  . "$TOOLCHAIN/$part.sh"
done

# ---- mirror ----------------------------------------------------------------

# Writes standard input to apt configuration file $1 of the case.
apt_file() {
  mkdir -p apt/sources.list.d
  cat >"apt/$1"
}

# The mirror found in the case's apt configuration must be $1 (`none`: none).
expect_mirror() {
  local found
  found=$(find_mirror apt) || found=none
  expect_equal "$found" "$1" mirror
}

case_mirror_from_a_list() {
  apt_file sources.list <<'END'
# deb http://commented.example/debian bookworm main
deb-src http://sources.example/debian bookworm main
deb cdrom:[Debian 12]/ bookworm main
deb [ arch=amd64 signed-by=/usr/share/keyrings/x.gpg ] http://mirror.example/debian/ bookworm main contrib # ours
END
  expect_mirror http://mirror.example/debian
}

case_mirror_from_deb822() {
  apt_file sources.list.d/a.sources <<'END'
# the first stanza is for sources only
Types: deb-src
URIs: http://sources.example/debian
Suites: trixie

Types: deb
Enabled: no
URIs: http://disabled.example/debian
Suites: trixie

Types: deb deb-src
# a comment inside
URIs:
  http://mirror.example/debian/
  http://second.example/debian
Suites: trixie trixie-updates
Components: main
END
  expect_mirror http://mirror.example/debian
}

case_mirror_not_from_security_alone() {
  apt_file sources.list.d/s.sources <<'END'
Types: deb
URIs: http://mirror.example/debian-security
Suites: bookworm-security
END
  apt_file sources.list <<'END'
deb http://mirror.example/debian-security trixie-security main
END
  expect_mirror none
}

case_mirror_not_from_another_distribution() {
  apt_file sources.list <<'END'
deb http://mirror.example/ubuntu noble main universe
END
  apt_file sources.list.d/ubuntu.sources <<'END'
Types: deb
URIs: http://mirror.example/ubuntu
Suites: noble noble-updates noble-backports
Components: main
END
  apt_file sources.list.d/vendor.sources <<'END'
Types: deb
URIs: https://packages.example/vendor
Suites: nodistro
END
  expect_mirror none
}

case_mirror_ignores_other_files() {
  apt_file sources.list.d/debian.list.save <<'END'
deb http://old.example/debian bookworm main
END
  apt_file sources.list.d/tor.list <<'END'
deb tor+http://onion.example/debian bookworm main
END
  expect_mirror none
}

case_mirror_setting_comes_first() {
  apt_file sources.list <<'END'
deb http://mirror.example/debian bookworm main
END
  CAPOS_DEBIAN_MIRROR=http://mine.example/debian/ expect_mirror http://mine.example/debian
}

case_no_mirror_is_one_sentence() {
  mkdir apt
  local words
  words=$( (require_mirror apt) 2>&1) && fail 'found a mirror where none is'
  expect_words "$words" 'set CAPOS_DEBIAN_MIRROR'
  expect_equal "$(wc -l <<<"$words")" 1 lines
}

# ---- lock ------------------------------------------------------------------

SUM=0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef

case_lock_is_read() {
  printf '# a comment\n\none 1:2.0 amd64 pool/main/o/one.deb 10 %s\ntwo 3 all pool/main/t/two.deb 32 %s' $SUM $SUM >lock
  read_lock lock
  expect_equal "${LOCK_NAME[*]}" 'one two' names
  expect_equal "${LOCK_VERSION[0]}" 1:2.0 version
  expect_equal "$LOCK_BYTES" 42 bytes
}

case_lock_with_a_bad_row_is_refused() {
  local row words
  for row in \
    "one 1 all pool/main/one.deb 10 ${SUM:1}" "one 1 all pool/main/one.deb ten $SUM" "one 1 all pool/../one.deb 10 $SUM" \
    "one 1 all /etc/one.deb 10 $SUM" "one 1 all pool/main/one.deb 10 $SUM more" "one 1 all pool/main/one.deb 10" \
    "one 1 all pool/main/one.deb 0 $SUM" "one 1 all pool/main/one.deb 10 ${SUM^^}"; do
    printf 'zero 1 all pool/main/zero.deb 10 %s\n%s\n' $SUM "$row" >lock
    words=$( (read_lock lock) 2>&1) && fail "took the row: $row"
    expect_words "$words" 'lock:2:'
  done
}

case_empty_lock_is_refused() {
  : >lock
  local words
  words=$( (read_lock lock) 2>&1) && fail 'took an empty lock'
  expect_words "$words" 'names no package'
}

# The checked-in lock is what the checked-in list of packages asks for.
case_lock_fits_packages() {
  local name locked
  read_lock "$TOOLCHAIN/lock"
  read_packages
  for name in "${LOCK_NAME[@]}"; do
    if is_left_out "$name"; then fail "$name is in the lock and left out in packages"; fi
  done
  for name in "${WANTED[@]}"; do
    if [[ $name == \?* ]]; then continue; fi # a set, not a package
    # shellcheck disable=SC2053 # the right side is a pattern
    for locked in "${LOCK_NAME[@]}"; do if [[ $locked == $name ]]; then continue 2; fi; done
    fail "$name is wanted and not in the lock"
  done
  ((LOCK_BYTES <= 500000000)) || fail "the lock's packages are $LOCK_BYTES bytes, more than 500 MB"
}

# Versions are in the lock and nowhere else.
case_no_version_outside_the_lock() {
  local found
  found=$(grep -rnE '(lld|libllvm|openjdk|llvm|gcc|python3|rust|libstd-rust|golang|go)[-.]?[0-9]+\.?[0-9]*[^0-9t-]' "$TOOLCHAIN"/*.sh "$TOOLCHAIN"/packages* || true)
  expect_equal "$found" '' 'names with a version'
}

# Each group's lock holds what its list wants and nothing else, and names who it is for.
case_groups_fit_their_packages() {
  local group name
  group_names
  ((${#GROUP_NAMES[@]})) || fail 'no group was found'
  for group in "${GROUP_NAMES[@]}"; do
    read_lock "$TOOLCHAIN/lock.$group"
    read_packages "$TOOLCHAIN/packages.$group"
    for name in "${LOCK_NAME[@]}"; do
      if is_left_out "$name"; then fail "$name is in lock.$group and left out in packages.$group"; fi
    done
    ((${#NEEDED_BY[@]})) || fail "packages.$group names no target"
  done
}

case_group_is_set_up_when_asked_for() {
  TOOLCHAIN=$PWD
  printf '%s\n' 'suite s' 'for //a:b reason' 'for //a:c reason' 'want x reason' 'skip ./usr/share/x/* reason' >packages.x
  group_names
  expect_equal "${GROUP_NAMES[*]}" x groups
  group_is_asked_for x run //a:b -- --rows yield || fail '//a:b needs the group'
  group_is_asked_for x test @//a:c || fail '@//a:c needs the group'
  if group_is_asked_for x test //a/... //a:bc; then fail 'nobody asked for the group'; fi
  expect_equal "${SKIPPED[*]}" './usr/share/x/*' 'what is not unpacked'
  expect_equal "$( (require_group y) 2>&1)" "bazelw: error: there is no group 'y'; there is: x" refusal
  # The tool chain's own list has no such lines.
  cp packages.x packages
  expect_words "$( (read_packages) 2>&1)" "belongs into the packages of a group"
}

# Another package, another list or another way to unpack is another folder.
case_group_identity() {
  TOOLCHAIN=$PWD CACHE=/c
  local file before
  for file in lock.x packages.x rootfs.sh; do printf 1 >"$file"; done
  for file in lock.x packages.x rootfs.sh; do
    before=$(group_folder x)
    printf 2 >"$file"
    [[ $(group_folder x) == /c/group/* && $(group_folder x) != "$before" ]] || fail "$file does not count"
  done
}

# Crates of other systems lose their sources and keep what cargo resolves with.
case_crates_of_other_systems_are_trimmed() {
  local crate
  for crate in windows-sys-0.1.0 windows_x86_64_gnu-0.1.0 winapi-0.1.0 winapi-i686-pc-windows-gnu-0.1.0 windows-kept-0.1.0 libc-0.1.0; do
    mkdir -p "v/$crate/src" "v/$crate/lib"
    touch "v/$crate/"{Cargo.toml,.cargo-checksum.json,build.rs,src/lib.rs,src/more.rs,lib/import.a}
  done
  trim_crates v
  for crate in windows-sys windows_x86_64_gnu winapi winapi-i686-pc-windows-gnu; do
    expect_equal "$(cd "v/$crate-0.1.0" && find . -type f | sort | tr '\n' ' ')" './.cargo-checksum.json ./Cargo.toml ./build.rs ./src/lib.rs ' "$crate"
  done
  expect_equal "$(find v/libc-0.1.0 v/windows-kept-0.1.0 -type f | wc -l)" 12 'files of crates that are compiled'
}

case_lock_difference() {
  printf '%s\n' 'a 1 x' 'b 1 x' 'c 1 x' >old
  printf '%s\n' 'a 1 x' 'b 2 x' 'd 1 x' >new
  expect_equal "$(lock_difference old new)" $'    b 1 -> 2\n  + d 1\n  - c 1' difference
}

# ---- packages --------------------------------------------------------------

# Prints member $1 of an ar archive with the bytes of file $2.
member() {
  printf '%-16s%-12s%-6s%-6s%-8s%-10s`\n' "$1" 0 0 0 100644 "$(stat -c %s "$2")"
  cat "$2"
  if (($(stat -c %s "$2") % 2)); then printf '\n'; fi
}

# Makes package.deb with the folder `tree` inside, compressed by $2… as data.tar$1.
make_deb() {
  printf '2.0\n' >version
  printf 'odd' >control
  tar -C tree -cf data.tar .
  "${@:2}" <data.tar >data
  { printf '!<arch>\n' && member debian-binary version && member control.tar.xz control && member "data.tar$1" data; } >package.deb
}

# Makes a tree with what a package may hold.
make_tree() {
  mkdir -p tree/usr/bin tree/usr/share/man/man1 tree/usr/src/rustc-9/{library/core,compiler,src}
  printf 'hello\n' >tree/usr/bin/hello
  chmod 755 tree/usr/bin/hello
  ln -s hello tree/usr/bin/link
  touch tree/usr/share/man/man1/hello.1 tree/usr/src/rustc-9/{library/core/lib.rs,compiler/x.rs,src/y.rs,Cargo.toml}
}

case_unpack() {
  local how
  make_tree
  for how in '.xz xz -c' '.gz gzip -c' ' cat'; do
    # shellcheck disable=SC2086 # words
    if [[ $how == ' '* ]]; then make_deb '' cat; else make_deb $how; fi
    rm -rf out && mkdir -p out/usr/bin && ln -s usr/bin out/bin
    unpack_deb package.deb out
    expect_equal "$(<out/bin/hello)" hello 'contents'
    expect_equal "$(readlink out/usr/bin/link)" hello 'link'
    [[ -x out/usr/bin/hello ]] || fail 'not executable'
    [[ ! -e out/usr/share/man/man1/hello.1 ]] || fail 'a manual was unpacked'
    [[ -e out/usr/src/rustc-9/library/core/lib.rs ]] || fail 'library/ of rust-src is missing'
    [[ ! -e out/usr/src/rustc-9/compiler/x.rs && ! -e out/usr/src/rustc-9/src/y.rs ]] || fail 'the compiler in source was unpacked'
  done
}

case_unpack_refuses_damage() {
  local words
  make_tree
  make_deb .xz xz -c
  mkdir out
  head -c "$(($(stat -c %s package.deb) - 20))" package.deb >cut.deb
  words=$( (unpack_deb cut.deb out) 2>&1) && fail 'took a package that was cut off'
  expect_words "$words" 'cut.deb'
  printf 'not a package at all, just some text' >text.deb
  words=$( (unpack_deb text.deb out) 2>&1) && fail 'took a text'
  expect_words "$words" 'is not a Debian package'
  { printf '!<arch>\n' && member debian-binary version; } >empty.deb
  words=$( (unpack_deb empty.deb out) 2>&1) && fail 'took a package without data'
  expect_words "$words" 'no data.tar'
}

# ---- machine ---------------------------------------------------------------

case_other_machines_are_refused() {
  local words
  check_machine Linux x86_64
  words=$( (check_machine Linux aarch64) 2>&1) && fail 'took another processor'
  expect_words "$words" 'x86_64 only'
  words=$( (check_machine Darwin x86_64) 2>&1) && fail 'took another system'
  expect_words "$words" 'this is Darwin'
}

case_too_little_disk_is_refused() {
  local words
  CAPOS_DISK_NEEDED_MB=0 check_disk "$PWD/not/there/yet"
  words=$( (CAPOS_DISK_NEEDED_MB=999999999 check_disk "$PWD/not/there/yet") 2>&1) && fail 'took a small disk'
  expect_words "$words" '999999999 MB are needed'
}

case_refused_namespaces_say_what_to_change() {
  local words
  words=$( (namespaces_refused 'unshare: Operation not permitted') 2>&1) && fail 'did not end the run'
  expect_words "$words" 'Operation not permitted'
  expect_words "$words" 'could'
}

# ---- locks -----------------------------------------------------------------

# A process that dies loses the lock; one that lives keeps it.
exclusive() {
  local holder
  (
    lock "$PWD/lock"
    : >held
    exec sleep 100
  ) &
  holder=$!
  until [[ -e held ]]; do sleep 0.05; done
  (
    lock "$PWD/lock" 2>words
    : >second
  ) &
  local waiter=$!
  until [[ -s words ]]; do sleep 0.05; done
  [[ ! -e second ]] || fail 'two hold the lock'
  kill -9 "$holder"
  wait "$holder" 2>/dev/null || true
  wait "$waiter"
  [[ -e second ]] || fail 'the lock of a killed process was not given on'
}
case_lock_with_flock() { exclusive; }
case_lock_without_flock() {
  command() { [[ $* != '-v flock' ]] && builtin command "$@"; }
  exclusive
}

case_process_identity() {
  local me
  me=$(start_time $$)
  is_same_process $$ "$me" || fail 'this process is not itself'
  if is_same_process $$ "$((me + 1))"; then fail 'another start time is the same process'; fi
  if is_same_process 99999999 "$me"; then fail 'a process that is not there'; fi
}

# ---- sandbox ---------------------------------------------------------------

# A checkout that was removed and cloned again has the old one's path; a sandbox
# that still sees the old one must not be entered.
case_a_workspace_made_again_is_another() {
  local WORKSPACE=$PWD/ws CACHE=$PWD/cache OUTPUT_ROOT=$PWD/out ROOT=/root-fs NET=no first
  mkdir ws cache out
  holder_state
  first=$HOLDER_WANTED
  holder_state
  expect_equal "$HOLDER_WANTED" "$first" 'the same folders'
  mv ws still-held
  mkdir ws
  holder_state
  [[ $HOLDER_WANTED != "$first" ]] || fail 'a new folder at the old path counts as the old one'
}

# ---- carried files ----------------------------------------------------------

# A workspace, a cache and a folder outside of both, in the case's folder.
carry_places() {
  mkdir -p ws cache out elsewhere
  WORKSPACE=$PWD/ws CACHE=$PWD/cache OUTPUT_ROOT=$PWD/out
}

case_a_file_outside_is_carried_both_ways() {
  carry_places
  printf 'before\n' >elsewhere/both
  carry_in run //x:y -- --json "$PWD/elsewhere/new" --plot=./elsewhere/both plain --flag
  expect_equal "${#WORDS[@]}" 8 words
  expect_equal "${WORDS[*]:0:4}" 'run //x:y -- --json' 'the words before'
  expect_words "${WORDS[4]}" "$CACHE/home/carried."
  expect_words "${WORDS[5]}" "--plot=$CACHE/home/carried."
  expect_equal "${WORDS[*]:6}" 'plain --flag' 'the words after'
  expect_equal "$(<"${WORDS[5]#*=}")" before 'what the program reads'
  printf 'written\n' >"${WORDS[4]}"
  printf 'after\n' >"${WORDS[5]#*=}"
  carry_out 2>/dev/null
  expect_equal "$(<elsewhere/new)" written 'a new file'
  expect_equal "$(<elsewhere/both)" after 'a changed file'
  [[ -z $(ls "$CACHE/home") ]] || fail 'carried files were left behind'
}

case_what_is_seen_inside_is_not_carried() {
  carry_places
  local -a words=(run //x:y -- "$WORKSPACE/a" "$CACHE/b" ./ws/c "$PWD/elsewhere" "$PWD/nowhere/d" ./nowhere/e a/b 1,2)
  carry_in "${words[@]}"
  expect_equal "${WORDS[*]}" "${words[*]}" words
  expect_equal "$CARRIED" '' 'the folder of carried files'
  words=(build --package_path="$PWD/elsewhere/f" //x:y)
  carry_in "${words[@]}"
  expect_equal "${WORDS[*]}" "${words[*]}" 'words of another command'
  expect_equal "$CARRIED" '' 'the folder of carried files'
}

case_a_file_that_cannot_be_written_is_kept() {
  carry_places
  mkdir elsewhere/gone
  carry_in run //x:y -- "$PWD/elsewhere/gone/file"
  printf 'figures\n' >"${WORDS[3]}"
  rmdir elsewhere/gone
  local words status=0
  words=$(carry_out 2>&1) || status=$?
  expect_equal "$status" 1 'exit status'
  expect_words "$words" "is in $CACHE/home/carried."
  expect_equal "$(<"${WORDS[3]}")" figures 'what was written'
}

run_cases "$@"
