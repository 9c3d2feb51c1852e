"""A contestant of the fiber benchmark: a program, with all its crates, built to be timed."""

load("@rules_rust//rust:defs.bzl", "rust_binary")
load("//platforms:rust.bzl", "lint_flags")
load("//platforms:variants.bzl", "variant_binary", "variant_lint")

def contestant(name, deps, srcs = None, rustc_flags = []):
    """A Rust contestant; it is compiled in the variant `bench` and in no other.

    Args:
      name: target name; also the folder of the sources.
      deps: what it is about; the meter comes by itself.
      srcs: sources, by default <name>/main.rs.
      rustc_flags: flags beside those of the folder.
    """
    rust_binary(
        name = name + ".program",
        srcs = srcs or [name + "/main.rs"],
        crate_name = name + "_contestant",
        edition = "2024",
        rustc_flags = lint_flags() + ["--check-cfg=cfg(local)"] + rustc_flags,
        tags = ["manual"],
        deps = deps + ["//runtime/fiber/bench/meter:fiber_bench_meter"],
    )
    variant_binary(
        name = name,
        program = ":" + name + ".program",
        variant = "bench",
    )
    variant_lint(
        name = name + ".lint",
        crates = [":" + name + ".program"],
        variant = "bench",
    )

def contestant_words(contestants):
    """The driver's arguments that name contestants.

    Args:
      contestants: targets by name.
    Returns:
      A list of words.
    """
    words = []
    for name, target in contestants.items():
        words += ["--contestant", "%s=$(rootpath %s)" % (name, target)]
    return words
