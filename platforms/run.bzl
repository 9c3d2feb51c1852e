"""Run targets: a capos_system on a person's terminal, or as an image to take away."""

load(":system.bzl", "CaposSystemInfo")

_RUN = """#!/bin/sh
exec {run} --mode {mode} --stub {stub} --bundle {bundle} --iso {iso} --kernel {kernel} "$@"
"""

def _executable(ctx, text, files, merged = None):
    script = ctx.actions.declare_file(ctx.label.name + ".sh")
    ctx.actions.write(script, text, is_executable = True)
    runfiles = ctx.runfiles(files)
    if merged:
        runfiles = runfiles.merge(merged)
    return [DefaultInfo(executable = script, runfiles = runfiles)]

def _capos_run_impl(ctx):
    info = ctx.attr.system[CaposSystemInfo]
    run = ctx.executable._run
    files = [info.stub, info.bundle, info.iso, info.kernel, run]
    text = _RUN.format(
        bundle = info.bundle.short_path,
        iso = info.iso.short_path,
        kernel = info.kernel.short_path,
        mode = ctx.attr.mode,
        run = run.short_path,
        stub = info.stub.short_path,
    )
    return _executable(ctx, text, files, ctx.attr._run[DefaultInfo].default_runfiles)

capos_run = rule(
    doc = "`bazel run`: boots a system in QEMU on the terminal, or under gdb.",
    implementation = _capos_run_impl,
    attrs = {
        "mode": attr.string(default = "run", values = ["run", "debug"]),
        "system": attr.label(mandatory = True, providers = [CaposSystemInfo]),
        "_run": attr.label(default = "//platforms/qemu/run", executable = True, cfg = "target"),
    },
    executable = True,
)

_IMAGE = """#!/bin/sh
set -eu
image=$(readlink -f {iso})
case "${{1:-}}" in
  "") ;;
  --out)
    out=${{2:?--out takes a file name}}
    case $out in /*) ;; *) out=${{BUILD_WORKING_DIRECTORY:-$PWD}}/$out ;; esac
    cp -f "$image" "$out" && chmod 644 "$out" && image=$out ;;
  *) echo "'$1' is not understood; --out FILE writes a copy" >&2; exit 2 ;;
esac
echo "path   $image"
echo "size   $(stat -c %s "$image") bytes"
echo "sha256 $(sha256sum < "$image" | cut -c1-64)"
{hint}
"""

def _capos_image_impl(ctx):
    info = ctx.attr.system[CaposSystemInfo]
    hint = "\n".join(["echo '%s'" % line for line in ctx.attr.hint])
    return _executable(ctx, _IMAGE.format(hint = hint, iso = info.iso.short_path), [info.iso])

capos_image = rule(
    doc = "`bazel run`: builds a system's image and prints its path, size and sha256; `-- --out FILE` copies it.",
    implementation = _capos_image_impl,
    attrs = {
        "hint": attr.string_list(doc = "Lines printed below: what to do with it."),
        "system": attr.label(mandatory = True, providers = [CaposSystemInfo]),
    },
    executable = True,
)
