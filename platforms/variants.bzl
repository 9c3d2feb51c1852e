"""Host programs built in a variant of the whole crate graph: under loom or shuttle, for a fuzzer, to be timed.

All need every crate compiled with other flags, not just the one under test, so they are
transitions; a program and its variant never share an object file.
"""

load("@rules_rust//rust:defs.bzl", "rust_clippy_aspect", "rustfmt_aspect")
load(":profile.bzl", "VARIANTS", "platform_label")

def _variant_transition_impl(_settings, attr):
    return {"//command_line_option:platforms": platform_label("host", attr.variant)}

variant_transition = transition(
    implementation = _variant_transition_impl,
    inputs = [],
    outputs = ["//command_line_option:platforms"],
)

def _variant_impl(ctx):
    program = ctx.attr.program[0]
    source = program[DefaultInfo].files_to_run.executable
    out = ctx.actions.declare_file(ctx.label.name)
    ctx.actions.symlink(output = out, target_file = source, is_executable = True)
    return [
        DefaultInfo(executable = out, runfiles = ctx.runfiles([source]).merge(program[DefaultInfo].default_runfiles)),
        RunEnvironmentInfo(environment = ctx.attr.env),
    ]

_ATTRS = {
    "env": attr.string_dict(),
    "program": attr.label(mandatory = True, cfg = variant_transition, executable = True),
    "variant": attr.string(mandatory = True, values = VARIANTS.keys()),
    "_allowlist_function_transition": attr.label(default = "@bazel_tools//tools/allowlists/function_transition_allowlist"),
}

variant_test = rule(
    doc = "Runs a test program built in a variant.",
    implementation = _variant_impl,
    attrs = _ATTRS,
    test = True,
)

variant_binary = rule(
    doc = "A program built in a variant, to be run by hand or by another test.",
    implementation = _variant_impl,
    attrs = _ATTRS,
    executable = True,
)

def _variant_lint_impl(ctx):
    files = []
    for dep in ctx.attr.crates:
        for group in ["clippy_checks", "rustfmt_checks"]:
            if hasattr(dep[OutputGroupInfo], group):
                files.append(getattr(dep[OutputGroupInfo], group))
    return [DefaultInfo(files = depset(transitive = files))]

variant_lint = rule(
    doc = "Clippy and rustfmt over crates that are only built in a variant, with what they need.",
    implementation = _variant_lint_impl,
    attrs = {
        "crates": attr.label_list(aspects = [rust_clippy_aspect, rustfmt_aspect], cfg = variant_transition),
        "variant": attr.string(mandatory = True, values = VARIANTS.keys()),
        "_allowlist_function_transition": attr.label(default = "@bazel_tools//tools/allowlists/function_transition_allowlist"),
    },
)
