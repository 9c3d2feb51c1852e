"""The list of everything a release hands out, by hash."""

load(":system.bzl", "CaposSystemInfo")

def _artifacts_impl(ctx):
    out = ctx.actions.declare_file(ctx.label.name + ".sha256")
    files = []
    for system in ctx.attr.systems:
        info = system[CaposSystemInfo]
        files += [info.stub, info.loader, info.kernel, info.bundle, info.iso] + info.binaries
    for extra in ctx.files.extra:
        files.append(extra)
    unique = {f.path: f for f in files}.values()
    ctx.actions.run_shell(
        mnemonic = "Sha256",
        inputs = unique,
        outputs = [out],
        env = {"PATH": "/usr/bin:/bin"},
        arguments = [out.path] + [f.path for f in unique],
        # Two systems may have files of one name: the hash sorts them.
        command = 'out=$1; shift; for f; do printf "%s  %s\\n" "$(sha256sum < "$f" | cut -c1-64)" "${f##*/}"; done | sort -k2 > "$out"',
    )
    return [DefaultInfo(files = depset([out]))]

artifacts = rule(
    doc = "One `sha256  name` line for each file of the given systems: what reproducibility compares.",
    implementation = _artifacts_impl,
    attrs = {
        "extra": attr.label_list(allow_files = True),
        "systems": attr.label_list(providers = [CaposSystemInfo]),
    },
)
