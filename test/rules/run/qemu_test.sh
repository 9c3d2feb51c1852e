#!/bin/bash
# //platforms:qemu shows the booted system on the terminal, and explains wrong words.
# When the system ends, QEMU does, and the last line says how.
set -euo pipefail
run=$1
panicking_bundle=$2
check() { if "${@:2}"; then echo "ok: $1"; else echo "FAILED: $1"; exit 1; fi; }

check "a wrong number is explained" grep -q 'whole number from 1 to 255' <("$run" --smp none 2>&1 || true)
check "an unknown option is explained" grep -q -- '--help' <("$run" --smpp 2>&1 || true)
check "help lists the options" grep -q -- '--gui' <("$run" --help)
check "no accelerator but emulation is asked for" grep -qv kvm <("$run" --print)

# The screen: a socket for a viewer, in the workspace. Socket names are short, hence /tmp.
workspace=$(mktemp -d /tmp/capos-screen.XXXXXX)
export BUILD_WORKSPACE_DIRECTORY=$workspace
check "a screen is a socket in the workspace" grep -q "vnc=unix:$workspace/bazel-screen.vnc" <("$run" --gui --print)
unset BUILD_WORKSPACE_DIRECTORY
check "without a workspace --gui says so" grep -q 'bazel run' <("$run" --gui --print 2>&1 || true)

# The terminal: what is typed reaches QEMU, whose Ctrl-A X ends it once the system is up.
mkfifo "$TEST_TMPDIR/keys"
BUILD_WORKSPACE_DIRECTORY=$workspace "$run" --smp 2 --gui <"$TEST_TMPDIR/keys" >"$TEST_TMPDIR/screen" 2>&1 &
machine=$!
exec 9>"$TEST_TMPDIR/keys"
# No clock is asserted on: Bazel's own limit ends a system that never comes up.
until grep -aq 'capOS is up' "$TEST_TMPDIR/screen"; do
  kill -0 "$machine" || { cat "$TEST_TMPDIR/screen"; echo "QEMU ended before the system was up"; exit 1; }
  sleep 0.1
done
check "the screen's socket is there" test -S "$workspace/bazel-screen.vnc"
# The shell waits for a line, and carries it out: the demo's client and server are there to be run.
for said in 'This is capOS' 'capos> '; do
  until grep -aq "$said" "$TEST_TMPDIR/screen"; do sleep 0.1; done
done
check "it still runs" kill -0 "$machine"
printf 'demo &\n' >&9
for said in 'counter-client run' 'press a key' 'calls, ' 'cpu 1:'; do
  until grep -aq "$said" "$TEST_TMPDIR/screen"; do sleep 0.1; done
done
printf 'poweroff\n' >&9
# Nobody types Ctrl-A X: the system's end is QEMU's.
check "a system that ends with 0 is a success" wait "$machine"
exec 9>&-
rm -rf "$workspace"
cat "$TEST_TMPDIR/screen"
check "it says how to leave" grep -aq 'Ctrl-A X' "$TEST_TMPDIR/screen"
check "both CPUs came up" grep -aq '2 of 2 CPUs' "$TEST_TMPDIR/screen"
check "the system says its code" grep -aq 'The system has ended with 0' "$TEST_TMPDIR/screen"
check "the last line says how it ended" grep -q 'ended normally, with code 0' <(tail -n 1 "$TEST_TMPDIR/screen")

# A person leaves before the end.
"$run" <"$TEST_TMPDIR/keys" >"$TEST_TMPDIR/screen" 2>&1 &
machine=$!
exec 9>"$TEST_TMPDIR/keys"
until grep -aq 'capos> ' "$TEST_TMPDIR/screen"; do
  kill -0 "$machine" || { cat "$TEST_TMPDIR/screen"; echo "QEMU ended before the system was up"; exit 1; }
  sleep 0.1
done
printf '\001x' >&9
check "leaving is no failure" wait "$machine"
exec 9>&-
check "the last line says it was left" grep -q 'left with Ctrl-A X' <(tail -n 1 "$TEST_TMPDIR/screen")

# Lines over a pipe: each is typed when the shell asks for one, the end of the pipe is Ctrl-D, and the status is that
# of the last command.
check "a pipe of good commands is a success" "$run" < <(printf 'mem\ncpus\n') >"$TEST_TMPDIR/screen" 2>&1
for said in 'frames of 4 KiB are free' 'hand-offs' 'The system has ended with 0'; do
  check "a pipe shows: $said" grep -aq "$said" "$TEST_TMPDIR/screen"
done
status=0
"$run" < <(printf 'uptime\nrun nothing\n') >"$TEST_TMPDIR/screen" 2>&1 || status=$?
check "a last command that is refused is a failure" test "$status" = 1
check "it says what would be right" grep -aq 'no program is called nothing: help lists' "$TEST_TMPDIR/screen"
check "the last line points to the code" grep -q 'a code other than 0' <(tail -n 1 "$TEST_TMPDIR/screen")

# The kernel stops.
status=0
"$run" --bundle "$panicking_bundle" </dev/null >"$TEST_TMPDIR/screen" 2>&1 || status=$?
check "a panic is a failure" test "$status" = 1
check "the report is shown" grep -aq 'capOS kernel stopped' "$TEST_TMPDIR/screen"
check "the last line points to it" grep -q 'reported above' <(tail -n 1 "$TEST_TMPDIR/screen")

# A person wants to see the last screen.
check "words given by hand count" grep -q 'exit=debug exit=halt' <("$run" --append exit=halt --print)
check "a debugger finds the machine as it ended" test -z "$("$run" --mode debug --print | grep isa-debug-exit)"
