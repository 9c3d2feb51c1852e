#!/bin/bash
# What a platform promises shows in the program: platforms_test.sh KERNEL LOADER USER
set -euo pipefail
kernel=$1 loader=$2 user=$3
failures=0
check() {
  local what=$1; shift
  if "$@"; then echo "ok: $what"; else echo "FAILED: $what"; failures=$((failures + 1)); fi
}
uses_sse() { objdump -d "$1" | grep '%xmm' >/dev/null; }
no_sse() { ! uses_sse "$1"; }
has_tls() { readelf -lW "$1" | grep ' TLS ' >/dev/null; }

check "the kernel's program is a static ELF" grep -q 'statically linked' <(file -bL "$kernel")
check "the kernel's program has no SSE instruction" no_sse "$kernel"
check "the loader is a UEFI program" grep -q 'PE32+ executable.*EFI (application)' <(file -bL "$loader")
check "the user's program is a static ELF" grep -q 'statically linked' <(file -bL "$user")
check "the user's program computes with SSE" uses_sse "$user"
check "the user's program has thread-local storage" has_tls "$user"
check "no program has an executable stack" bash -c '! readelf -lW "$0" "$1" | grep GNU_STACK | grep E >/dev/null' "$kernel" "$user"
[[ $failures == 0 ]]
