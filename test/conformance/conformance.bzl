"""conformance(): the table from requirement to test, as a document that cannot go stale.

The table is Starlark, so that a test that no longer exists is a build error. The document in
docs/ is generated from it; a test compares the two. A proof is a test of one of two kinds, which
follows from the test itself: it decides on the host, or it runs in a guest. A requirement about the
kernel is covered by both kinds, and a host proof of a crate that the kernel does not link counts for
nothing. An area that is declared done and has a requirement that is not covered does not analyse.
"""

load(":natures.bzl", "Linked", "Nature", "linked", "nature")

_HEAD = """\
# Conformance

Which test proves which requirement. Generated from `test/conformance/table.bzl`;
`./bazelw run //test/conformance:update` writes it anew.

A test *decides* on the host or *runs* in a guest. A requirement about the kernel (marked `k`) is
covered by both: a host proof of what decides it, and a guest test of what runs. Any other is covered by
either. † is a proof of a crate that `//kernel/bin:kernel` does not link: it counts for nothing yet.
In an area marked *done* everything is covered, or the build fails. A test in a row shows what it
shows: *covered* says that there is one of each kind needed, not that nothing is left to test."""

# Folders whose crates prove something about the kernel only if it links them.
_PARTS_OF_THE_KERNEL = ["kernel/core/", "kernel/smp/"]

_STATES = ["covered", "decided", "runs", "open"]

def _is_shelved(label, linked_packages):
    return any([label.package.startswith(f) for f in _PARTS_OF_THE_KERNEL]) and label.package not in linked_packages

def _proofs_of(ctx):
    """ID → (host proofs, guest tests, number of host proofs that count)."""
    linked_packages = {p: None for p in ctx.attr.kernel[Linked].packages.to_list()}
    decided = {key: [] for key in ctx.attr.rows}
    runs = {key: [] for key in ctx.attr.rows}
    counting = {key: 0 for key in ctx.attr.rows}
    for target, keys in ctx.attr.tests.items():
        name = "`%s`" % str(target.label).removeprefix("@@").removeprefix("@")
        for key in keys.split(" "):
            if target[Nature].boots_guest:
                runs[key].append(name)
            elif _is_shelved(target.label, linked_packages):
                decided[key].append(name + " †")
            else:
                decided[key].append(name)
                counting[key] += 1
    return {key: (sorted(decided[key]), sorted(runs[key]), counting[key]) for key in ctx.attr.rows}

def _state(needs_both, decided, runs, counting):
    if (counting and runs) or (not needs_both and (counting or runs)):
        return "covered"
    return "runs" if runs else "decided" if decided else "open"

def _table_impl(ctx):
    proofs = _proofs_of(ctx)
    states = {key: _state(key in ctx.attr.of_the_kernel, *proofs[key]) for key in ctx.attr.rows}
    summary = ["", "| area | requirements | covered | decided only | runs only | open |", "|---|---|---|---|---|---|"]
    body = []
    problems = []
    for area, title in ctx.attr.areas.items():
        done = area in ctx.attr.done
        keys = [key for key in ctx.attr.rows if key[0] == area]
        counts = [len([key for key in keys if states[key] == state]) for state in _STATES]
        summary.append("| %s. %s | %d | %s |" % (area, title, len(keys), " | ".join([str(n) for n in counts])))
        body += ["", "## %s. %s%s" % (area, title, " (done)" if done else ""), "", "| ID | what | | decided | runs | state |", "|---|---|---|---|---|---|"]
        for key in keys:
            decided, runs, _ = proofs[key]
            body.append("| %s | %s | %s | %s | %s | %s |" % (
                key,
                ctx.attr.rows[key],
                "k" if key in ctx.attr.of_the_kernel else "",
                "<br>".join(decided) or "—",
                "<br>".join(runs) or "—",
                states[key],
            ))
            if done and states[key] != "covered":
                problems.append("%s (%s)" % (key, states[key]))
    if problems:
        fail("areas declared done have requirements that are not covered: %s; a requirement about the kernel needs a host test and a guest test" % ", ".join(problems))
    out = ctx.actions.declare_file(ctx.label.name + ".md")
    ctx.actions.write(out, "\n".join([_HEAD] + summary + body) + "\n")
    return [DefaultInfo(files = depset([out]))]

conformance_table = rule(
    doc = "Writes the conformance table.",
    implementation = _table_impl,
    attrs = {
        "areas": attr.string_dict(doc = "Letter → title."),
        "done": attr.string_list(doc = "Letters of areas in which every requirement must be covered."),
        "kernel": attr.label(default = "//kernel/bin:kernel", aspects = [linked], doc = "The program whose crates count."),
        "of_the_kernel": attr.string_list(doc = "IDs that need both kinds of proof."),
        "rows": attr.string_dict(doc = "ID → a few words."),
        "tests": attr.label_keyed_string_dict(aspects = [nature], doc = "Test → the IDs it proves, separated by spaces."),
    },
)

def _of_the_kernel(rows, kernel_areas, not_of_the_kernel, of_the_kernel):
    for key in list(not_of_the_kernel) + of_the_kernel:
        if key not in rows:
            fail("%s is not a requirement" % key)
    return [
        key
        for key in rows
        if key in of_the_kernel or (key[0] in kernel_areas and key not in not_of_the_kernel)
    ]

def conformance(name, areas, rows, proofs, kernel_areas, not_of_the_kernel, of_the_kernel, done = []):
    """The table, a test that docs/conformance.md is it, and `update`, which writes it.

    Args:
      name: target name.
      areas: letter → title.
      rows: ID → a few words on the requirement.
      proofs: ID → labels of the tests that prove it.
      kernel_areas: letters of the areas about the kernel.
      not_of_the_kernel: IDs of those areas that are about something else, and what.
      of_the_kernel: IDs of other areas that are about the kernel.
      done: letters of the areas that are complete.
    """
    tests = {}
    for key, labels in proofs.items():
        if key not in rows:
            fail("%s is not a requirement" % key)
        for label in labels:
            tests[label] = tests.get(label, []) + [key]
    conformance_table(
        name = name,
        testonly = True,
        areas = areas,
        done = done,
        of_the_kernel = _of_the_kernel(rows, kernel_areas, not_of_the_kernel, of_the_kernel),
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
