"""coverage_test(): how many lines of crates their host tests, models and simulated runs reach."""

load("@rules_rust//rust:rust_common.bzl", "CrateInfo")
load("//platforms:profile.bzl", "platform_label")

def _variant(name):
    return transition(
        implementation = lambda _settings, _attr: {"//command_line_option:platforms": platform_label("host", name)},
        inputs = [],
        outputs = ["//command_line_option:platforms"],
    )

_counted = _variant("coverage")
_counted_model = _variant("coverage_shuttle")

def _coverage_impl(ctx):
    words = ["--least", str(ctx.attr.least_percent)]
    runfiles = ctx.runfiles(ctx.files._llvm)
    for file in ctx.files._llvm:
        if file.basename in ["llvm-cov", "llvm-profdata"]:
            words += ["--" + file.basename, file.short_path]
    for crate in ctx.attr.crates:
        sources = crate[CrateInfo].srcs.to_list()
        words += ["--crate", crate[CrateInfo].name]
        runfiles = runfiles.merge(ctx.runfiles(sources))
        for source in sources:
            words += ["--source", source.short_path]
    for program, arguments in ctx.attr.programs.items() + ctx.attr.models.items():
        info = program[DefaultInfo]
        runfiles = runfiles.merge_all([ctx.runfiles([info.files_to_run.executable]), info.default_runfiles])
        words += ["--program", info.files_to_run.executable.short_path]
        if RunEnvironmentInfo in program:
            for name, value in program[RunEnvironmentInfo].environment.items():
                words += ["--env", "%s=%s" % (name, value)]
        for word in arguments.split(" "):
            if word:
                words += ["--word", word]
    for word in words:
        if "\n" in word:
            fail("%r: a word of the description cannot hold a line break" % word)
    description = ctx.actions.declare_file(ctx.label.name + ".run")
    ctx.actions.write(description, "\n".join(words) + "\n")
    script = ctx.actions.declare_file(ctx.label.name + ".sh")
    ctx.actions.write(
        script,
        "#!/bin/sh\nexec %s %s\n" % (ctx.executable._tool.short_path, description.short_path),
        is_executable = True,
    )
    runfiles = runfiles.merge_all([ctx.runfiles([description, ctx.executable._tool]), ctx.attr._tool[DefaultInfo].default_runfiles])
    return [DefaultInfo(executable = script, runfiles = runfiles)]

coverage_test = rule(
    doc = "Runs programs whose crates count what they execute; fails if fewer lines of some of these were reached than asked for, and lists the others.",
    implementation = _coverage_impl,
    attrs = {
        "crates": attr.label_list(mandatory = True, allow_empty = False, providers = [CrateInfo], doc = "What is measured."),
        "least_percent": attr.int(mandatory = True, doc = "Fewer lines than this, of any one crate, are a failure."),
        "models": attr.label_keyed_string_dict(cfg = _counted_model, doc = "Models under random schedules, with their words."),
        "programs": attr.label_keyed_string_dict(cfg = _counted, doc = "Tests and other programs, with their words."),
        "_allowlist_function_transition": attr.label(default = "@bazel_tools//tools/allowlists/function_transition_allowlist"),
        "_llvm": attr.label(default = "@llvm//:files"),
        "_tool": attr.label(default = "//test/coverage:tool", executable = True, cfg = "target"),
    },
    test = True,
)
