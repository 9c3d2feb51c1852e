"""capos_qemu_test(): a system and a machine become a test.

One target is one boot of one configuration; the guest runs its whole suite in it. The runner
(//test/harness:runner) starts QEMU, judges by exit code, records and count, and leaves console,
records, command line, metrics and verdict in the test's outputs. See docs/book/testing.md.
"""

load(":load.bzl", "CaposGuestTestInfo", "capos_load")
load(":system.bzl", "CaposSystemInfo", "capos_system")

_LANES = {
    "d": "deterministic",
    "r": "racing",
}

# The bound on sections of kernel code; kernel/sys/src/section.rs measures them.
_MOST_INSTRUCTIONS_IN_KERNEL = 20000

def _files_of(ctx):
    """(runner words, files) of what the machine boots."""
    if ctx.file.program:
        if ctx.attr.system or ctx.attr.boot != "direct":
            fail("program is a guest by itself: it goes with neither system nor boot")
        return ["--boot", "program", "--program", ctx.file.program.short_path], [ctx.file.program]
    if not ctx.attr.system:
        fail("one of system and program is needed")
    system = ctx.attr.system[CaposSystemInfo]

    # By a name of its own: kernels of two profiles have the same one, and some rules take many tests.
    symbols = ctx.actions.declare_file(ctx.label.name + ".kernel.elf")
    ctx.actions.symlink(output = symbols, target_file = system.kernel)
    words = ["--boot", ctx.attr.boot, "--profile", system.profile, "--symbols", symbols.short_path]
    if ctx.attr.boot == "direct":
        return words + ["--stub", system.stub.short_path, "--bundle", system.bundle.short_path], [system.stub, system.bundle, symbols]
    if ctx.attr.append:
        fail("append goes with boot = \"direct\" only: under UEFI the words belong into the system's cmdline")
    return words + ["--iso", system.iso.short_path], [system.iso, symbols]

def _qemu_test_impl(ctx):
    words, files = _files_of(ctx)
    append = ctx.attr.append
    if ctx.attr.system and ctx.attr.boot == "direct":
        # Without this word a kernel stays on its last screen instead of ending QEMU.
        append = ["exit=debug"] + append

        # With one CPU a tick of the deterministic lane is an instruction: no more of them than this
        # may pass in the kernel without a preemption point.
        if ctx.attr.system[CaposSystemInfo].profile == "checked" and ctx.attr.lane == "deterministic" and ctx.attr.cpus == 1:
            append = ["section=%d" % _MOST_INSTRUCTIONS_IN_KERNEL] + append
    words += [
        "--label",
        str(ctx.label).removeprefix("@@").removeprefix("@"),
        "--lane",
        ctx.attr.lane,
        "--cpus",
        str(ctx.attr.cpus),
        "--memory",
        str(ctx.attr.memory_mib),
        "--cpu",
        ctx.attr.cpu,
        "--expect",
        ctx.attr.expect,
    ]
    if append:
        words += ["--append", " ".join(append)]
    if ctx.attr.guard_seconds:
        words += ["--guard-seconds", str(ctx.attr.guard_seconds)]
    for word in ctx.attr.qemu_args:
        # One word with '=', because these begin with a dash.
        words.append("--qemu-arg=" + word)
    for word in words:
        if "\n" in word:
            fail("%r: a word of the description cannot hold a line break" % word)

    description = ctx.actions.declare_file(ctx.label.name + ".run")
    ctx.actions.write(description, "\n".join(words) + "\n")
    script = ctx.actions.declare_file(ctx.label.name + ".sh")
    ctx.actions.write(
        script,
        "#!/bin/sh\nexec %s @%s \"$@\"\n" % (ctx.executable._runner.short_path, description.short_path),
        is_executable = True,
    )
    runfiles = ctx.runfiles(files + [description, ctx.executable._runner])
    return [
        DefaultInfo(
            executable = script,
            runfiles = runfiles.merge(ctx.attr._runner[DefaultInfo].default_runfiles),
        ),
        CaposGuestTestInfo(lane = ctx.attr.lane),
    ]

_qemu_test = rule(
    doc = "One boot of one configuration, judged.",
    implementation = _qemu_test_impl,
    test = True,
    attrs = {
        "append": attr.string_list(doc = "Words added to the kernel's command line."),
        "boot": attr.string(default = "direct", values = ["direct", "cd", "usb"], doc = "Through the direct-boot stub, or the image under UEFI as a CD or a USB disk."),
        "cpu": attr.string(default = "max", doc = "CPU model and features, as QEMU's -cpu takes it."),
        "cpus": attr.int(default = 1),
        "expect": attr.string(default = "pass", values = ["pass", "panic", "guest-timeout", "refused", "power-off", "reset"], doc = "How the run ends; for panic and guest-timeout: in the last planned test; refused: before any; power-off and reset: all tests pass on a machine without an exit port."),
        "guard_seconds": attr.int(doc = "Wall-clock bound on a silent guest; by default four fifths of the test's timeout."),
        "lane": attr.string(default = "deterministic", values = ["deterministic", "racing"]),
        "memory_mib": attr.int(default = 256),
        "program": attr.label(allow_single_file = True, doc = "A PVH program that needs no loader, instead of a system."),
        "qemu_args": attr.string_list(doc = "Further words for QEMU."),
        "system": attr.label(providers = [CaposSystemInfo], doc = "What to boot."),
        "_runner": attr.label(default = "//test/harness:runner", executable = True, cfg = "target"),
    },
)

def _configuration(name, text):
    """(cpus, lane) of a word such as "4r"."""
    cpus, lane = text[:-1], text[-1:]
    if lane not in _LANES or not cpus.isdigit() or int(cpus) < 1:
        fail("%s: on = %r must be a number of CPUs and d (deterministic) or r (racing), such as 1d or 4r" % (name, text))
    return int(cpus), _LANES[lane]

def _one(name, lane, tags, **kwargs):
    # A racing guest has several host threads at work: Bazel counts it as two.
    if lane == "racing":
        tags = tags + ["cpu:2"]
    visibility = kwargs.pop("visibility", ["//visibility:public"])
    _qemu_test(name = name, lane = lane, tags = tags + ["qemu"], visibility = visibility, **kwargs)

def capos_qemu_test(
        name,
        system = None,
        kernel = None,
        modules = {},
        cmdline = "",
        profiles = None,
        program = None,
        on = None,
        cpus = 1,
        lane = "deterministic",
        memory = 256,
        boot = "direct",
        append = [],
        expect = "pass",
        tags = [],
        size = "small",
        **kwargs):
    """Declares a guest test, or a matrix of them.

    What to boot is either `system`, or `kernel` with `modules`, `cmdline` and `profiles`: then
    a capos_system per profile is made here, with the command line word `exit=debug` that lets
    the kernel end QEMU. A `system` given for boot = "cd" or "usb" must have that word in its
    own cmdline; in a direct boot it is appended.

    Without `on` there is one target per profile; with it, one per profile and configuration,
    named `<name>_4r` for four CPUs in the racing lane, with the profile behind
    (`<name>_4r_release`) if there are several. As soon as there is more than one target,
    `<name>` is a test_suite of them. `./bazelw run <name>.load` runs those of the racing lane many
    times under load (load.bzl).

        capos_qemu_test(
            name = "smoke",
            kernel = ":smoke_kernel",
            on = ["1d", "2d", "4r"],
            profiles = ["checked", "release"],
        )

    Args:
      name: target name, or prefix and suite.
      system: a capos_system.
      kernel: a kernel under test, instead of system.
      modules: file → name below /boot, with kernel.
      cmdline: command line words, with kernel.
      profiles: image profiles, with kernel; by default ["checked"].
      program: a PVH program without a loader, instead of system and kernel.
      on: configurations: number of CPUs and d (deterministic) or r (racing).
      cpus: number of CPUs, without on.
      lane: "deterministic" (guest time is instructions; timing assertions live here) or
        "racing" (real interleavings; safety and liveness only), without on.
      memory: MiB.
      boot: "direct" (the stub; fast), "cd" or "usb" (the image under UEFI firmware).
      append: words added to the kernel's command line; direct boot only.
      expect: "pass", "panic", "guest-timeout", "refused" (the kernel does not run on the machine), or
        "power-off" and "reset" (as pass, on a machine without an exit port, which the kernel then ends
        in that way).
      tags: such as "long", which the default lane leaves out.
      size: as for any Bazel test; its timeout sets the wall-clock guard.
      **kwargs: further attributes: cpu, qemu_args, guard_seconds, timeout, visibility...
    """
    given = [what for what in [system, kernel, program] if what]
    if len(given) != 1:
        fail("%s: exactly one of system, kernel and program says what to boot" % name)
    if not kernel and (modules or cmdline or profiles):
        fail("%s: modules, cmdline and profiles go with kernel" % name)
    if on != None and (cpus != 1 or lane != "deterministic"):
        fail("%s: on says cpus and lane already" % name)

    profiles = profiles or ["checked"]
    systems = {}
    if kernel:
        for profile in profiles:
            systems[profile] = "%s_%s_system" % (name, profile)
            capos_system(
                name = systems[profile],
                testonly = True,
                cmdline = (cmdline + " exit=debug").strip() if boot != "direct" else cmdline,
                kernel = kernel,
                modules = modules,
                profile = profile,
            )
    else:
        systems[""] = system

    configurations = {"": (cpus, lane)}
    if on != None:
        configurations = {"_" + text: _configuration(name, text) for text in on}
    targets = []
    racing = []
    for suffix, (cpus, lane) in configurations.items():
        for profile, of_profile in systems.items():
            target = name + suffix + ("_" + profile if len(systems) > 1 else "")
            targets.append(target)
            if lane == "racing":
                racing.append(":" + target)
            _one(
                target,
                lane,
                tags,
                append = append,
                boot = boot,
                cpus = cpus,
                expect = expect,
                memory_mib = memory,
                program = program,
                size = size,
                system = of_profile,
                **kwargs
            )
    if racing:
        capos_load(
            name = name + ".load",
            testonly = True,
            suites = racing,
            visibility = ["//visibility:public"],
        )
    if targets != [name]:
        native.test_suite(
            name = name,
            # A suite is filtered by its tags: "long" ones are asked for as such.
            tags = [tag for tag in tags if tag in ["long", "manual"]],
            tests = [":" + target for target in targets],
        )
