"""The order of the house: which folder's crates may name which.

docs/book/architecture.md states the order in a sentence; this table is what holds it, twice. A
crate's default visibility follows from its folder, so Bazel refuses the other direction between
packages. And each crate declared by //platforms:rust.bzl is checked against the table by itself:
Bazel asks about visibility only after it has left out what does not build for a platform, so a
core that named the kernel's machine would not be refused but silently left out of `//...`.
"""

_ABI = ["abi"]
_CORE = _ABI + ["schema", "kernel/core"]
_SMP = _CORE + ["kernel/smp"]
_DISPATCH = _SMP + ["kernel/dispatch"]
_OPS = _DISPATCH + ["kernel/ops"]
_PROCESS = _OPS + ["kernel/process"]
_ARCH = _PROCESS + ["kernel/core/machine", "kernel/arch"]
_MM = _ARCH + ["kernel/mm"]
_SYS = _MM + ["kernel/object", "kernel/sys"]
_RUNTIME = _ABI + ["schema", "runtime"]

# Folder → the folders whose crates its own may name. The longest folder that holds a package is
# its layer; a package of no layer may name anything and be named by anything.
LAYERS = {
    "abi": _ABI,
    "kernel/arch": _ARCH,
    "kernel/bin": _SYS + ["kernel/bin"],
    "kernel/core": _CORE,
    "kernel/core/machine": _CORE + ["kernel/core/machine"],
    "kernel/dispatch": _DISPATCH,
    "kernel/mm": _MM,
    "kernel/object": _PROCESS + ["kernel/object"],
    "kernel/ops": _OPS,
    "kernel/process": _PROCESS,
    "kernel/smp": _SMP,
    "kernel/sys": _SYS,
    # Host tools: the image is checked by the code that reads it.
    "platforms/image": _CORE + ["platforms/image"],
    "platforms/loader": _ABI + ["platforms/loader"],
    "platforms/qemu": _ABI + ["platforms/qemu"],
    "runtime": _RUNTIME,
    "schema": _ABI + ["schema"],
    "userland": _RUNTIME + ["userland"],
}

# Folders that see every crate because what is in them is never part of one: tests.
_TESTS = ["test"]

# Layer → packages outside its order whose tests, not whose crates, name its crates.
_TESTED_FROM = {
    # Whether an interface's capabilities may be passed on is decided by both.
    "kernel/core": ["schema"],
}

def layer_of(package):
    """The layer of `package`, or None."""
    layer = None
    for folder in LAYERS:
        if (package == folder or package.startswith(folder + "/")) and (not layer or len(folder) > len(layer)):
            layer = folder
    return layer

def group_of(layer):
    """The name of the package group that may name the crates of `layer`."""
    return layer.replace("/", "_")

def visibility_of(package):
    """The default visibility of a crate in `package`."""
    layer = layer_of(package)
    return ["//platforms/layers:" + group_of(layer)] if layer else ["//visibility:public"]

def packages_seeing(layer):
    """Package patterns of those that may name the crates of `layer`."""
    folders = [folder for folder, below in LAYERS.items() if layer in below]
    return ["//%s/..." % folder for folder in folders + _TESTS + _TESTED_FROM.get(layer, [])]

def refusal_of(package, dep):
    """Why a crate of `package` may not name the crate `dep`; None if it may.

    Args:
      package: the package of the crate.
      dep: a label in full or with a colon in front; crates of other repositories are not judged.
    """
    if not dep.startswith("//"):
        return None
    below = LAYERS.get(layer_of(package))
    of_dep = layer_of(dep.removeprefix("//").split(":")[0])
    if below == None or of_dep in below:
        return None
    if of_dep == None:
        return "a crate of %s may name crates of %s, not %s" % (layer_of(package), _listed(below), dep)
    return "a crate of %s may name crates of %s, not %s of %s" % (layer_of(package), _listed(below), dep, of_dep)

def _listed(words):
    if len(words) < 2:
        return "".join(words)
    return ", ".join(words[:-1]) + " and " + words[-1]

LayerInfo = provider(
    doc = "A crate whose dependencies keep the order of the layers.",
    fields = {"crate": "Its name."},
)

def _layer_impl(ctx):
    package = ctx.attr.folder or ctx.label.package
    for dep in ctx.attr.deps:
        refusal = refusal_of(package, dep)
        if refusal:
            fail("//%s:%s: %s; docs/book/architecture.md says the order" % (package, ctx.attr.crate, refusal))
    return [LayerInfo(crate = ctx.attr.crate)]

layer = rule(
    doc = "Fails to analyse if a crate names one of a layer that crates of its folder may not name.",
    implementation = _layer_impl,
    attrs = {
        "crate": attr.string(mandatory = True),
        # Strings: a label would be left out with what does not build for the platform.
        "deps": attr.string_list(doc = "The labels the crate names as its dependencies."),
        "folder": attr.string(doc = "The package to judge for, instead of the target's own."),
    },
)
