"""capos_schema(): Cap'n Proto files become one Rust crate, two modules per file."""

load("//platforms:profile.bzl", "host_transition")
load("//platforms:rust.bzl", "capos_library")

def _bindings_impl(ctx):
    out = ctx.actions.declare_directory(ctx.label.name)
    # capnp finds imports relative to the file, and the plugin writes its modules into `out`.
    ctx.actions.run_shell(
        mnemonic = "CapnpCompile",
        progress_message = "Compiling %d schema files" % len(ctx.files.srcs),
        inputs = ctx.files.srcs + ctx.files.imports,
        tools = [ctx.executable._plugin],
        outputs = [out],
        env = {"PATH": "/usr/bin:/bin"},
        arguments = [ctx.executable._plugin.path, out.path, ctx.files.srcs[0].dirname] + [f.path for f in ctx.files.srcs],
        command = 'plugin=$1 out=$2 prefix=$3; shift 3; capnp compile --no-standard-import "-o$PWD/$plugin:$out" --src-prefix="$prefix" "$@"',
    )
    return [DefaultInfo(files = depset([out]))]

schema_bindings = rule(
    doc = "Runs the Cap'n Proto compiler with the in-tree plugin; the output is a folder.",
    implementation = _bindings_impl,
    attrs = {
        "imports": attr.label_list(allow_files = [".capnp"], doc = "Files that are imported and get no code."),
        "srcs": attr.label_list(allow_files = [".capnp"], mandatory = True),
        "_plugin": attr.label(default = "//schema/compiler", executable = True, cfg = "target"),
        "_allowlist_function_transition": attr.label(default = "@bazel_tools//tools/allowlists/function_transition_allowlist"),
    },
    cfg = host_transition,
)

def _root_impl(ctx):
    out = ctx.actions.declare_file(ctx.label.name)
    ctx.actions.write(out, """\
//! Generated code of the Cap'n Proto files in //{package}.
#![no_std]
#![allow(missing_docs, clippy::all, clippy::pedantic, clippy::restriction, unused, rustdoc::all)]

include!(concat!(env!("SCHEMA_BINDINGS"), "/modules.rs"));
""".format(package = ctx.label.package))
    return [DefaultInfo(files = depset([out]))]

_root = rule(
    doc = "The root module of a schema crate.",
    implementation = _root_impl,
)

def capos_schema(name, srcs, imports = [], deps = ["//schema/wire:schema_wire", "@crates//:capnp"], **kwargs):
    """A crate with the generated code of Cap'n Proto files.

    For each `x.capnp`: `name::x`, its values, method table, client and server, and
    `name::x_capnp`, the stock generator's code of its structs. Compiles for kernel, user
    programs and host alike, and allocates nothing.

    Args:
      name: target and crate name.
      srcs: .capnp files of one folder; they may import each other.
      imports: files of the folder that they import and that get no code here.
      deps: what the generated code needs.
      **kwargs: as for capos_library.
    """
    schema_bindings(
        name = name + ".bindings",
        srcs = srcs,
        imports = imports,
    )
    _root(name = name + ".rs")
    capos_library(
        name = name,
        srcs = [":" + name + ".rs"],
        compile_data = [":" + name + ".bindings"],
        rustc_env = {"SCHEMA_BINDINGS": "$(execpath :%s.bindings)" % name},
        deps = deps,
        **kwargs
    )
