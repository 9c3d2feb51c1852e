#!/bin/bash
# A system's bundle is the boot medium: system_test.sh BUNDLE
set -euo pipefail
bundle=$1
mkdir "$TEST_TMPDIR/tree"
tar -C "$TEST_TMPDIR/tree" -xf "$bundle"
cd "$TEST_TMPDIR/tree"
diff <(find . -type f | sort) - <<'LIST'
./boot/first
./boot/kernel.elf
./boot/second
./limine.conf
LIST
[[ $(<boot/first) == one && $(<boot/second) == two ]]
diff limine.conf - <<'CONF'
timeout: 0

/capOS
    protocol: limine
    path: boot():/boot/kernel.elf
    kaslr: no
    cmdline: run=summary
    module_path: boot():/boot/first
    module_string: first
    module_path: boot():/boot/second
    module_string: second
CONF
# The shipped kernel keeps its symbols, for reports, and not its debug sections.
readelf -SW boot/kernel.elf | grep ' \.symtab ' >/dev/null
if readelf -SW boot/kernel.elf | grep ' \.debug_' >/dev/null; then echo "debug sections on the medium"; exit 1; fi
