"""refusal_test: a target that must not analyse, and the words it must be refused with."""

load("@bazel_skylib//lib:unittest.bzl", "analysistest", "asserts")

def _refusal_impl(ctx):
    env = analysistest.begin(ctx)
    asserts.expect_failure(env, ctx.attr.words)
    return analysistest.end(env)

refusal_test = analysistest.make(
    _refusal_impl,
    attrs = {"words": attr.string(mandatory = True)},
    expect_failure = True,
)
