"""Repositories that stand for the pinned root file system: rustc, rule sets, the lock's hash."""

_HOST = "x86_64-unknown-linux-gnu"

def _debian_toolchain_impl(rctx):
    lock = rctx.os.environ.get("CAPOS_LOCK", "")
    if not lock:
        # A plain Bazel on a machine with the same parts installed: name them by version.
        found = [rctx.execute(c).stdout.split("\n")[0] for c in [
            ["/usr/bin/rustc", "-V"],
            ["/usr/bin/ld.lld", "--version"],
            ["/usr/bin/capnp", "--version"],
            ["/usr/bin/gcc", "--version"],
            ["/usr/bin/qemu-system-x86_64", "--version"],
        ]]
        lock = "installed: " + "; ".join(found)
    rctx.file("lock.bzl", '"""What the tool chain is, as one string."""\n\nLOCK = %s\n' % repr(lock))
    rctx.file("lock.txt", lock + "\n")
    rctx.file("BUILD.bazel", 'exports_files(["lock.txt", "lock.bzl"])\n')

debian_toolchain = repository_rule(
    doc = "@toolchain//:lock.bzl: the hash of the package lock, which //platforms:host puts into every action's key.",
    implementation = _debian_toolchain_impl,
    environ = ["CAPOS_LOCK"],
    local = True,
)

def _debian_crate_impl(rctx):
    registry = rctx.path("/usr/share/cargo/registry")
    found = [d for d in registry.readdir() if d.basename.startswith(rctx.attr.crate + "-")]
    if len(found) != 1:
        fail("expected one folder %s-* in %s, found %s" % (rctx.attr.crate, registry, found))
    for f in found[0].readdir():
        rctx.symlink(f, f.basename)
    rctx.file("BUILD.bazel", rctx.read(rctx.path(rctx.attr.build_file)))

debian_crate = repository_rule(
    doc = "A crate of the distribution's cargo registry folder, whatever its version.",
    implementation = _debian_crate_impl,
    attrs = {
        "build_file": attr.label(mandatory = True),
        "crate": attr.string(mandatory = True),
    },
    environ = ["CAPOS_LOCK"],
    local = True,
)

def _debian_rust_impl(rctx):
    for b in ["rustc", "rustdoc", "cargo", "clippy-driver", "cargo-clippy", "rustfmt"]:
        rctx.symlink("/usr/bin/" + b, "bin/" + b)
    # Everything that asks rustc about a target of our own must say -Zunstable-options, also
    # the runner of build scripts, which has no flag for it.
    for b in ["rustc", "clippy-driver"]:
        rctx.file("bin/user/" + b, "#!/bin/sh\nRUSTC_BOOTSTRAP=1 exec /usr/bin/%s -Zunstable-options \"$@\"\n" % b)
    for f in rctx.path("/usr/lib/rustlib/%s/lib" % _HOST).readdir():
        rctx.symlink(f, "lib/rustlib/%s/lib/%s" % (_HOST, f.basename))
    for f in rctx.path("/usr/lib/x86_64-linux-gnu").readdir():
        if f.basename.startswith("librustc_driver-"):
            rctx.symlink(f, "lib/" + f.basename)
    rctx.symlink("/usr/lib/rustlib/src/rust/library", "src/library")
    rctx.file("VERSION", rctx.execute(["/usr/bin/rustc", "-vV"]).stdout)
    rctx.file("user_target.bzl", '"""The target specification of user programs."""\n\nUSER_TARGET_JSON = %s\n' % repr(rctx.read(rctx.path(rctx.attr._user_target))))
    rctx.file("BUILD.bazel", rctx.read(rctx.path(rctx.attr._build_file)))

debian_rust = repository_rule(
    doc = "@rust: the distribution's rustc as rules_rust toolchains for host, kernel, loader and user programs.",
    implementation = _debian_rust_impl,
    attrs = {
        "_build_file": attr.label(default = "//platforms/toolchains:rust.BUILD"),
        "_user_target": attr.label(default = "//platforms/toolchains:x86_64-unknown-capos.json"),
    },
    environ = ["CAPOS_LOCK"],
    local = True,
)

_MISSING = """genrule(
    name = "files",
    outs = ["missing"],
    cmd = "echo '{what} is not set up: ./bazelw group {group} fetches it' >&2; exit 1",
    visibility = ["//visibility:public"],
)
"""

_FILES = """filegroup(
    name = "files",
    srcs = glob({patterns}),
    visibility = ["//visibility:public"],
)
"""

def _debian_group_impl(rctx):
    group = rctx.attr.group
    libraries = rctx.path(rctx.os.environ.get("CAPOS_GROUP_" + group.upper(), "") + "/usr/lib")
    found = [
        d
        for d in libraries.readdir()
        if d.basename.startswith(group + "-") and d.get_child("bin").get_child(rctx.attr.program).exists
    ]
    if not found:
        rctx.file("BUILD.bazel", _MISSING.format(what = rctx.attr.what, group = group))
        return
    rctx.symlink(found[-1], group)
    rctx.file("BUILD.bazel", _FILES.format(patterns = ["%s/%s" % (group, p) for p in rctx.attr.patterns]))

debian_group = repository_rule(
    doc = "@NAME//:files: programs of the distribution, from the wrapper's group NAME or as installed; all that uses them has their files as inputs.",
    implementation = _debian_group_impl,
    attrs = {
        "group": attr.string(mandatory = True, doc = "The group, and the beginning of its folder in /usr/lib."),
        "patterns": attr.string_list(mandatory = True, doc = "The files of that folder."),
        "program": attr.string(mandatory = True, doc = "A program without which the folder is not the right one."),
        "what": attr.string(mandatory = True, doc = "What is missing where the group is not set up."),
    },
    environ = [
        "CAPOS_GROUP_GO",
        "CAPOS_GROUP_LLVM",
    ],
    local = True,
)
