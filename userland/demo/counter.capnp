@0xc940303f6dc035e6;
# A service to begin with: it counts.

interface Counter @0xebf46935cb01b47b {
  # One number, shared by all who hold this.

  add @0 (amount :UInt64) -> (total :UInt64);
  # Adds `amount` and returns the sum of all that was ever added. More than fits 64 bits is
  # `failed`, and the sum stays.
}
