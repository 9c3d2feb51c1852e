@0xf960ec2935d4a6ff;
# refused: text_default.capnp: Bad.call: name has a default; only numbers, bools and enums may

interface Bad { call @0 (name :Text = "x") -> (); }
