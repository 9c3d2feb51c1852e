"""capos_manifest(): a system's boot manifest, compiled and checked when it is built.

The source is a Cap'n Proto file with one constant:

    @0x…;
    using Boot = import "/schema/manifest.capnp";
    const manifest :Boot.Manifest = (processes = [(name = "hello", binary = "hello.elf")]);
"""

load(":profile.bzl", "host_transition")

_ATTRS = {
    "binaries": attr.string_list(doc = "The names of the boot modules that processes may be loaded from."),
    "src": attr.label(allow_single_file = [".capnp"], mandatory = True, doc = "The file with the constant `manifest`."),
    "_check": attr.label(default = "//platforms/image/manifest:check", executable = True, cfg = "target"),
    "_allowlist_function_transition": attr.label(default = "@bazel_tools//tools/allowlists/function_transition_allowlist"),
    "_schema": attr.label_list(default = ["//schema:manifest.capnp"], allow_files = True),
}

# capnp finds "/schema/…" from the workspace's root.
_COMPILE = 'capnp eval --no-standard-import -I. -o canonical "$src" manifest >"$out.blob" && "$check" "$src" "$out.blob" "$@"'

def _run(ctx, out, mnemonic, command):
    ctx.actions.run_shell(
        mnemonic = mnemonic,
        progress_message = "Checking manifest %s" % ctx.file.src.short_path,
        inputs = [ctx.file.src] + ctx.files._schema,
        tools = [ctx.executable._check],
        outputs = [out],
        env = {"PATH": "/usr/bin:/bin"},
        arguments = [ctx.executable._check.path, ctx.file.src.path, out.path] + ctx.attr.binaries,
        command = "check=$1 src=$2 out=$3; shift 3; " + command,
    )
    return [DefaultInfo(files = depset([out]))]

def _capos_manifest_impl(ctx):
    out = ctx.actions.declare_file(ctx.label.name + ".bin")
    return _run(ctx, out, "Manifest", '{ %s; } && mv "$out.blob" "$out"' % _COMPILE)

capos_manifest = rule(
    doc = "The canonical encoding of a manifest, `name.bin`. A manifest the kernel would refuse fails the build.",
    implementation = _capos_manifest_impl,
    attrs = _ATTRS,
    cfg = host_transition,
)

def _manifest_refusal_impl(ctx):
    out = ctx.actions.declare_file(ctx.label.name + ".txt")
    return _run(ctx, out, "ManifestRefusal", 'if { %s; } 2>"$out"; then echo "$src: accepted" >"$out"; fi' % _COMPILE)

manifest_refusal = rule(
    doc = "What building a bad manifest says, `name.txt`: for the tests of capos_manifest.",
    implementation = _manifest_refusal_impl,
    attrs = _ATTRS,
    cfg = host_transition,
)
