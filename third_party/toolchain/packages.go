# packages.go: the group `go`, fetched only for the targets named here; `./bazelw relock go`
# turns it into lock.go. The lines are those of `packages`, and
#
# for TARGET reason     a target that needs the group: asking for it sets the group up
# skip PATTERN reason   not unpacked, as a tar pattern in which * stays within one name

suite forky

for //runtime/fiber/bench:peers  the fiber runtime is measured beside goroutines
for //runtime/fiber/bench:gate  the same as a test
for //runtime/fiber/bench:smoke_go  shows that the program which does Go's part works

want golang-go           the compiler, and the runtime in source

drop golang-go           a name for the current version
drop golang-src          a name for the current version

skip ./usr/share/doc/*                       nobody reads manuals in a sandbox
skip ./usr/share/lintian/*                   packaging
skip ./usr/share/go-*/api/*                  lists of names
skip ./usr/share/go-*/doc/*                  documentation
skip ./usr/share/go-*/lib/*                  for targets other than this machine
skip ./usr/share/go-*/misc/*                 for targets other than this machine
skip ./usr/share/go-*/test/*                 tests of the compiler
skip ./usr/share/go-*/src/cmd/*              the compiler in source; it is there as a program
skip ./usr/share/go-*/src/*_test.go          tests
skip ./usr/share/go-*/src/*/*_test.go        tests
skip ./usr/share/go-*/src/*/*/*_test.go      tests
skip ./usr/share/go-*/src/*/*/*/*_test.go    tests
skip ./usr/share/go-*/src/*/testdata/*       tests
skip ./usr/share/go-*/src/*/*/testdata/*     tests
skip ./usr/share/go-*/src/*/*/*/testdata/*   tests
skip ./usr/share/go-*/src/*/*.syso           objects of sanitizers
skip ./usr/share/go-*/src/*/*/*.syso         objects of sanitizers
skip ./usr/share/go-*/src/*/*/*/*.syso       objects of sanitizers
skip ./usr/lib/go-*/bin/gofmt                not run by the build
skip ./usr/lib/go-*/pkg/tool/*/vet           not run by the build
skip ./usr/lib/go-*/pkg/tool/*/fix           not run by the build
skip ./usr/lib/go-*/pkg/tool/*/cover         not run by the build
skip ./usr/lib/go-*/pkg/tool/*/cgo           no C is compiled
