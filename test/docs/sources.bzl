"""source_list(): the sources that targets are made of, as files a test can read."""

_Sources = provider(
    doc = "Source files of a target and of everything it is made of.",
    fields = {"files": "depset of source files of this workspace"},
)

_READ = ["bzl", "capnp", "md", "rs", "sh", "txt"]

def _is_read(file):
    return file.is_source and file.extension in _READ and file.owner.workspace_name == ""

def _sources_impl(target, ctx):
    direct = []
    if target.label.workspace_name == "":
        for name in dir(ctx.rule.files):
            files = getattr(ctx.rule.files, name)
            if type(files) == "list":
                direct += [file for file in files if _is_read(file)]
    transitive = []
    for name in dir(ctx.rule.attr):
        value = getattr(ctx.rule.attr, name)
        values = value.keys() if type(value) == "dict" else value if type(value) == "list" else [value]
        transitive += [one[_Sources].files for one in values if type(one) == "Target" and _Sources in one]
    return [_Sources(files = depset(direct, transitive = transitive))]

_sources = aspect(
    doc = "Collects the sources below a target, whatever attribute leads to them.",
    implementation = _sources_impl,
    attr_aspects = ["*"],
)

def _source_list_impl(ctx):
    files = depset(ctx.files.files, transitive = [root[_Sources].files for root in ctx.attr.roots])
    out = ctx.actions.declare_file(ctx.label.name + ".txt")
    lines = {file.short_path: None for file in files.to_list()}
    ctx.actions.write(out, "".join([line + "\n" for line in sorted(lines)]))
    return [DefaultInfo(files = depset([out]), runfiles = ctx.runfiles([out], transitive_files = files))]

source_list = rule(
    doc = "A file with the paths of sources, one a line, and the sources as its runfiles.",
    implementation = _source_list_impl,
    attrs = {
        "files": attr.label_list(allow_files = True, doc = "Files that no target below the roots is made of: pages, rules."),
        "roots": attr.label_list(aspects = [_sources], doc = "Targets whose sources are meant, with those of all they depend on."),
    },
)
