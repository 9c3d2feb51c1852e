"""Areas that may not be declared done, and the words that say why."""

load("//test/rules:refusal.bzl", "refusal_test")
load(":conformance.bzl", "conformance_table")

_HOST = "//abi/types:abi_types_golden"
_GUEST = "//test/qemu/ring:ring_1d_checked"

# A proof of a crate, and a program that is not linked from it.
_SHELVED = "//kernel/core/sched:core_sched_table"
_PROGRAM = "//userland/demo:server"

def conformance_refusals(name):
    """Tables that must not analyse, each with the test that says so, and one that does.

    Args:
      name: suite of the tests.
    """
    cases = {
        "a_guest_test_alone": (["B1"], {_GUEST: "B1"}, "B1 (runs)"),
        "a_host_proof_alone": (["B1"], {_HOST: "B1"}, "B1 (decided)"),
        "a_host_proof_of_a_crate_that_is_not_linked": (["B1"], {_SHELVED: "B1", _GUEST: "B1"}, "B1 (runs)"),
        "nothing": ([], {}, "B1 (open)"),
    }
    for case, (of_the_kernel, tests, words) in cases.items():
        _subject("%s_%s_subject" % (name, case), of_the_kernel, tests)
        refusal_test(name = "%s_%s" % (name, case), target_under_test = "%s_%s_subject" % (name, case), words = words)

    # The same rows with both proofs, and with one where one is enough: these analyse.
    _subject(name + "_both", ["B1"], {_HOST: "B1", _GUEST: "B1"})
    _subject(name + "_either", [], {_GUEST: "B1"})
    native.test_suite(
        name = name,
        tests = ["%s_%s" % (name, case) for case in cases],
    )

def _subject(name, of_the_kernel, tests):
    conformance_table(
        name = name,
        testonly = True,
        areas = {"B": "Binary interface"},
        done = ["B"],
        kernel = _PROGRAM,
        of_the_kernel = of_the_kernel,
        rows = {"B1": "two syscalls"},
        tags = ["manual"],
        tests = tests,
    )
