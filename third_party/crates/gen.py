#!/usr/bin/env python3
"""Writes BUILD files for vendored crates from cargo's unit graphs.

usage: gen.py ROOT SET=GRAPH.json...

ROOT holds `vendor/<crate>-<version>/`. Each graph is one member of the crates workspace,
resolved for the platform that member runs on. Two units of one crate with the same
features and the same dependencies become one target, whatever sets they come from.
ROOT/BUILD.bazel gets one alias per crate, which selects by the platform being built for.
"""
import hashlib
import json
import os
import re
import sys
import tomllib
from collections import defaultdict


def name_version(package_id):
    m = re.search(r"#(?:(.+)@)?([0-9][^@#]*)$", package_id)
    return (m.group(1) or package_id.split("#")[0].rstrip("/").split("/")[-1]), m.group(2)


class Graph:
    """One unit graph; resolves each unit to a label and an identity."""

    def __init__(self, path):
        with open(path) as f:
            graph = json.load(f)
        self.units = graph["units"]
        self.memo = {}

    def kind(self, unit):
        return unit["target"]["kind"][0]

    def is_own(self, unit):
        return name_version(unit["pkg_id"])[0].startswith("crates-")

    def identity(self, index):
        if index not in self.memo:
            u = self.units[index]
            parts = [u["pkg_id"].split("#")[-1], self.kind(u), u["mode"], str(u["platform"] is None), *sorted(u["features"])]
            parts += sorted(e["extern_crate_name"] + "=" + self.identity(e["index"]) for e in u["dependencies"])
            self.memo[index] = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:10]
        return self.memo[index]

    def folder(self, unit):
        return "%s-%s" % name_version(unit["pkg_id"])

    def target_name(self, index):
        prefix = "script" if self.units[index]["mode"] == "run-custom-build" else "lib"
        return "%s_%s" % (prefix, self.identity(index))

    def label(self, index):
        return "//vendor/%s:%s" % (self.folder(self.units[index]), self.target_name(index))

    def deps(self, unit):
        """(libraries, proc macros, renames, index of the build script's run or None)"""
        libs, macros, renames, script = [], [], {}, None
        for edge in unit["dependencies"]:
            index = edge["index"]
            dep = self.units[index]
            if dep["mode"] == "run-custom-build":
                script = index
                continue
            (macros if self.kind(dep) == "proc-macro" else libs).append(self.label(index))
            if edge["extern_crate_name"] != dep["target"]["name"].replace("-", "_"):
                renames[self.label(index)] = edge["extern_crate_name"]
        return sorted(libs), sorted(macros), renames, script

    def relative(self, unit):
        return unit["target"]["src_path"].split("/vendor/" + self.folder(unit) + "/", 1)[1]

    def rule(self, index, root):
        """(rule name, attributes) of a unit, or None if it has no target of its own."""
        u = self.units[index]
        libs, macros, renames, script = self.deps(u)
        name, version = name_version(u["pkg_id"])
        common = {"name": self.target_name(index), "srcs": "GLOB", "edition": u["target"]["edition"], "crate_features": u["features"], "version": version, "rustc_flags": ["--cap-lints=allow"]}
        if u["mode"] == "run-custom-build":
            compile_unit = next(self.units[e["index"]] for e in u["dependencies"] if self.kind(self.units[e["index"]]) == "custom-build" and self.units[e["index"]]["mode"] == "build")
            libs, macros, renames, _ = self.deps(compile_unit)
            with open("%s/vendor/%s/Cargo.toml" % (root, self.folder(u)), "rb") as f:
                links = tomllib.load(f)["package"].get("links")
            return "cargo_build_script", common | {"crate_name": "build_script_build", "crate_root": self.relative(compile_unit), "data": "DATA", "edition": compile_unit["target"]["edition"], "deps": libs, "proc_macro_deps": macros, "aliases": renames, "pkg_name": name, "links": links}
        if self.kind(u) == "custom-build":
            return None
        if script is not None:
            libs = sorted(libs + [self.label(script)])
        rule = "rust_proc_macro" if self.kind(u) == "proc-macro" else "rust_library"
        return rule, common | {"crate_name": u["target"]["name"].replace("-", "_"), "crate_root": self.relative(u), "compile_data": "DATA", "deps": libs, "proc_macro_deps": macros, "aliases": renames}


def render(value):
    if value == "GLOB":
        return 'glob(["**/*.rs"])'
    if value == "DATA":
        return 'glob(["**"], exclude = ["**/*.rs", "**/* *", "BUILD.bazel"])'
    if isinstance(value, dict):
        return "{" + ", ".join("%s: %s" % (json.dumps(k), json.dumps(v)) for k, v in sorted(value.items())) + "}"
    return json.dumps(value)


def main():
    root, sets = sys.argv[1], dict(a.split("=", 1) for a in sys.argv[2:])
    for folder, _, files in os.walk(root + "/vendor"):
        for f in files:
            if f in ("BUILD", "BUILD.bazel", "WORKSPACE", "WORKSPACE.bazel", "MODULE.bazel"):
                os.remove(os.path.join(folder, f))

    packages = defaultdict(dict)
    aliases = defaultdict(dict)
    for set_name, path in sets.items():
        g = Graph(path)
        for index, u in enumerate(g.units):
            if g.is_own(u):
                for edge in u["dependencies"]:
                    if not g.is_own(g.units[edge["index"]]):
                        aliases[edge["extern_crate_name"]][set_name] = g.label(edge["index"])
                continue
            made = g.rule(index, root)
            if made:
                packages[g.folder(u)][made[1]["name"]] = made

    for folder, targets in packages.items():
        with open("%s/vendor/%s/BUILD.bazel" % (root, folder), "w") as f:
            f.write('load("@rules_rust//rust:defs.bzl", "rust_library", "rust_proc_macro")\n')
            f.write('load("@rules_rust//cargo:defs.bzl", "cargo_build_script")\n')
            f.write('package(default_visibility = ["//visibility:public"])\n')
            for _, (rule, attributes) in sorted(targets.items()):
                lines = ["    %s = %s," % (k, render(v)) for k, v in attributes.items() if v not in (None, [], {})]
                f.write("%s(\n%s\n)\n" % (rule, "\n".join(lines)))

    with open(root + "/BUILD.bazel", "w") as f:
        f.write('package(default_visibility = ["//visibility:public"])\n')
        for crate, by_set in sorted(aliases.items()):
            choices = {"@capos//platforms:is_" + s: label for s, label in by_set.items()}
            message = "%s is not in the crate set of this platform; it is in: %s" % (crate, ", ".join(sorted(by_set)))
            f.write("alias(name = %s, actual = select(%s, no_match_error = %s))\n" % (json.dumps(crate), render(choices), json.dumps(message)))


main()
