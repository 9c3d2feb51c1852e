# rootfs.sh: makes the root file system of the tool chain out of fetched packages.
#
# Sourced, never run. What this file says decides what the build sees, so its
# bytes are hashed together with the lock: a change here gives a new root file
# system and new keys for every action. Only layout belongs here.
#
# Packages are unpacked without their maintainer scripts; finish_root does the
# little of those that the build needs. Nothing depends on who runs it.
# shellcheck shell=bash

# Packages that must be there before the others: base-files brings the links
# /bin, /lib and so on; the rest is what the sandbox itself needs, so that it can
# be tried out before the large packages are fetched.
ROOT_FIRST='base-files libc6 libcap2 libselinux* libpcre2-8* bubblewrap util-linux'

# Left out while unpacking, as tar patterns in which * stays within one folder's
# name (what is below a match goes with it): nobody reads manuals in a sandbox,
# and the rest is never run by the build.
ROOT_EXCLUDE=(
  './usr/share/man/*' './usr/share/doc/*' './usr/share/info/*' './usr/share/locale/*' './usr/share/lintian/*'
  './usr/share/bash-completion/*' './dev/*'
  # rust-src: the compiler's own sources; the build needs library/ alone.
  './usr/src/rustc-*/[a-km-z]*' './usr/src/rustc-*/[A-Z]*' './usr/src/rustc-*/l[a-hj-z]*'
  './usr/src/rustc-*/library/stdarch/intrinsics_data/*' './usr/src/rustc-*/library/stdarch/crates/*/tests/*'
  # Java: class archives for settings Bazel's server does not use.
  './usr/lib/jvm/*/lib/server/classes_*.jsa'
  # gcc's link-time optimiser dump tool, QEMU for other machines.
  './usr/bin/*-lto-dump-*' './usr/bin/qemu-system-i386' './usr/bin/qemu-system-x86_64-microvm'
  './usr/lib/python3*/test/*' './usr/lib/python3*/idlelib/*'
)

# True if package $1 is one of ROOT_FIRST.
is_first_package() {
  local pattern
  for pattern in $ROOT_FIRST; do
    # shellcheck disable=SC2053 # the right side is a pattern
    if [[ $1 == $pattern ]]; then return 0; fi
  done
  return 1
}

# Unpacks the data of Debian package $1 into folder $2. A package is an ar
# archive: eight magic bytes, then members with a header of 60 bytes (name 16,
# times and owner 32, size 10, end mark 2), each padded to an even offset.
unpack_deb() {
  local deb=$1 into=$2 offset=8 length name size magic header unpack pattern
  local -a exclude=(--no-wildcards-match-slash)
  length=$(stat -c %s "$deb")
  magic=$(head -c 7 "$deb" | tr -d '\0')
  [[ $magic == '!<arch>' ]] || die "$deb is not a Debian package: it does not begin with !<arch>"
  while ((offset + 60 <= length)); do
    header=$(dd if="$deb" bs=60 iflag=skip_bytes,count_bytes skip="$offset" count=60 status=none | tr -d '\0')
    name=${header:0:16} name=${name%% *} size=${header:48:10} size=${size%% *}
    [[ $size =~ ^[0-9]+$ && ${header:58:1} == '`' ]] || die "$deb is damaged: no member header at byte $offset"
    offset=$((offset + 60))
    case $name in
      data.tar.xz*) unpack='xz -dc' ;;
      data.tar.gz*) unpack='gzip -dc' ;;
      data.tar.zst*) unpack='zstd -dc' ;;
      data.tar | data.tar/) unpack=cat ;;
      *)
        offset=$((offset + size + size % 2))
        continue
        ;;
    esac
    command -v "${unpack%% *}" >/dev/null || die "$deb needs ${unpack%% *}, which is not installed"
    for pattern in "${ROOT_EXCLUDE[@]}"; do exclude+=("--exclude=$pattern"); done
    dd if="$deb" bs=1M iflag=skip_bytes,count_bytes skip="$offset" count="$size" status=none |
      $unpack |
      tar -C "$into" -xf - --no-same-owner --keep-directory-symlink --warning=no-timestamp \
        --anchored --no-wildcards-match-slash "${exclude[@]}" ||
      die "$deb cannot be unpacked into $into"
    return
  done
  die "$deb holds no data.tar member"
}

# Does in root file system $1 what maintainer scripts would have done.
finish_root() {
  local root=$1 tool path line text=''
  # Links that the alternatives system would make.
  ln -sfn gcc "$root/usr/bin/cc"
  ln -sfn g++ "$root/usr/bin/c++"
  ln -sfn gawk "$root/usr/bin/awk"
  ln -sfn which.debianutils "$root/usr/bin/which"
  ln -sfn ../lib/jvm/default-java/bin/java "$root/usr/bin/java"
  # The linker has its version in its name; the build calls it without.
  for path in "$root"/usr/lib/llvm-*/bin; do
    for tool in lld ld.lld lld-link; do
      if [[ -e $path/$tool ]]; then ln -sfn "../lib/${path#"$root/usr/lib/"}/$tool" "$root/usr/bin/$tool"; fi
    done
  done
  # Debian's settings for Bazel: where it is installed stays; a deprecated option
  # and the one that keeps every sandbox for debugging do not.
  while IFS= read -r line; do
    if [[ $line != 'build '* ]]; then text+=$line$'\n'; fi
  done <"$root/etc/bazel/bazelrc"
  printf '%s' "$text" >"$root/etc/bazel/bazelrc"
  printf 'root:x:0:0:root:/root:/bin/bash\nnobody:x:65534:65534:nobody:/nonexistent:/bin/false\n' >"$root/etc/passwd"
  printf 'root:x:0:\nnogroup:x:65534:\n' >"$root/etc/group"
  printf '127.0.0.1 localhost builder\n::1 localhost\n' >"$root/etc/hosts"
  printf 'passwd: files\ngroup: files\nhosts: files dns\nservices: files\nprotocols: files\n' >"$root/etc/nsswitch.conf"
  printf 'builder\n' >"$root/etc/hostname"
  : >"$root/etc/resolv.conf"
  mkdir -p "$root/etc/ssl/certs"
  cat "$root"/usr/share/ca-certificates/mozilla/*.crt >"$root/etc/ssl/certs/ca-certificates.crt"
  # Nothing in here may gain rights by being run.
  chmod -R u-s,g-s "$root/usr/bin" "$root/usr/sbin"
}
