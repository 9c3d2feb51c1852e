"""What the table asks of targets: whether a test boots a guest, and which crates the kernel links."""

Nature = provider(
    doc = "How a test proves.",
    fields = {"boots_guest": "whether it runs in QEMU"},
)

# Every test that starts QEMU carries this tag: capos_qemu_test() adds it.
_GUEST_TAG = "qemu"

def _nature_impl(_target, ctx):
    return [Nature(boots_guest = _GUEST_TAG in ctx.rule.attr.tags)]

nature = aspect(
    doc = "Says of a test whether it boots a guest.",
    implementation = _nature_impl,
)

Linked = provider(
    doc = "What a program is linked from.",
    fields = {"packages": "depset of the folders of its crates"},
)

def _linked_impl(target, ctx):
    return [Linked(packages = depset(
        [target.label.package] if target.label.workspace_name == "" else [],
        transitive = [dep[Linked].packages for dep in getattr(ctx.rule.attr, "deps", []) if Linked in dep],
    ))]

linked = aspect(
    doc = "Collects the folders of the crates a program is linked from.",
    implementation = _linked_impl,
    attr_aspects = ["deps"],
)
