"""Dependencies against the order of the layers, each with the words it is refused with."""

load("@bazel_skylib//lib:unittest.bzl", "asserts", "unittest")
load("//platforms/layers:layers.bzl", "LAYERS", "layer", "layer_of", "packages_seeing", "refusal_of")
load("//test/rules:refusal.bzl", "refusal_test")

_ARCH = "//kernel/arch/x86_64:kernel_arch"
_SYS = "//kernel/sys:kernel_sys"

def layer_refusals(name):
    """Targets that must not analyse, each with the test that says so.

    Args:
      name: suite of the tests.
    """
    cases = {
        "a_core_names_no_arch": ("kernel/core/example", _ARCH, "not %s of kernel/arch" % _ARCH),
        "a_core_names_no_machine_core": ("kernel/core/example", "//kernel/core/machine/clock:core_clock", "of kernel/core/machine"),
        "a_core_names_no_test": ("kernel/core/example", "//test/kit:test_kit", "may name crates of abi, schema and kernel/core, not"),
        "a_program_names_no_kernel": ("userland/example", "//kernel/core/cap:core_cap", "of kernel/core"),
        "operations_name_no_process": ("kernel/ops", "//kernel/process:kernel_process", "of kernel/process"),
        "the_driver_names_no_operations": ("kernel/dispatch", "//kernel/ops:kernel_ops", "of kernel/ops"),
        "the_runtime_names_no_kernel": ("runtime/rt", _SYS, "of kernel/sys"),
    }
    for case, (folder, dep, words) in cases.items():
        layer(name = case + "_subject", crate = "example", deps = [dep], folder = folder, tags = ["manual"])
        refusal_test(name = case, size = "small", target_under_test = case + "_subject", words = words)
    native.test_suite(name = name, tests = cases.keys())

def _layers_impl(ctx):
    env = unittest.begin(ctx)
    asserts.equals(env, "kernel/core", layer_of("kernel/core/elf/testing"))
    asserts.equals(env, "kernel/core/machine", layer_of("kernel/core/machine/clock"))
    asserts.equals(env, None, layer_of("kernel/coreless"))
    asserts.equals(env, None, layer_of("test/kit"))

    # What may be named.
    asserts.equals(env, None, refusal_of("kernel/core/machine/frames", "//kernel/core/address:core_address"))
    asserts.equals(env, None, refusal_of("kernel/mm", _ARCH))
    asserts.equals(env, None, refusal_of("test/qemu/boot", _SYS))
    asserts.equals(env, None, refusal_of("kernel/core/elf", ":elf"))
    asserts.equals(env, None, refusal_of("kernel/core/elf", "@crates//:elf"))

    # Visibility is the same table, read the other way round.
    asserts.false(env, "//kernel/core/..." in packages_seeing("kernel/arch"))
    asserts.true(env, "//kernel/mm/..." in packages_seeing("kernel/arch"))
    asserts.true(env, "//test/..." in packages_seeing("kernel/sys"))
    for folder, below in LAYERS.items():
        asserts.true(env, folder in below, folder + " names its own crates")
        for lower in below:
            asserts.true(env, lower in LAYERS, lower + " is a layer")
            asserts.true(env, lower == folder or folder not in LAYERS[lower], "%s and %s name each other" % (folder, lower))
    return unittest.end(env)

layers_test = unittest.make(_layers_impl)
