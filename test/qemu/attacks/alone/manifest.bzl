"""Manifests of one observer and one attacker, for attacks on what is known to be open."""

load("@bazel_skylib//rules:write_file.bzl", "write_file")

def alone_capnp(name, out, attack, weight = 64, profile = ""):
    """The source of such a manifest.

    Args:
      name: target name.
      out: the file.
      attack: the name of the observer's suite.
      weight: of the attacker.
      profile: the attacker's profile.
    """
    write_file(
        name = name,
        out = out,
        content = [
            "@0xe2b7410d9f36c58a;",
            "using Boot = import \"/schema/manifest.capnp\";",
            "const manifest :Boot.Manifest = (processes = [",
            "  (name = \"echo\", binary = \"echo.elf\", grants = [(name = \"requests\", endpoint = (name = \"echo\", interfaceId = 0xa3f1c2d4e5b60718))]),",
            "  (name = \"attacker\", binary = \"attacker.elf\", weight = %d, profile = (%s), grants = [" % (weight, profile),
            "    (name = \"orders\", endpoint = (name = \"attacker\", interfaceId = 0xa3f1c2d4e5b60718)),",
            "    (name = \"timer\", timer = void), (name = \"park\", parkSpace = void),",
            "    (name = \"console\", console = void),",
            "    (name = \"spawner\", threadSpawner = void), (name = \"control\", threadControl = void),",
            "    (name = \"own\", endpoint = (name = \"own\", interfaceId = 0xa3f1c2d4e5b60718)), (name = \"self\", client = (endpoint = \"own\", badge = 1)),",
            "    (name = \"observer\", client = (endpoint = \"observer\", badge = 66)),",
            "    (name = \"echo\", client = (endpoint = \"echo\", badge = 66))]),",
            "  (name = \"observer\", binary = \"observer.elf\", essential = true, grants = [",
            "    (name = \"%s\", parkSpace = void)," % attack,
            "    (name = \"console\", console = void), (name = \"records\", records = void),",
            "    (name = \"timer\", timer = void), (name = \"info\", systemInfo = void),",
            "    (name = \"spawner\", threadSpawner = void), (name = \"control\", threadControl = void),",
            "    (name = \"park\", parkSpace = void),",
            "    (name = \"own\", endpoint = (name = \"observer\", interfaceId = 0xa3f1c2d4e5b60718)),",
            "    (name = \"self\", client = (endpoint = \"observer\", badge = 1)),",
            "    (name = \"echo\", client = (endpoint = \"echo\", badge = 1)),",
            "    (name = \"attacker\", client = (endpoint = \"attacker\", badge = 1))]),",
            "]);",
        ],
    )
