@0xc27ca73b0622ba1e;
# Random bytes.

interface Entropy @0x98f06e314ae9807e {
  # The kernel gathers chance from the machine when it boots and expands it on each CPU by itself: no
  # byte is given twice, nobody can tell from theirs what others were given, and nobody waits for
  # another.

  fill @0 (count :UInt32) -> (bytes :Data);
  # Exactly `count` bytes that nobody else was given or will be: 1 to 1024, else `invalidArgument`, as
  # if the results have no room for as many.

  info @1 () -> (seedBits :UInt32, generatorBits :UInt32, jitterBits :UInt32, enough :Bool);
  # What they rest on: bits that are believed to have come from the CPU's noise source (RDSEED), its
  # generator (RDRAND) and from durations. `enough`: together they are 256 or more. If not, what is
  # given can be guessed by who knows the machine and the boot.
}
