"""rules_rust toolchains: host, kernel, loader (UEFI) and user programs."""

load("@rules_rust//rust:toolchain.bzl", "rust_stdlib_filegroup", "rust_toolchain", "rustfmt_toolchain")
load("//platforms:profile.bzl", "flags_of_profile")
load(":build_std.bzl", "build_std")

_TOOLS = dict(
    rustc = "bin/rustc",
    rust_doc = "bin/rustdoc",
    cargo = "bin/cargo",
    clippy_driver = "bin/clippy-driver",
    cargo_clippy = "bin/cargo-clippy",
    rustfmt = "bin/rustfmt",
    rustc_lib = ":rustc_lib",
    exec_triple = "x86_64-unknown-linux-gnu",
    default_edition = "2024",
    staticlib_ext = ".a",
    dylib_ext = ".so",
    # Line tables for gdb and for reports; images carry stripped copies.
    debug_info = {"dbg": "2", "fastbuild": "1", "opt": "1"},
    strip_level = {"dbg": "none", "fastbuild": "none", "opt": "none"},
)

# Flags of the bare targets. Frame pointers stay so that a panic can walk the stack.
_BARE_FLAGS = ["-Cpanic=abort", "-Cforce-frame-pointers=yes"]

def _bare(name, triple, ext, flags, alloc_cfgs = [], target_json = None):
    # rustc looks for the standard library under the target's name, which for a
    # specification file is the file's stem; rules_rust names the file after the toolchain.
    sysroot_name = name + ".target" if target_json else triple
    build_std(
        name = "std_files_" + name,
        alloc_cfgs = alloc_cfgs,
        rustc = "bin/rustc",
        rustc_flags = flags,
        srcs = [":std_src"],
        target = sysroot_name,
        target_json = target_json or "",
    )
    rust_stdlib_filegroup(name = "std_" + name, srcs = [":std_files_" + name])
    target = dict(target_json = target_json, rustc = "bin/user/rustc", clippy_driver = "bin/user/clippy-driver") if target_json else dict(target_triple = triple)
    rust_toolchain(
        name = name,
        allocator_library = "@capos//platforms/toolchains:nothing",
        binary_ext = ext,
        env = {"RUSTC_BOOTSTRAP": "1"},
        extra_rustc_flags = _BARE_FLAGS + flags + flags_of_profile(name),
        global_allocator_library = "@capos//platforms/toolchains:nothing",
        rust_std = ":std_" + name,
        stdlib_linkflags = [],
        **(_TOOLS | target)
    )

def rust_toolchains(user_target_json):
    """Declares the four toolchains, and rustfmt, in the @rust repository."""
    rustfmt_toolchain(
        name = "rustfmt",
        rustc = "bin/rustc",
        rustc_lib = ":rustc_lib",
        rustfmt = "bin/rustfmt",
    )
    rust_toolchain(
        name = "host",
        binary_ext = "",
        extra_rustc_flags = flags_of_profile("host"),
        rust_std = ":std_host",
        stdlib_linkflags = ["-lpthread", "-ldl"],
        target_triple = "x86_64-unknown-linux-gnu",
        **_TOOLS
    )
    _bare(
        "kernel",
        "x86_64-unknown-none",
        ".elf",
        ["-Crelocation-model=static", "-Ccode-model=kernel"],
        # Infallible allocation does not exist in the kernel: out of memory is an answer.
        alloc_cfgs = ["no_global_oom_handling"],
    )
    _bare("loader", "x86_64-unknown-uefi", ".efi", [])
    _bare("user", None, ".elf", [], target_json = user_target_json)
