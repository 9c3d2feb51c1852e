"""Manifests with a tester, an echo and numbered peers that do what the tester says."""

load("@bazel_skylib//rules:write_file.bzl", "write_file")

def peers_capnp(name, out, tester, peers):
    """The source of such a manifest.

    Args:
      name: target name.
      out: the file.
      tester: name of the tester, whose binary is `<tester>.elf`.
      peers: how many peers there are.
    """
    write_file(
        name = name,
        out = out,
        content = [
            "@0xf3b0a1c4d5e69788;",
            "using Boot = import \"/schema/manifest.capnp\";",
            "const manifest :Boot.Manifest = (processes = [",
            "  (name = \"echo\", binary = \"echo.elf\", grants = [",
            "    (name = \"requests\", endpoint = (name = \"echo\", interfaceId = 0xa3f1c2d4e5b60718))]),",
        ] + [
            "  (name = \"peer%d\", binary = \"peer.elf\", profile = (ringScratchLimitBytes = 65536), grants = [" % peer +
            "(name = \"console\", console = void), (name = \"timer\", timer = void), " +
            "(name = \"park\", parkSpace = void), (name = \"spawner\", threadSpawner = void), " +
            "(name = \"control\", threadControl = void), " +
            "(name = \"commands\", endpoint = (name = \"c%d\", interfaceId = 0xa3f1c2d4e5b60718)), " % peer +
            "(name = \"service\", endpoint = (name = \"s%d\", interfaceId = 0xa3f1c2d4e5b60718)), " % peer +
            "(name = \"up\", client = (endpoint = \"t\", badge = %d))])," % peer
            for peer in range(peers)
        ] + [
            "  (name = \"%s\", binary = \"%s.elf\", essential = true," % (tester, tester),
            "   profile = (capSlots = 128, ringScratchLimitBytes = 65536), grants = [",
            "    (name = \"console\", console = void), (name = \"records\", records = void),",
            "    (name = \"timer\", timer = void), (name = \"info\", systemInfo = void),",
            "    (name = \"spawner\", threadSpawner = void), (name = \"control\", threadControl = void),",
            "    (name = \"t\", endpoint = (name = \"t\", interfaceId = 0xa3f1c2d4e5b60718)),",
            "    (name = \"self\", client = (endpoint = \"t\", badge = 1000)),",
            "    (name = \"spare\", endpoint = (name = \"spare\", interfaceId = 0xa3f1c2d4e5b60718)),",
            "    (name = \"spare_client\", client = (endpoint = \"spare\", badge = 9)),",
            "    (name = \"echo\", client = (endpoint = \"echo\", badge = 1)),",
        ] + [
            "    (name = \"c%d\", client = (endpoint = \"c%d\", badge = 1)), (name = \"s%d\", client = (endpoint = \"s%d\", badge = %d))%s" % (
                peer,
                peer,
                peer,
                peer,
                500 + peer,
                "," if peer + 1 < peers else "])]);",
            )
            for peer in range(peers)
        ],
    )
