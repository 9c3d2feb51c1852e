"""@crates: the registry crates of the checked-in Cargo.lock, with generated BUILD files.

Sources come from the folder named by CAPOS_CRATES (the wrapper vendors them there once,
in its only step with a network) or, in a plain Bazel, from `cargo vendor` run here. Either
way cargo checks every file against the lock.
"""

# The members of the crates workspace and the target each is resolved for. User programs
# have a target of their own; for cargo's cfg questions it equals the bare one.
_SETS = {
    "kernel": "x86_64-unknown-none",
    "loader": "x86_64-unknown-uefi",
    "user": "x86_64-unknown-none",
    "host": "x86_64-unknown-linux-gnu",
}

def _run(rctx, argv, **kwargs):
    result = rctx.execute(argv, timeout = 900, working_directory = "ws", **kwargs)
    if result.return_code:
        fail("%s failed: %s%s" % (" ".join([str(a) for a in argv]), result.stdout[-2000:], result.stderr[-4000:]))
    return result.stdout

def _cargo_crates_impl(rctx):
    rctx.file("ws/Cargo.toml", rctx.read(rctx.attr.manifest))
    rctx.file("ws/Cargo.lock", rctx.read(rctx.attr.lockfile))
    for name in _SETS:
        rctx.file("ws/%s/Cargo.toml" % name, rctx.read(rctx.path(rctx.attr.manifest).dirname.get_child(name).get_child("Cargo.toml")))
        rctx.file("ws/%s/src/lib.rs" % name, "")
    vendored = rctx.os.environ.get("CAPOS_CRATES", "")
    if vendored:
        # A copy, because BUILD files are written between the sources.
        _run(rctx, ["/usr/bin/cp", "-R", "--preserve=mode,timestamps", "--reflink=auto", vendored, "../vendor"])
    else:
        _run(rctx, ["/usr/bin/cargo", "vendor", "--locked", "--versioned-dirs", "-q", "../vendor"])
    rctx.file("ws/.cargo/config.toml", "[source.crates-io]\nreplace-with = 'vendored'\n[source.vendored]\ndirectory = '%s'\n" % rctx.path("vendor"))
    graphs = []
    for name, target in _SETS.items():
        graph = _run(
            rctx,
            ["/usr/bin/cargo", "build", "--unit-graph", "-Zunstable-options", "--frozen", "--target", target, "-p", "crates-" + name],
            environment = {"RUSTC_BOOTSTRAP": "1"},
        )
        rctx.file("graph-%s.json" % name, graph)
        graphs.append("%s=../graph-%s.json" % (name, name))
    _run(rctx, ["/usr/bin/python3", rctx.path(rctx.attr._gen), ".."] + graphs)

cargo_crates = repository_rule(
    doc = "Crates of a Cargo workspace as Bazel targets: @crates//:<name>, selected by platform.",
    implementation = _cargo_crates_impl,
    attrs = {
        "lockfile": attr.label(mandatory = True, doc = "Cargo.lock; its checksums are what is trusted."),
        "manifest": attr.label(mandatory = True, doc = "The workspace's Cargo.toml, with one member folder per set beside it."),
        "manifests": attr.label_list(doc = "The members' Cargo.toml files, so that a change is seen."),
        "_gen": attr.label(default = "//third_party/crates:gen.py"),
    },
    environ = ["CAPOS_CRATES"],
)
