#!/bin/bash
# //platforms:debug stops in the kernel, by name: gdb has the symbols and reaches the machine.
set -euo pipefail
out=$("$1" --smp 1 --batch --ex 'hbreak kernel_sys::boot::print_summary' --ex continue --ex backtrace --ex 'info line' 2>&1) || { echo "$out"; exit 1; }
echo "$out"
grep -qE 'Breakpoint 1, .*print_summary' <<<"$out"
grep -qE '#[0-9]+ .*main' <<<"$out"
# Source lines come from the debug sections.
grep -qE 'kernel/(sys|bin)/src/[a-z_]+\.rs' <<<"$out"
