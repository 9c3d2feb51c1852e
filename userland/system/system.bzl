"""The shipped system's manifest and boot modules, with the programs that the shell knows.

The shell knows them by its environment; the build makes that from the list that the programs are built from.
"""

load("@bazel_skylib//rules:expand_template.bzl", "expand_template")
load("//platforms:manifest.bzl", "capos_manifest")
load("//userland/programs:programs.bzl", "PROGRAMS")

_SERVICES = {
    "//userland/demo:client": "client.elf",
    "//userland/demo:server": "server.elf",
    "//userland/init": "init.elf",
    "//userland/shell": "shell.elf",
}

def system_modules(manifest = "//userland/system:manifest", more = {}):
    """The boot modules: file → name below /boot.

    Args:
      manifest: the system's manifest.
      more: label → name of programs beside those of //userland/programs.
    """
    programs = {"//userland/programs:" + program: program + ".elf" for program in PROGRAMS}
    return _SERVICES | {manifest: "manifest.bin"} | programs | {label: name + ".elf" for label, name in more.items()}

def system_manifest(name, more = {}, **kwargs):
    """The manifest: userland/system/system.capnp with the programs in its place for them.

    Args:
      name: target name.
      more: name → what it does of programs beside those of //userland/programs.
      **kwargs: as for any rule.
    """
    programs = PROGRAMS | more
    variables = ['(name = "program/%s", value = "%s")' % item for item in programs.items()]
    expand_template(
        name = name + ".source",
        out = name + ".capnp",
        substitutions = {"[PROGRAMS_OF_THE_SHELL]": "[%s]" % ",\n     ".join(variables)},
        template = "//userland/system:system.capnp",
        **kwargs
    )
    capos_manifest(
        name = name,
        src = name + ".capnp",
        binaries = _SERVICES.values() + [program + ".elf" for program in programs],
        **kwargs
    )
