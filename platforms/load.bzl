"""capos_load() and capos_load_test(): guest suites of the racing lane, many times under load.

See test/load/src/lib.rs and docs/book/testing.md. capos_qemu_test() makes a capos_load() called
`<name>.load` of its racing targets by itself.
"""

CaposGuestTestInfo = provider(
    doc = "A guest test.",
    fields = {"lane": "deterministic or racing."},
)

CaposLoadInfo = provider(
    doc = "Suites that are run under load.",
    fields = {"suites": "Depset of (label, path in the runfiles)."},
)

def _label(label):
    return str(label).removeprefix("@@").removeprefix("@")

def _load_impl(ctx):
    direct = []
    runfiles = ctx.runfiles()
    for suite in ctx.attr.suites:
        if CaposLoadInfo not in suite:
            lane = suite[CaposGuestTestInfo].lane
            if lane != "racing":
                fail("%s is in the %s lane, where stopping a CPU changes nothing; a suite under load is in the racing lane" % (_label(suite.label), lane))
            direct.append((_label(suite.label), suite[DefaultInfo].files_to_run.executable.short_path))
        runfiles = runfiles.merge(suite[DefaultInfo].default_runfiles)
    suites = depset(direct, transitive = [s[CaposLoadInfo].suites for s in ctx.attr.suites if CaposLoadInfo in s])
    listed = ctx.actions.declare_file(ctx.label.name + ".suites")
    ctx.actions.write(listed, "".join(["%s\t%s\n" % s for s in suites.to_list()]))
    script = ctx.actions.declare_file(ctx.label.name + ".sh")
    words = " ".join(["'%s'" % word for word in ctx.attr.words])
    ctx.actions.write(
        script,
        "#!/bin/sh\nexec %s %s %s \"$@\"\n" % (ctx.executable._tool.short_path, listed.short_path, words),
        is_executable = True,
    )
    runfiles = runfiles.merge_all([ctx.runfiles([listed, ctx.executable._tool]), ctx.attr._tool[DefaultInfo].default_runfiles])
    return [
        DefaultInfo(executable = script, runfiles = runfiles),
        CaposLoadInfo(suites = suites),
    ]

_ATTRS = {
    "suites": attr.label_list(mandatory = True, allow_empty = False, providers = [[CaposGuestTestInfo], [CaposLoadInfo]], doc = "Guest tests of the racing lane, and other capos_load targets."),
    "words": attr.string_list(doc = "Options that are given before those of the command line."),
    "_tool": attr.label(default = "//test/load:tool", executable = True, cfg = "target"),
}

capos_load = rule(
    doc = "Runs suites under load: `./bazelw run //test/qemu/park:park_qemu.load -- --times 20`.",
    implementation = _load_impl,
    attrs = _ATTRS,
    executable = True,
)

capos_load_test = rule(
    doc = "The same as a test: green if every run was.",
    implementation = _load_impl,
    attrs = _ATTRS,
    test = True,
)
