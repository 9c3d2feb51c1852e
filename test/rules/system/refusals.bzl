"""What capos_system() refuses while targets are analysed, and with which words."""

load("//platforms:system.bzl", "capos_system")
load("//test/rules:refusal.bzl", "refusal_test")

def system_refusals(name):
    """Targets that must not analyse, each with the test that says so.

    Args:
      name: suite of the tests.
    """
    kernel = "//kernel/bin:kernel"
    cases = {
        "module_named_as_the_kernel": ({":one": "kernel.elf"}, "must be unique"),
        "module_with_a_folder": ({":one": "a/b"}, "without '/'"),
        "same_name_twice": ({":one": "x", ":two": "x"}, "must be unique"),
        "two_files": ({":both": "x"}, "must be one file"),
    }
    for case, (modules, words) in cases.items():
        subject = "%s_%s_subject" % (name, case)
        capos_system(name = subject, testonly = True, kernel = kernel, modules = modules, tags = ["manual"])
        refusal_test(name = "%s_%s" % (name, case), target_under_test = subject, words = words)
    native.test_suite(name = name, tests = ["%s_%s" % (name, case) for case in cases])
