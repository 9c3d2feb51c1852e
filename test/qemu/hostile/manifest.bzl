"""The manifest of the hostile system, with the numbers of a run in it."""

load("@bazel_skylib//rules:common_settings.bzl", "BuildSettingInfo")

# protocol/src/lib.rs knows both numbers.
_CAREFUL = 2
_RECKLESS = 8

# The profiles of the careful: a ring as usual, and the smallest with the largest messages.
_PROFILES = ["profile = (registeredBuffers = 4), ", "profile = (ringEntries = 4, ringScratchLimitBytes = 65536, registeredBuffers = 4), "]

def _grant(name, what):
    return "    (name = \"%s\", %s)" % (name, what)

def _vandal(number, seed):
    profile = _PROFILES[number] if number < _CAREFUL else "profile = (ringScratchLimitBytes = 65536, registeredBuffers = 4), "
    grants = [
        _grant("news", "client = (endpoint = \"news\", badge = %d)" % (seed * 256 + number)),
        _grant("echo", "client = (endpoint = \"echo\", badge = 2)"),
        _grant("own", "endpoint = (name = \"own%d\", interfaceId = 0xa3f1c2d4e5b60718)" % number),
        _grant("self", "client = (endpoint = \"own%d\", badge = 3)" % number),
        _grant("life", "endpoint = (name = \"life%d\", interfaceId = 0xa3f1c2d4e5b60718)" % number),
        _grant("timer", "timer = void"),
        _grant("info", "systemInfo = void"),
        _grant("calm", "systemInfo = void"),
        _grant("park", "parkSpace = void"),
        _grant("memory", "virtualMemory = void"),
        _grant("spawner", "threadSpawner = void"),
        _grant("control", "threadControl = void"),
    ]
    return "  (name = \"vandal%d\", binary = \"vandal.elf\", %sgrants = [\n%s])" % (number, profile, ",\n".join(grants))

def _source_impl(ctx):
    seed = ctx.attr.seed[BuildSettingInfo].value
    operations = ctx.attr.operations[BuildSettingInfo].value
    if seed < 0 or seed >= 1 << 48:
        fail("--%s=%d must be from 0 to 2⁴⁸ - 1" % (ctx.attr.seed.label, seed))
    if operations < 1 or operations >= 1 << 48:
        fail("--%s=%d must be from 1 to 2⁴⁸ - 1" % (ctx.attr.operations.label, operations))
    vandals = range(_CAREFUL + _RECKLESS)
    witness = [
        _grant("console", "console = void"),
        _grant("records", "records = void"),
        _grant("info", "systemInfo = void"),
        _grant("news", "endpoint = (name = \"news\", interfaceId = 0xa3f1c2d4e5b60718)"),
        _grant("goal", "client = (endpoint = \"news\", badge = %d)" % ((1 << 63) + operations)),
        _grant("echo", "client = (endpoint = \"echo\", badge = 1)"),
    ]
    for number in vandals:
        witness += [
            _grant("life%d" % number, "client = (endpoint = \"life%d\", badge = 1)" % number),
            _grant("own%d" % number, "client = (endpoint = \"own%d\", badge = 1)" % number),
        ]
    processes = [
        "  (name = \"echo\", binary = \"peer.elf\", grants = [\n%s])" % _grant("requests", "endpoint = (name = \"echo\", interfaceId = 0xa3f1c2d4e5b60718)"),
        "  (name = \"witness\", binary = \"witness.elf\", essential = true, grants = [\n%s])" % ",\n".join(witness),
    ] + [_vandal(number, seed) for number in vandals]
    out = ctx.actions.declare_file(ctx.label.name + ".capnp")
    ctx.actions.write(out, "@0xc1d2e3f405162738;\nusing Boot = import \"/schema/manifest.capnp\";\nconst manifest :Boot.Manifest = (processes = [\n%s\n]);\n" % ",\n".join(processes))
    return [DefaultInfo(files = depset([out]))]

hostile_manifest_source = rule(
    doc = "A witness, its peer, and vandals with the seed of the run in their badges.",
    implementation = _source_impl,
    attrs = {
        "operations": attr.label(mandatory = True, providers = [BuildSettingInfo], doc = "How many operations of the careful are enough."),
        "seed": attr.label(mandatory = True, providers = [BuildSettingInfo], doc = "What the vandals' numbers follow from."),
    },
)
