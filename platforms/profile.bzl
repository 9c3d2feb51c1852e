"""The three ways an image is built: checked, release and measure."""

_FLAGS_SETTING = "@rules_rust//rust/settings:extra_rustc_flags"

# What a profile adds to every crate of an image. `checked` is also what host tests are
# built with (see .bazelrc), so an assertion in a core fires in both places.
PROFILES = {
    "checked": ["-Cdebug-assertions=on", "-Coverflow-checks=on", "--cfg=checked"],
    "measure": ["-Ccodegen-units=1", "--cfg=measure"],
    "release": ["-Ccodegen-units=1"],
}

def _profile_transition_impl(_settings, attr):
    return {
        "//command_line_option:compilation_mode": "opt",
        "//platforms:profile": attr.profile,
        _FLAGS_SETTING: PROFILES[attr.profile],
    }

profile_transition = transition(
    implementation = _profile_transition_impl,
    inputs = [],
    outputs = [
        "//command_line_option:compilation_mode",
        "//platforms:profile",
        _FLAGS_SETTING,
    ],
)

def _release_transition_impl(_settings, _attr):
    return {
        "//command_line_option:compilation_mode": "opt",
        "//platforms:profile": "release",
        _FLAGS_SETTING: PROFILES["release"],
    }

release_transition = transition(
    implementation = _release_transition_impl,
    inputs = [],
    outputs = [
        "//command_line_option:compilation_mode",
        "//platforms:profile",
        _FLAGS_SETTING,
    ],
)
