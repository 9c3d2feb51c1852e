"""conformance(): the table from requirement to test, as a document that cannot go stale.

The table is Starlark, so that a test that no longer exists is a build error. The document in
docs/ is generated from it; a test compares the two and fails when an area that is declared
done has a requirement without a test.
"""

def _table_impl(ctx):
    out = ctx.actions.declare_file(ctx.label.name + ".md")
    lines = [
        "# Conformance",
        "",
        "Which test proves which requirement. Generated from `test/conformance/table.bzl`;",
        "`./bazelw run //test/conformance:update` writes it anew. An area marked *done* has a",
        "test for each of its requirements, or the build fails.",
    ]
    labels = {key: [] for key in ctx.attr.rows}
    for target, keys in ctx.attr.tests.items():
        for key in keys.split(" "):
            label = str(target.label).removeprefix("@@").removeprefix("@")
            labels[key].append(label)
    problems = []
    for area, title in ctx.attr.areas.items():
        done = area in ctx.attr.done
        lines += ["", "## %s. %s%s" % (area, title, " (done)" if done else ""), "", "| ID | what | tests |", "|---|---|---|"]
        for key, what in ctx.attr.rows.items():
            if key[0] != area:
                continue
            found = sorted(labels[key])
            if done and not found:
                problems.append(key)
            lines.append("| %s | %s | %s |" % (key, what, "<br>".join(["`%s`" % l for l in found]) or "—"))
    if problems:
        fail("areas declared done have requirements without a test: " + ", ".join(problems))
    ctx.actions.write(out, "\n".join(lines) + "\n")
    return [DefaultInfo(files = depset([out]))]

_table = rule(
    doc = "Writes the conformance table.",
    implementation = _table_impl,
    attrs = {
        "areas": attr.string_dict(doc = "Letter → title."),
        "done": attr.string_list(doc = "Letters of areas in which every requirement must have a test."),
        "rows": attr.string_dict(doc = "ID → a few words."),
        "tests": attr.label_keyed_string_dict(doc = "Test → the IDs it proves, separated by spaces."),
    },
)

def conformance(name, areas, rows, proofs, done = []):
    """The table, a test that docs/conformance.md is it, and `update`, which writes it.

    Args:
      name: target name.
      areas: letter → title.
      rows: ID → a few words on the requirement.
      proofs: ID → labels of the tests that prove it.
      done: letters of the areas that are complete.
    """
    tests = {}
    for key, labels in proofs.items():
        if key not in rows:
            fail("%s is not a requirement" % key)
        for label in labels:
            tests[label] = tests.get(label, []) + [key]
    _table(
        name = name,
        testonly = True,
        areas = areas,
        done = done,
        rows = rows,
        tests = {label: " ".join(keys) for label, keys in tests.items()},
        # What the tests are made of is nearly everything: //test/docs reads it.
        visibility = ["//test/docs:__pkg__"],
    )
    native.sh_test(
        name = name + "_test",
        size = "small",
        srcs = ["compare.sh"],
        args = ["$(rootpath :%s)" % name, "$(rootpath //docs:conformance.md)"],
        data = [":" + name, "//docs:conformance.md"],
    )
    native.sh_binary(
        name = "update",
        testonly = True,
        srcs = ["update.sh"],
        args = ["$(rootpath :%s)" % name],
        data = [":" + name],
    )
