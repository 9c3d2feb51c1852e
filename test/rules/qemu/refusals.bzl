"""What capos_qemu_test() and capos_load() refuse while targets are analysed, and with which words."""

load("//platforms:load.bzl", "capos_load")
load("//platforms:qemu_test.bzl", "capos_qemu_test")
load("//platforms:system.bzl", "CaposSystemInfo")
load("//test/rules:refusal.bzl", "refusal_test")

def _no_system_impl(ctx):
    file = ctx.actions.declare_file(ctx.label.name + ".file")
    ctx.actions.write(file, "")
    return [CaposSystemInfo(bundle = file, iso = file, kernel = file, profile = "checked", stub = file)]

_no_system = rule(
    doc = "A system of empty files: enough to analyse a test, not to run it.",
    implementation = _no_system_impl,
)

def qemu_test_refusals(name):
    """Targets that must not analyse, each with the test that says so.

    Args:
      name: suite of the tests.
    """
    _no_system(name = name + "_system", tags = ["manual"])
    cases = {
        "append_under_uefi": (dict(system = name + "_system", boot = "cd", append = ["x"]), "append goes with boot"),
        "line_break": (dict(system = name + "_system", append = ["a\nb"]), "cannot hold a line break"),
        "program_as_cd": (dict(program = "//test/harness/guests:pvh", boot = "cd"), "goes with neither system nor boot"),
    }
    for case, (attributes, words) in cases.items():
        capos_qemu_test(name = "%s_%s_subject" % (name, case), tags = ["manual"], **attributes)
        refusal_test(name = "%s_%s" % (name, case), target_under_test = "%s_%s_subject" % (name, case), words = words)
    capos_load(name = name + "_lane_subject", testonly = True, suites = [":good_2d"], tags = ["manual"])
    refusal_test(name = name + "_lane", target_under_test = name + "_lane_subject", words = "a suite under load is in the racing lane")
    native.test_suite(name = name, tests = ["%s_%s" % (name, case) for case in cases.keys() + ["lane"]])
