"""The rules every capOS crate is declared with.

A crate's folder says who compiles it, whether it may be unsafe and which crates it may name;
these macros turn that into flags and visibility, so a BUILD file only lists sources and
dependencies. Each crate gets a `.lint` target beside it (clippy and rustfmt, for the platform
the crate runs on) and a `.layer` target (the order of the folders, //platforms/layers), which
are built by `bazel build //...` and so by every test run.
"""

load("@rules_rust//rust:defs.bzl", "rust_binary", "rust_clippy_aspect", "rust_library", "rust_test", "rustfmt_aspect")
load("//platforms/layers:layers.bzl", "layer", "visibility_of")
load(":profile.bzl", "platform_kept", "platform_label")
load(":variants.bzl", "variant_binary", "variant_test")

# Folders whose crates may contain `unsafe` blocks, each block with its SAFETY reason.
# Everywhere else the compiler refuses them.
UNSAFE_FOLDERS = [
    "abi/sync",
    "kernel/arch",
    "kernel/mm",
    "kernel/smp",
    "platforms/loader",
    "runtime/fiber/bench/meter",
    "runtime/fiber/chan",
    "runtime/fiber/rt",
    "runtime/rt",
    "runtime/sync",
    # Guests without a kernel under them: what negative tests of the harness boot.
    "test/harness/guests",
    # What programs that test the kernel do on purpose and should not.
    "test/kit/wild",
    # What test programs do that no runtime offers: bare registers, faults.
    "test/kit/bare",
    # User programs in assembly, without a runtime.
    "test/qemu/user/blob",
    # Programs without a runtime, one per platform.
    "test/rules/platforms",
]

# Folders of host tools and tests: panicking is how they report.
_MAY_PANIC_FOLDERS = [
    "platforms/image",
    "platforms/qemu",
    "runtime/fiber/bench",
    "schema/compiler",
    "test",
]

_OS = {
    "host": "@platforms//os:linux",
    "kernel": "@platforms//os:none",
    "loader": "//platforms:os_uefi",
    "user": "//platforms:os_capos",
}

_LINTS = [
    "--check-cfg=cfg(checked,measure,loom,shuttle,fuzzing,test)",
    "-Dwarnings",
    "-Dunsafe_op_in_unsafe_fn",
    "-Dmissing_docs",
    "-Dclippy::undocumented_unsafe_blocks",
    "-Dclippy::todo",
    "-Dclippy::unimplemented",
    "-Dclippy::dbg_macro",
    "-Dclippy::large_stack_arrays",
]

# What user input could reach must not be able to panic.
_NO_PANIC_LINTS = [
    "--check-cfg=cfg(checked,measure,loom,shuttle,fuzzing,test)",
    "-Dclippy::unwrap_used",
    "-Dclippy::expect_used",
    "-Dclippy::panic",
    "-Dclippy::indexing_slicing",
    "-Dclippy::unreachable",
]

# Folders of the kernel in which no must-use verdict is thrown away.
_KEEPS_VERDICTS_FOLDERS = [
    "kernel/arch",
    "kernel/core",
    "kernel/dispatch",
    "kernel/mm",
    "kernel/object",
    "kernel/ops",
    "kernel/process",
    "kernel/smp",
    "kernel/sys",
]

_VERDICT_LINTS = ["-Dclippy::let_underscore_must_use"]

# What a library of the kernel names, it uses: //test/conformance:linked counts what is named.
_USED_DEPS_LINT = "-Dunused_crate_dependencies"

def _is_below(package, folders):
    return any([package == f or package.startswith(f + "/") for f in folders])

def lint_flags_of(package, is_test = False):
    """rustc flags for a crate in the folder `package`."""
    flags = list(_LINTS)
    if is_test or _is_below(package, _MAY_PANIC_FOLDERS):
        flags = [f for f in flags if f != "-Dmissing_docs"]
    else:
        flags += _NO_PANIC_LINTS
        if _is_below(package, _KEEPS_VERDICTS_FOLDERS):
            flags += _VERDICT_LINTS
        if _is_below(package, ["kernel"]):
            flags.append(_USED_DEPS_LINT)
    if not _is_below(package, UNSAFE_FOLDERS) and not (is_test and _is_below(package, ["test"])):
        flags.append("-Funsafe_code")
    return flags

def lint_flags(is_test = False):
    """rustc flags for a crate of the calling package."""
    return lint_flags_of(native.package_name(), is_test)

# Those that name tests and models of every folder: the conformance table and the measured coverage.
_NAMES_TESTS = [
    "//test/conformance:__pkg__",
    "//test/coverage:__pkg__",
]

# Property tests with kept seeds, and what it stands in front of.
_PROPERTY = "test/property"
_PROPTEST = "@crates//:proptest"

def _check_deps(deps):
    if type(deps) == type([]) and _PROPTEST in deps and native.package_name() != _PROPERTY:
        fail("//%s: name //%s:test_property, not %s: its tests keep the seeds of their failures" % (native.package_name(), _PROPERTY, _PROPTEST))

def _kept_seeds():
    """The seeds that were kept for tests of this package, each file beside a source of its name."""
    kept = native.glob(["proptest-regressions/**/*.txt"], allow_empty = True)
    for file in kept:
        source = file.removeprefix("proptest-regressions/").removesuffix(".txt") + ".rs"
        if not native.glob([source], allow_empty = True):
            fail("//%s: %s is tried by nobody: there is no %s" % (native.package_name(), file, source))
    return kept

def _platform_transition_impl(_settings, attr):
    return {"//command_line_option:platforms": platform_label(attr.runs_on, attr.profile)}

platform_transition = transition(
    implementation = _platform_transition_impl,
    inputs = [],
    outputs = ["//command_line_option:platforms"],
)

def _lint_impl(ctx):
    files = []
    for dep in ctx.attr.crates:
        for group in ["clippy_checks", "rustfmt_checks"]:
            if hasattr(dep[OutputGroupInfo], group):
                files.append(getattr(dep[OutputGroupInfo], group))
    return [DefaultInfo(files = depset(transitive = files))]

_lint = rule(
    doc = "Clippy and rustfmt over crates, built for the platform they run on.",
    implementation = _lint_impl,
    attrs = {
        "crates": attr.label_list(aspects = [rust_clippy_aspect, rustfmt_aspect], cfg = platform_transition),
        "profile": attr.string(default = "checked"),
        "runs_on": attr.string(mandatory = True, values = _OS.keys()),
        "_allowlist_function_transition": attr.label(default = "@bazel_tools//tools/allowlists/function_transition_allowlist"),
    },
)

def capos_lint(name, crates, runs_on, **kwargs):
    """Lints, and so compiles, crates for a platform beside the one they are linted for anyway.

    Args:
      name: target name.
      crates: library targets.
      runs_on: "host", "kernel", "loader" or "user".
      **kwargs: as for any rule.
    """
    _lint(name = name, crates = crates, runs_on = runs_on, **kwargs)

def _only(runs_on):
    if type(runs_on) == type([]):
        choices = {str(Label("//platforms:is_" + name)): [] for name in runs_on}
        return select(choices | {"//conditions:default": ["@platforms//:incompatible"]})
    return [_OS[runs_on]] if runs_on else []

def _check_layer(name, deps, testonly = False, **_kwargs):
    # What is for tests only may name what it tests.
    if not testonly:
        layer(name = name + ".layer", crate = name, deps = deps, visibility = ["//kernel:__pkg__"])

def capos_library(name, srcs = None, deps = [], only = None, lint_on = None, rustc_flags = [], **kwargs):
    """A library crate.

    Args:
      name: target and crate name.
      srcs: sources; by default every .rs file below `src/`, or below the package without one.
      deps: other crates.
      only: "host", "kernel", "loader" or "user", or a list of them, if it compiles for nothing else.
      lint_on: the platform clippy looks at; by default `only`, else the host.
      rustc_flags: flags beside those of the folder.
      **kwargs: as for rust_library; who sees it follows from the folder unless `visibility` is given.
    """
    _check_deps(deps)
    srcs = srcs or native.glob(["src/**/*.rs"], allow_empty = True) or native.glob(["**/*.rs"], exclude = ["tests/**", "loom/**", "shuttle/**", "fuzz/**", "benches/**"])
    rust_library(
        name = name,
        srcs = srcs,
        edition = "2024",
        rustc_flags = lint_flags() + rustc_flags,
        target_compatible_with = _only(only),
        visibility = kwargs.pop("visibility", visibility_of(native.package_name())),
        deps = deps,
        **kwargs
    )
    _lint(
        name = name + ".lint",
        testonly = kwargs.get("testonly", False),
        crates = [":" + name],
        runs_on = lint_on or (only[0] if type(only) == type([]) else only) or "host",
    )
    _check_layer(name, deps, **kwargs)

def capos_binary(name, runs_on, profile = None, srcs = None, deps = [], linker_script = None, rustc_flags = [], compile_data = [], **kwargs):
    """A program for the kernel, the loader, user space or the host, whatever is being built for.

    Args:
      name: target name.
      runs_on: "host", "kernel", "loader" or "user".
      profile: the one it is always built in; by default that of what asks for it, checked if nothing does.
      srcs: sources, by default as for capos_library.
      deps: other crates.
      linker_script: a script for the bare linkers.
      rustc_flags: flags beside those of the folder.
      compile_data: as for rust_binary.
      **kwargs: as for rust_binary.
    """
    _check_deps(deps)
    srcs = srcs or native.glob(["src/**/*.rs"], allow_empty = True) or native.glob(["**/*.rs"], exclude = ["tests/**", "loom/**", "shuttle/**", "fuzz/**", "benches/**"])
    flags = [f for f in lint_flags() if f != _USED_DEPS_LINT] + rustc_flags
    if runs_on == "loader":
        flags += ["-Clink-arg=/Brepro", "-Clink-arg=/DEBUG:NONE"]
    if runs_on in ["kernel", "user"]:
        flags += ["-Clink-arg=--gc-sections", "-Clink-arg=--build-id=none", "-Clink-arg=-znoexecstack"]
    if linker_script:
        compile_data = compile_data + [linker_script]
        flags.append("-Clink-arg=-T$(execpath %s)" % linker_script)
    rust_binary(
        name = name,
        srcs = srcs,
        compile_data = compile_data,
        edition = "2024",
        platform = platform_label(runs_on, profile) if profile else platform_kept(runs_on),
        rustc_flags = flags,
        visibility = kwargs.pop("visibility", ["//visibility:public"]),
        deps = deps,
        **kwargs
    )
    _lint(
        name = name + ".lint",
        testonly = kwargs.get("testonly", False),
        crates = [":" + name],
        profile = profile or "checked",
        runs_on = runs_on,
    )
    _check_layer(name, deps, **kwargs)

def capos_host_test(name, crate = None, srcs = [], deps = [], data = [], rustc_flags = [], size = "small", **kwargs):
    """A test that runs on the build host: of a crate's own #[cfg(test)] modules, or of its own sources.

    Property tests depend on //test/property:test_property, which tries the seeds kept in
    proptest-regressions/ of the package first.

    Args:
      name: target name.
      crate: the library whose inner tests to run.
      srcs: sources of a test that stands alone.
      deps: other crates.
      data: files it reads.
      rustc_flags: flags beside the lints.
      size: as for any Bazel test.
      **kwargs: as for rust_test.
    """
    _check_deps(deps)
    rust_test(
        name = name,
        srcs = srcs,
        crate = crate,
        data = data + _kept_seeds(),
        edition = "2024",
        rustc_flags = [f for f in lint_flags(is_test = True) if not (crate and f == "-Funsafe_code")] + rustc_flags,
        size = size,
        visibility = kwargs.pop("visibility", _NAMES_TESTS),
        deps = deps,
        **kwargs
    )

def capos_loom_test(name, srcs, deps, max_preemptions = 3, max_seconds = 90, size = "medium", **kwargs):
    """Model checks a concurrent protocol: the sources and all their crates are compiled with cfg(loom).

    Crates reach their atomics, cells and threads through //abi/sync, which is loom's own
    under that cfg. A model that hits a limit is bounded, not proved; the limits are printed
    by the model's own report.

    Args:
      name: target name.
      srcs: the models, as #[test] functions that call loom::model.
      deps: crates; loom comes by itself.
      max_preemptions: bound on forced switches per execution.
      max_seconds: after so long a model ends as bounded.
      size: as for any Bazel test.
      **kwargs: as for rust_test.
    """
    _check_deps(deps)
    rust_test(
        name = name + ".program",
        srcs = srcs,
        crate_name = name.replace("-", "_"),
        edition = "2024",
        rustc_flags = lint_flags(is_test = True),
        tags = ["manual"],
        deps = deps + ["@crates//:loom"],
        **kwargs
    )
    variant_test(
        name = name,
        size = size,
        env = {
            "LOOM_MAX_DURATION": str(max_seconds),
            "LOOM_MAX_PREEMPTIONS": str(max_preemptions),
        },
        program = ":" + name + ".program",
        variant = "loom",
        visibility = ["//visibility:public"],
    )

def capos_shuttle_test(name, srcs, deps, size = "medium", **kwargs):
    """Runs a model under many random schedules, each with its seed: for more threads than loom explores.

    The sources and all their crates are compiled with cfg(loom) and cfg(shuttle): //abi/sync is
    shuttle's then, and everything else is as in a loom model.

    Args:
      name: target name.
      srcs: the models, as #[test] functions that call abi_sync::explore.
      deps: crates.
      size: as for any Bazel test.
      **kwargs: as for rust_test.
    """
    _check_deps(deps)
    rust_test(
        name = name + ".program",
        srcs = srcs,
        crate_name = name.replace("-", "_"),
        edition = "2024",
        rustc_flags = lint_flags(is_test = True),
        tags = ["manual"],
        visibility = _NAMES_TESTS,
        deps = deps,
        **kwargs
    )
    variant_test(
        name = name,
        size = size,
        program = ":" + name + ".program",
        variant = "shuttle",
        visibility = ["//visibility:public"],
    )

def capos_fuzz_target(name, src, deps, corpus = None, **kwargs):
    """A coverage-guided fuzz target (libFuzzer), and a test that replays its corpus.

    `bazel run :name -- -max_total_time=600 DIR` explores; `name_replay` runs every kept input
    once, so that an input that once failed stays green, then explores a few thousand new ones.

    Args:
      name: target name.
      src: a file with libfuzzer_sys::fuzz_target!.
      deps: crates; libfuzzer_sys comes by itself.
      corpus: the kept inputs; by default every file in fuzz/corpus/<name>/.
      **kwargs: as for rust_binary.
    """
    _check_deps(deps)
    corpus = corpus or native.glob(["fuzz/corpus/%s/*" % name], allow_empty = True)
    if not corpus:
        fail("%s has no corpus: put at least one input into fuzz/corpus/%s/" % (name, name))
    rust_binary(
        name = name + ".program",
        srcs = [src],
        crate_name = name.replace("-", "_"),
        edition = "2024",
        rustc_flags = lint_flags(is_test = True),
        tags = ["manual"],
        testonly = True,
        deps = deps + ["@crates//:libfuzzer_sys"],
        **kwargs
    )
    variant_binary(
        name = name,
        program = ":" + name + ".program",
        testonly = True,
        variant = "fuzz",
    )
    native.sh_test(
        name = name + "_replay",
        size = "small",
        srcs = ["//platforms:replay.sh"],
        args = ["$(rootpath :%s)" % name] + ["$(rootpath %s)" % c for c in corpus],
        data = [":" + name] + corpus,
        visibility = ["//visibility:public"],
    )

def capos_core(name, srcs = None, deps = [], test_srcs = None, test_deps = [], proof_deps = [], medium_tests = [], **kwargs):
    """A pure library with everything that proves it.

    `name` and `name.lint`; `name_test` (its inner tests); `name_<file>` for each tests/<file>.rs
    (property tests against a model among them); `name_<file>` for each loom/<file>.rs, a loom
    model; `name_<file>` for each shuttle/<file>.rs, a model under random schedules; `name_<file>`
    for each fuzz/<file>.rs, a fuzz target with its corpus in
    fuzz/corpus/name_<file>/. A test or model may have modules of its own in tests/<file>/ or
    loom/<file>/, and the models in shuttle/ may share some in shuttle/common/.

    Args:
      name: target and crate name.
      srcs: sources, by default as for capos_library.
      deps: other crates.
      test_srcs: stand-alone test files; by default tests/*.rs.
      test_deps: what the tests need beside deps.
      proof_deps: what stand-alone tests, models and fuzz targets share beside deps; may depend on the crate.
      medium_tests: names of stand-alone tests that may take longer than a small test, on a loaded machine.
      **kwargs: as for capos_library.
    """
    capos_library(name, srcs = srcs, deps = deps, **kwargs)
    capos_host_test(name = name + "_test", crate = ":" + name, deps = test_deps)
    for test in (test_srcs or native.glob(["tests/*.rs"], allow_empty = True)):
        stem = test.split("/")[-1].removesuffix(".rs")
        capos_host_test(
            name = name + "_" + stem,
            srcs = [test] + native.glob(["tests/%s/*.rs" % stem], allow_empty = True),
            crate_root = test,
            size = "medium" if stem in medium_tests else "small",
            deps = [":" + name] + deps + test_deps + proof_deps,
        )
    for model in native.glob(["loom/*.rs"], allow_empty = True):
        stem = model.split("/")[-1].removesuffix(".rs")
        capos_loom_test(
            name = name + "_" + stem,
            srcs = [model] + native.glob(["loom/%s/*.rs" % stem], allow_empty = True),
            crate_root = model,
            deps = [":" + name] + deps + proof_deps,
        )
    for model in native.glob(["shuttle/*.rs"], allow_empty = True):
        capos_shuttle_test(
            name = name + "_" + model.split("/")[-1].removesuffix(".rs"),
            srcs = [model] + native.glob(["shuttle/common/*.rs"], allow_empty = True),
            crate_root = model,
            deps = [":" + name] + deps + proof_deps,
        )
    for fuzz in native.glob(["fuzz/*.rs"], allow_empty = True):
        capos_fuzz_target(
            name = name + "_" + fuzz.split("/")[-1].removesuffix(".rs"),
            src = fuzz,
            deps = [":" + name] + deps + proof_deps,
        )
