"""Host programs built in a variant of the whole crate graph: under loom or shuttle, for a fuzzer, to be timed.

All need every crate compiled with other flags, not just the one under test, so they are
transitions; a program and its variant never share an object file.
"""

load("@rules_rust//rust:defs.bzl", "rust_clippy_aspect", "rustfmt_aspect")
load(":profile.bzl", "PROFILES")

_FLAGS_SETTING = "@rules_rust//rust/settings:extra_rustc_flags"

# Coverage that libFuzzer reads, from LLVM's own pass: needs no sanitizer runtime.
_FUZZ_FLAGS = PROFILES["checked"] + [
    "--cfg=fuzzing",
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Ccodegen-units=1",
]

# For programs that are timed on the host: no checks, all that the optimiser has.
BENCH_FLAGS = PROFILES["release"] + ["-Copt-level=3"]

_VARIANTS = {
    "bench": BENCH_FLAGS,
    "fuzz": _FUZZ_FLAGS,
    "loom": PROFILES["checked"] + ["--cfg=loom"],
    # What is a model under loom is one here, too.
    "shuttle": PROFILES["checked"] + ["--cfg=loom", "--cfg=shuttle"],
}

def _variant_transition_impl(_settings, attr):
    return {
        "//platforms:variant": attr.variant,
        _FLAGS_SETTING: _VARIANTS[attr.variant],
    }

_variant_transition = transition(
    implementation = _variant_transition_impl,
    inputs = [],
    outputs = ["//platforms:variant", _FLAGS_SETTING],
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
    "program": attr.label(mandatory = True, cfg = _variant_transition, executable = True),
    "variant": attr.string(mandatory = True, values = _VARIANTS.keys()),
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
        "crates": attr.label_list(aspects = [rust_clippy_aspect, rustfmt_aspect], cfg = _variant_transition),
        "variant": attr.string(mandatory = True, values = _VARIANTS.keys()),
        "_allowlist_function_transition": attr.label(default = "@bazel_tools//tools/allowlists/function_transition_allowlist"),
    },
)
