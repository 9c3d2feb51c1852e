"""capos_system(): kernel, modules and command line become what a machine boots.

One rule instance makes one boot medium tree, packed two ways:

  * `<name>.tar`, the bundle that the direct-boot stub takes as initrd (most QEMU tests);
  * `<name>.iso`, a hybrid image that boots as a CD and as a USB disk under UEFI.

Both hold `/limine.conf`, `/boot/kernel.elf` and `/boot/<module>`, byte for byte the same.
"""

load("@bazel_skylib//rules:common_settings.bzl", "BuildSettingInfo")
load(":profile.bzl", "PROFILES", "profile_transition")

CaposSystemInfo = provider(
    doc = "A system that can be booted.",
    fields = {
        "binaries": "The modules as they were built, before stripping.",
        "bundle": "The direct-boot bundle (.tar).",
        "iso": "The hybrid CD and USB image (.iso).",
        "kernel": "The kernel with its debug sections, for gdb.",
        "loader": "The UEFI loader.",
        "profile": "checked, release or measure.",
        "stub": "The direct-boot stub that `qemu -kernel` takes.",
    },
)

def _config_lines(ctx, module_names):
    lines = [
        "timeout: 0",
        "",
        "/capOS",
        "    protocol: limine",
        "    path: boot():/boot/kernel.elf",
        "    kaslr: " + ("yes" if ctx.attr.kaslr else "no"),
    ]
    if ctx.attr.cmdline:
        lines.append("    cmdline: " + ctx.attr.cmdline)
    for name in module_names:
        lines += ["    module_path: boot():/boot/" + name, "    module_string: " + name]
    return lines

def _strip(ctx, source, name, what):
    out = ctx.actions.declare_file("%s.tree/%s" % (ctx.label.name, name))
    ctx.actions.run(
        mnemonic = "StripDebug",
        executable = "/usr/bin/objcopy",
        arguments = [what, source.path, out.path],
        inputs = [source],
        outputs = [out],
    )
    return out

def _capos_system_impl(ctx):
    kernel = ctx.file.kernel
    stub = ctx.file._stub
    loader = ctx.file._loader

    # (path on the medium, file)
    tree = [("boot/kernel.elf", _strip(ctx, kernel, "kernel.elf", "--strip-debug"))]
    names = []
    binaries = []
    for target, name in ctx.attr.modules.items():
        files = target[DefaultInfo].files.to_list()
        if len(files) != 1:
            fail("module %s must be one file, is %s" % (target.label, files))
        if "/" in name or name == "kernel.elf" or name in names:
            fail("module name %r must be unique, without '/', and not kernel.elf" % name)
        names.append(name)
        file = files[0]
        binaries.append(file)
        if file.extension == "elf":
            # The kernel's reports have its own symbols; a program's are for tools that look into the bundle.
            what = "--strip-debug" if ctx.attr.keeps_program_symbols else "--strip-all"
            file = _strip(ctx, file, name, what)
        tree.append(("boot/" + name, file))

    config = ctx.actions.declare_file(ctx.label.name + ".tree/limine.conf")
    ctx.actions.write(config, "\n".join(_config_lines(ctx, names)) + "\n")
    tree.append(("limine.conf", config))

    bundle = ctx.actions.declare_file(ctx.label.name + ".tar")
    iso = ctx.actions.declare_file(ctx.label.name + ".iso")
    entries = ["%s=%s" % (path, file.path) for path, file in tree]
    ctx.actions.run(
        mnemonic = "BootBundle",
        executable = ctx.executable._make_image,
        arguments = ["bundle", bundle.path] + entries,
        inputs = [file for _, file in tree],
        outputs = [bundle],
        env = {"PATH": "/usr/bin:/bin"},
    )
    limine = ctx.attr._limine[BuildSettingInfo].value
    if limine:
        # The directory is the user's own and not an input Bazel knows: never cached.
        ctx.actions.run(
            mnemonic = "BootIso",
            executable = ctx.executable._make_image,
            arguments = ["limine-iso", iso.path, limine] + entries,
            inputs = [file for _, file in tree],
            outputs = [iso],
            env = {"PATH": "/usr/bin:/bin"},
            execution_requirements = {"no-cache": "1", "no-remote": "1"},
        )
    else:
        ctx.actions.run(
            mnemonic = "BootIso",
            executable = ctx.executable._make_image,
            arguments = ["iso", iso.path, "EFI/BOOT/BOOTX64.EFI=" + loader.path] + entries,
            inputs = [file for _, file in tree] + [loader],
            outputs = [iso],
            env = {"PATH": "/usr/bin:/bin"},
        )
    return [
        DefaultInfo(files = depset([bundle])),
        OutputGroupInfo(iso = depset([iso]), kernel = depset([kernel]), bundle = depset([bundle])),
        CaposSystemInfo(binaries = binaries, bundle = bundle, iso = iso, kernel = kernel, loader = loader, profile = ctx.attr.profile, stub = stub),
    ]

capos_system = rule(
    doc = "Ties a kernel, its boot modules and a command line into bootable images.",
    implementation = _capos_system_impl,
    attrs = {
        "cmdline": attr.string(doc = "Kernel command line: space separated words, see docs/book/kernel.md."),
        "kaslr": attr.bool(doc = "Whether the loader may slide a relocatable kernel."),
        "keeps_program_symbols": attr.bool(doc = "Whether programs keep the names of their functions."),
        "kernel": attr.label(mandatory = True, allow_single_file = True, cfg = profile_transition, doc = "A capos_binary(runs_on = \"kernel\")."),
        "modules": attr.label_keyed_string_dict(cfg = profile_transition, doc = "File → name below /boot."),
        "profile": attr.string(default = "release", values = PROFILES.keys(), doc = "How kernel and modules are built."),
        "_allowlist_function_transition": attr.label(default = "@bazel_tools//tools/allowlists/function_transition_allowlist"),
        "_limine": attr.label(default = "//platforms:limine"),
        "_loader": attr.label(default = "//platforms/loader/uefi:loader", allow_single_file = True),
        "_make_image": attr.label(default = "//platforms/image:make_image", executable = True, cfg = "exec"),
        "_stub": attr.label(default = "//platforms/loader/direct:stub", allow_single_file = True),
    },
)

def _system_file_impl(ctx):
    source = getattr(ctx.attr.system[CaposSystemInfo], ctx.attr.part)

    # By a name of its own: a kernel has the same one in every profile.
    file = ctx.actions.declare_file("%s.%s" % (ctx.label.name, source.extension))
    ctx.actions.symlink(output = file, target_file = source)
    return [DefaultInfo(files = depset([file]), runfiles = ctx.runfiles([file]))]

system_file = rule(
    doc = "One file of a capos_system, for rules that take plain files.",
    implementation = _system_file_impl,
    attrs = {
        "part": attr.string(mandatory = True, values = ["bundle", "iso", "kernel", "stub"]),
        "system": attr.label(mandatory = True, providers = [CaposSystemInfo]),
    },
)
