"""tools_test(): what runs while building is built once, whatever asks for it.

A build setting that a transition sets follows tools into their configuration, a platform does
not. Proc macros are tools, and take longest of all there is to compile.
"""

load("//platforms:profile.bzl", "PROFILES", "VARIANTS", "host_transition", "profile_transition")
load("//platforms:rust.bzl", "platform_transition")
load("//platforms:variants.bzl", "variant_transition")

_ToolInfo = provider(doc = "A tool as configurations see it.", fields = {"paths": "Who asks → its path."})

def _probe_impl(ctx):
    return [_ToolInfo(paths = {"nobody": ctx.executable._tool.path})]

_probe = rule(
    doc = "Sees a tool as a proc macro or a build script is seen.",
    implementation = _probe_impl,
    attrs = {"_tool": attr.label(default = "//platforms/image:make_image", executable = True, cfg = "exec")},
)

def _asked_impl(ctx):
    paths = {}
    for name in ["platform", "profile", "variant", "host"]:
        word = getattr(ctx.attr, {"platform": "runs_on"}.get(name, name), "")
        paths[(name + " " + word).strip()] = getattr(ctx.attr, "by_" + name)[0][_ToolInfo].paths["nobody"]
    return [_ToolInfo(paths = paths)]

_asked = rule(
    doc = "The probe behind each transition of the house.",
    implementation = _asked_impl,
    attrs = {
        "by_host": attr.label(cfg = host_transition),
        "by_platform": attr.label(cfg = platform_transition),
        "by_profile": attr.label(cfg = profile_transition),
        "by_variant": attr.label(cfg = variant_transition),
        "profile": attr.string(),
        "runs_on": attr.string(),
        "variant": attr.string(),
        "_allowlist_function_transition": attr.label(default = "@bazel_tools//tools/allowlists/function_transition_allowlist"),
    },
)

def _tools_test_impl(ctx):
    paths = {}
    for asked in ctx.attr.asked:
        paths.update(asked[_ToolInfo].paths)
    lines = ["%s: %s" % (name, path) for name, path in paths.items()]
    script = ctx.actions.declare_file(ctx.label.name + ".sh")
    ctx.actions.write(
        script,
        "#!/bin/sh\ncat <<'END'\n%s\nEND\nexit %d\n" % ("\n".join(lines), 0 if len({p: None for p in paths.values()}) == 1 else 1),
        is_executable = True,
    )
    return [DefaultInfo(executable = script)]

_tools_test = rule(
    doc = "Fails if a tool is built in more than one configuration; prints where each way finds it.",
    implementation = _tools_test_impl,
    attrs = {"asked": attr.label_list(providers = [_ToolInfo])},
    test = True,
)

def tools_test(name, **kwargs):
    """Fails if some platform, profile or variant has tools of its own.

    Args:
      name: target name.
      **kwargs: as for any test.
    """
    probe = name + ".probe"
    _probe(name = probe)
    asked = []
    platforms = ["host", "kernel", "loader", "user"]
    for i, variant in enumerate(VARIANTS):
        asked.append("%s.%s" % (name, variant))
        _asked(
            name = asked[-1],
            by_host = probe,
            by_platform = probe,
            by_profile = probe,
            by_variant = probe,
            profile = PROFILES.keys()[i % len(PROFILES)],
            runs_on = platforms[i % len(platforms)],
            variant = variant,
        )
    _tools_test(name = name, asked = asked, **kwargs)
