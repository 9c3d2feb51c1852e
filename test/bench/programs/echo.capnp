@0x95e031f8dc8d8ff9;
# What is called when typed calls are measured.

interface Echo @0x80d9c56f6099934a {
  # Answers with what it was asked.

  echo @0 (a :UInt64, b :UInt64, c :UInt64, d :UInt64, e :UInt64, f :UInt64, g :UInt64) -> (a :UInt64, b :UInt64, c :UInt64, d :UInt64, e :UInt64, f :UInt64, g :UInt64);
  # Seven words and the message's root: 64 bytes each way.
}
