"""compile_fail_test(): a snippet that must not compile, and why.

For rules of the house that the compiler keeps: no infallible allocation in the kernel, no
`unsafe` outside the folders for it. The snippet is compiled with the real tool chain of the
platform; the test is green only if that fails with the expected text.
"""

load("@rules_rust//rust:rust_common.bzl", "CrateInfo", "DepInfo")
load(":rust.bzl", "lint_flags_of", "platform_transition")

_TOOLCHAIN = "@rules_rust//rust:toolchain_type"

def _compile_output_impl(ctx):
    toolchain = ctx.toolchains[_TOOLCHAIN]
    compiler = toolchain.clippy_driver if ctx.attr.clippy else toolchain.rustc
    out = ctx.actions.declare_file(ctx.label.name + ".txt")
    arguments = [
        out.path,
        compiler.path,
        ctx.file.src.path,
        "--edition=2024",
        "--crate-type=lib",
        "--crate-name=snippet",
        "--emit=metadata=/dev/null",
        "--color=never",
        "--target=" + toolchain.target_flag_value,
        "--sysroot=" + toolchain.sysroot,
    ] + ctx.attr.flags
    crates = []
    for dep in ctx.attr.crates:
        crate = dep[CrateInfo]
        arguments.append("--extern=%s=%s" % (crate.name, crate.output.path))
        crates.append(depset([crate.output], transitive = [dep[DepInfo].transitive_crate_outputs]))
    crates = depset(transitive = crates)
    arguments += ["-Ldependency=" + crate.dirname for crate in crates.to_list()]
    ctx.actions.run_shell(
        mnemonic = "CompileFail",
        inputs = depset([ctx.file.src], transitive = [toolchain.all_files, crates]),
        outputs = [out],
        env = {"PATH": "/usr/bin:/bin", "RUSTC_BOOTSTRAP": "1"},
        arguments = arguments,
        command = 'out=$1; shift; if "$@" >"$out" 2>&1; then echo "IT COMPILES" >>"$out"; fi',
    )
    return [DefaultInfo(files = depset([out]))]

_compile_output = rule(
    implementation = _compile_output_impl,
    attrs = {
        "clippy": attr.bool(),
        "crates": attr.label_list(providers = [CrateInfo, DepInfo]),
        "flags": attr.string_list(),
        "profile": attr.string(default = "checked"),
        "runs_on": attr.string(mandatory = True),
        "src": attr.label(allow_single_file = [".rs"], mandatory = True),
        "_allowlist_function_transition": attr.label(default = "@bazel_tools//tools/allowlists/function_transition_allowlist"),
    },
    cfg = platform_transition,
    toolchains = [_TOOLCHAIN],
)

def compile_fail_test(name, src, expect, runs_on = "host", folder = None, clippy = False, crates = [], **kwargs):
    """Passes if `src` does not compile and the compiler says `expect`.

    Args:
      name: target name.
      src: the snippet, a library crate.
      expect: text of the error.
      runs_on: the platform it is compiled for.
      folder: compile it with the lints of this folder.
      clippy: let clippy look at it.
      crates: libraries it uses.
      **kwargs: as for any test.
    """
    _compile_output(
        name = name + ".output",
        clippy = clippy,
        crates = crates,
        flags = lint_flags_of(folder) if folder else [],
        runs_on = runs_on,
        src = src,
        testonly = True,
    )
    native.sh_test(
        name = name,
        size = "small",
        srcs = ["//platforms:compile_fail.sh"],
        args = ["$(rootpath :%s.output)" % name, "'%s'" % expect],
        data = [":%s.output" % name],
        visibility = ["//test/conformance:__pkg__"],
    )
