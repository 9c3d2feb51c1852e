@0xb8b29732cc8bc0bd;
# refused: the manifest has 0 processes; it has 1 to 64

using Boot = import "/schema/manifest.capnp";

const manifest :Boot.Manifest = (processes = []);
