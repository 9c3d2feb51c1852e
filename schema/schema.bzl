"""capos_schema(): Cap'n Proto files become one Rust crate, a module per file."""

load("//platforms:rust.bzl", "capos_library")

def _bindings_impl(ctx):
    out = ctx.actions.declare_directory(ctx.label.name)
    # capnp finds imports relative to the file, and the plugin writes one .rs per .capnp.
    ctx.actions.run_shell(
        mnemonic = "CapnpCompile",
        progress_message = "Compiling %d schema files" % len(ctx.files.srcs),
        inputs = ctx.files.srcs,
        tools = [ctx.executable._plugin],
        outputs = [out],
        env = {"PATH": "/usr/bin:/bin"},
        arguments = [ctx.executable._plugin.path, out.path, ctx.files.srcs[0].dirname] + [f.path for f in ctx.files.srcs],
        command = 'plugin=$1 out=$2 prefix=$3; shift 3; capnp compile --no-standard-import "-o$PWD/$plugin:$out" --src-prefix="$prefix" "$@"',
    )
    return [DefaultInfo(files = depset([out]))]

_bindings = rule(
    doc = "Runs the Cap'n Proto compiler with the in-tree plugin.",
    implementation = _bindings_impl,
    attrs = {
        "srcs": attr.label_list(allow_files = [".capnp"], mandatory = True),
        "_plugin": attr.label(default = "//schema/compiler", executable = True, cfg = "exec"),
    },
)

def capos_schema(name, srcs, deps = ["@crates//:capnp"], **kwargs):
    """A crate with the generated code of Cap'n Proto files: `name::<file>_capnp`.

    Compiles for kernel, user programs and host alike; in the kernel without allocation.

    Args:
      name: target and crate name.
      srcs: .capnp files of one folder; they may import each other.
      deps: what the generated code needs.
      **kwargs: as for capos_library.
    """
    _bindings(
        name = name + ".bindings",
        srcs = srcs,
    )
    capos_library(
        name = name,
        srcs = ["lib.rs"],
        compile_data = [":" + name + ".bindings"],
        rustc_env = {"SCHEMA_BINDINGS": "$(execpath :%s.bindings)" % name},
        deps = deps,
        **kwargs
    )
