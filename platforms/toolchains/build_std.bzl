"""core, compiler_builtins and alloc compiled from rustc's own sources, as one cached action."""

load("//platforms:profile.bzl", "host_transition")

_SCRIPT = """set -eu
rustc=$1; lib=$2; out=$3; target=$4; name=$5; alloc_cfgs=$6; shift 6
mkdir -p "empty/lib/rustlib/$name/lib"
common="--target $target --sysroot $PWD/empty --edition 2024 --crate-type rlib -Zunstable-options
  -Copt-level=3 -Ccodegen-units=1 -Cdebuginfo=0 -Cembed-bitcode=no -Cpanic=abort -Cforce-frame-pointers=yes
  -Zforce-unstable-if-unmarked --cap-lints allow -L dependency=$out
  --remap-path-prefix $PWD/$lib=/rust/library --remap-path-prefix $lib=/rust/library --remap-path-prefix $PWD=."
floats=""
for c in $("$rustc" --print cfg --target "$target" -Zunstable-options); do
  case $c in
    target_has_reliable_f16) floats="$floats --cfg f16_enabled" ;;
    target_has_reliable_f128) floats="$floats --cfg f128_enabled" ;;
  esac
done
"$rustc" $common "$@" -Cmetadata=std --crate-name core "$lib/core/src/lib.rs" -o "$out/libcore.rlib"
"$rustc" $common "$@" -Cmetadata=std --crate-name compiler_builtins "$lib/compiler-builtins/compiler-builtins/src/lib.rs" \
  --extern "core=$out/libcore.rlib" -Ccodegen-units=10000 -Coverflow-checks=off -Cdebug-assertions=off \
  --cfg 'feature="arch"' --cfg 'feature="compiler-builtins"' --cfg 'feature="unmangled-names"' --cfg 'feature="mem"' \
  --cfg mem_unaligned --cfg intrinsics_enabled --cfg optimizations_enabled $floats -o "$out/libcompiler_builtins.rlib"
"$rustc" $common "$@" $alloc_cfgs -Cmetadata=std --crate-name alloc "$lib/alloc/src/lib.rs" \
  --extern "core=$out/libcore.rlib" --extern "compiler_builtins=$out/libcompiler_builtins.rlib" -o "$out/liballoc.rlib"
"""

def _build_std_impl(ctx):
    folder = "lib/rustlib/%s/lib/" % ctx.attr.target
    outs = [ctx.actions.declare_file(folder + "lib%s.rlib" % c) for c in ["core", "compiler_builtins", "alloc"]]
    roots = [f.path for f in ctx.files.srcs if f.path.endswith("/library/core/src/lib.rs")]
    if len(roots) != 1:
        fail("the standard library's sources are not in srcs")
    inputs = list(ctx.files.srcs)
    target = ctx.attr.target
    if ctx.attr.target_json:
        # rustc names such a target by the hash of the file, so this must be to the byte what
        # rust_toolchain writes.
        file = ctx.actions.declare_file(ctx.attr.name + "/" + ctx.attr.target + ".json")
        ctx.actions.write(file, json.encode_indent(json.decode(ctx.attr.target_json), indent = " " * 4))
        inputs.append(file)
        target = file.path
    ctx.actions.run_shell(
        mnemonic = "RustBuildStd",
        progress_message = "Building core and alloc for " + ctx.attr.target,
        inputs = inputs,
        tools = [ctx.executable.rustc],
        outputs = outs,
        env = {"PATH": "/usr/bin:/bin", "RUSTC_BOOTSTRAP": "1"},
        arguments = [
            ctx.executable.rustc.path,
            roots[0][:-len("/core/src/lib.rs")],
            outs[0].dirname,
            target,
            ctx.attr.target,
            " ".join(["--cfg " + c for c in ctx.attr.alloc_cfgs]),
        ] + ctx.attr.rustc_flags,
        command = _SCRIPT,
    )
    return [DefaultInfo(files = depset(outs))]

build_std = rule(
    doc = "The part of the standard library that bare targets have.",
    implementation = _build_std_impl,
    # The target is an argument here and not a configuration, and profiles do not reach the
    # standard library: built once, whatever asks.
    cfg = host_transition,
    attrs = {
        "alloc_cfgs": attr.string_list(doc = "cfgs for the alloc crate alone."),
        "rustc": attr.label(allow_single_file = True, executable = True, cfg = "exec"),
        "rustc_flags": attr.string_list(),
        "srcs": attr.label_list(allow_files = True),
        "target": attr.string(mandatory = True, doc = "A triple, or the stem of the specification's file name."),
        "target_json": attr.string(doc = "A target specification; empty for a built-in triple."),
        "_allowlist_function_transition": attr.label(default = "@bazel_tools//tools/allowlists/function_transition_allowlist"),
    },
)
