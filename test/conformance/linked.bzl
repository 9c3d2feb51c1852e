"""linked_test(): which crates of pure logic the kernel is made of, and which it is not, and why.

A crate that is proved on the host and linked by nothing proves nothing about the system. The
test reads the dependency graph of the real kernel.
"""

load("@bazel_skylib//lib:unittest.bzl", "asserts", "unittest")
load("@rules_rust//rust:rust_common.bzl", "DepInfo")
load("//platforms/layers:layers.bzl", "LayerInfo")

CratesInfo = provider(
    doc = "Crates found by folder.",
    fields = {"names": "Their names."},
)

def _crate_list_impl(ctx):
    return [CratesInfo(names = [layer[LayerInfo].crate for layer in ctx.attr.layers])]

_crate_list = rule(
    doc = "Crates, by their checks of the order of the layers: one that had none would not be found.",
    implementation = _crate_list_impl,
    attrs = {"layers": attr.label_list(providers = [LayerInfo])},
)

def crate_list(name, packages, **kwargs):
    """The crates of packages below kernel/core and kernel/smp.

    Args:
      name: target name.
      packages: packages, with // in front; kernel/core/machine/clock holds core_clock.
      **kwargs: as for any rule.
    """
    crates = ["%s:%s_%s" % (package, package.split("/")[3], package.split("/")[-1]) for package in packages]
    _crate_list(name = name, layers = [crate + ".layer" for crate in crates], **kwargs)

def problems_of(crates, linked, apart, in_part):
    """Sentences about crates that the lists do not tell the truth about.

    Args:
      crates: names of all crates.
      linked: names of what the kernel links.
      apart: crates the kernel does not link → the reason.
      in_part: crates the kernel links without running what they are for → what it uses.
    """
    problems = []
    for crate in crates:
        if crate not in linked and crate not in apart:
            problems.append("%s is not linked into the kernel: use it there, or say in test/conformance/BUILD.bazel why not" % crate)
        if crate in linked and crate in apart:
            problems.append("%s is linked into the kernel: take it off the list in test/conformance/BUILD.bazel" % crate)
    for crate in in_part:
        if crate not in linked:
            problems.append("%s is said to be linked in part and is not linked: correct test/conformance/BUILD.bazel" % crate)
    for crate in list(apart) + list(in_part):
        if crate not in crates:
            problems.append("%s is on a list in test/conformance/BUILD.bazel and is no crate of kernel/core or kernel/smp" % crate)
    return problems

def _linked_test_impl(ctx):
    crates = ctx.attr.crates[CratesInfo].names
    linked = [crate.name for crate in ctx.attr.kernel[DepInfo].transitive_crates.to_list()]
    problems = problems_of(crates, linked, ctx.attr.apart, ctx.attr.in_part)
    lines = ["%d of %d crates of kernel/core and kernel/smp are linked into %s" % (len([c for c in crates if c in linked]), len(crates), ctx.attr.kernel.label)]
    lines += ["not linked: %s, %s" % (crate, reason) for crate, reason in ctx.attr.apart.items()]
    lines += ["linked in part: %s, %s" % (crate, reason) for crate, reason in ctx.attr.in_part.items()]
    lines += ["WRONG: " + problem for problem in problems]
    text = ctx.actions.declare_file(ctx.label.name + ".txt")
    ctx.actions.write(text, "\n".join(lines) + "\n")
    script = ctx.actions.declare_file(ctx.label.name + ".sh")
    ctx.actions.write(script, "#!/bin/sh\ncat %s\nexit %d\n" % (text.short_path, 1 if problems else 0), is_executable = True)
    return [DefaultInfo(executable = script, runfiles = ctx.runfiles([text]))]

linked_test = rule(
    doc = "Fails if a crate is not linked into the kernel and not listed, or listed and linked; prints the lists.",
    implementation = _linked_test_impl,
    attrs = {
        "apart": attr.string_dict(doc = "Crate that the kernel does not link → the reason."),
        "crates": attr.label(mandatory = True, providers = [CratesInfo]),
        "in_part": attr.string_dict(doc = "Crate that the kernel links → the little it uses."),
        "kernel": attr.label(mandatory = True, providers = [DepInfo]),
    },
    test = True,
)

def _problems_impl(ctx):
    env = unittest.begin(ctx)
    asserts.equals(env, [], problems_of(["a", "b", "c"], ["a", "c", "x"], {"b": "why"}, {"c": "what"}))
    for wrong, words in [
        (problems_of(["a", "b"], ["a"], {}, {}), "b is not linked into the kernel"),
        (problems_of(["a", "b"], ["a", "b"], {"b": "why"}, {}), "b is linked into the kernel"),
        (problems_of(["a", "b"], ["a"], {"b": "why"}, {"b": "what"}), "b is said to be linked in part"),
        (problems_of(["a"], ["a"], {"gone": "why"}, {}), "gone is on a list"),
    ]:
        asserts.equals(env, 1, len(wrong))
        asserts.true(env, wrong[0].startswith(words), wrong[0])
    return unittest.end(env)

problems_test = unittest.make(_problems_impl)
