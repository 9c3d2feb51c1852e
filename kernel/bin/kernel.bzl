"""capos_kernel(): a kernel image from a main function."""

load("//platforms:rust.bzl", "capos_binary")

def capos_kernel(name, srcs, deps = [], **kwargs):
    """A kernel: the boot sequence of kernel_sys and a main function of its own.

    The kernel proper and every test kernel are declared with it. The sources define
    `fn main(machine: &'static kernel_sys::Machine) -> !` and name it with
    `kernel_sys::kernel_main!(main)`.

    Args:
      name: target name.
      srcs: sources.
      deps: crates beside those every kernel has.
      **kwargs: as for capos_binary.
    """
    capos_binary(
        name = name,
        srcs = srcs,
        linker_script = "//kernel/bin:kernel.ld",
        runs_on = "kernel",
        deps = deps + [
            "//abi/report:abi_report",
            "//kernel/arch/x86_64:kernel_arch",
            "//kernel/mm:kernel_mm",
            "//kernel/sys:kernel_sys",
        ],
        **kwargs
    )
