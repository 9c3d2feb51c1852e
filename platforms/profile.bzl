"""Profiles: the ways a crate and everything below it is compiled.

A profile is a property of the platform that is built for, not a flag of the command line. What
runs while building (proc macros, build scripts, the image tool) is built for the host whatever
asks for it, and so once; a flag would follow it there and build it once for each value.
"""

# What a profile adds to every crate of an image. `checked` is what everything is built with
# that says nothing else, host tests among it, so an assertion in a core fires in both places.
PROFILES = {
    "checked": ["-Cdebug-assertions=on", "-Coverflow-checks=on", "--cfg=checked"],
    "measure": ["-Ccodegen-units=1", "--cfg=measure"],
    "release": ["-Ccodegen-units=1"],
}

# Coverage that libFuzzer reads, from LLVM's own pass: needs no sanitizer runtime.
_FUZZ_FLAGS = PROFILES["checked"] + [
    "--cfg=fuzzing",
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Ccodegen-units=1",
]

# For programs that are timed on the host: no checks, all that the optimiser has.
BENCH_FLAGS = PROFILES["release"] + ["-Copt-level=3"]

# Counters in every crate, read by the tools of rustc's LLVM; see //test/coverage.
_COVERAGE_FLAGS = ["-Cinstrument-coverage"]

_SHUTTLE_FLAGS = PROFILES["checked"] + ["--cfg=loom", "--cfg=shuttle"]

# Further profiles, of the host alone; see variants.bzl.
VARIANTS = {
    "bench": BENCH_FLAGS,
    "coverage": PROFILES["checked"] + _COVERAGE_FLAGS,
    "coverage_shuttle": _SHUTTLE_FLAGS + _COVERAGE_FLAGS,
    "fuzz": _FUZZ_FLAGS,
    "loom": PROFILES["checked"] + ["--cfg=loom"],
    # What is a model under loom is one here, too.
    "shuttle": _SHUTTLE_FLAGS,
}

def profiles_of(runs_on):
    """The profiles there are for "host", "kernel", "loader" or "user", with their flags."""
    return PROFILES | VARIANTS if runs_on == "host" else PROFILES

def platform_name(runs_on, profile):
    """The name in //platforms of the platform `runs_on` in a profile: kernel, kernel_release."""
    return runs_on if profile == "checked" else runs_on + "_" + profile

def platform_label(runs_on, profile = "checked"):
    """The platform `runs_on` in a profile, as transitions take it. The loader is always handed out."""
    return str(Label("//platforms:" + platform_name(runs_on, "release" if runs_on == "loader" else profile)))

def platform_kept(runs_on):
    """The platform `runs_on` in the profile that is being built for, as a select()."""
    if runs_on == "loader":
        return platform_label(runs_on)
    choices = {str(Label("//platforms:profile_" + p)): platform_label(runs_on, p) for p in profiles_of(runs_on)}
    return select(choices | {"//conditions:default": platform_label(runs_on)})

def flags_of_profile(runs_on):
    """What the tool chain of `runs_on` adds to every rustc, as a select()."""
    return select({str(Label("//platforms:profile_" + p)): flags for p, flags in profiles_of(runs_on).items()})

def _host_transition_impl(_settings, _attr):
    return {"//command_line_option:platforms": platform_label("host")}

# For rules whose result is the same whatever is built for: made once, by tools that are the
# host's own programs.
host_transition = transition(
    implementation = _host_transition_impl,
    inputs = [],
    outputs = ["//command_line_option:platforms"],
)

def _profile_transition_impl(_settings, attr):
    # Programs choose their own platform and keep the profile.
    return {
        "//command_line_option:compilation_mode": "opt",
        "//command_line_option:platforms": platform_label("host", attr.profile),
    }

profile_transition = transition(
    implementation = _profile_transition_impl,
    inputs = [],
    outputs = [
        "//command_line_option:compilation_mode",
        "//command_line_option:platforms",
    ],
)
