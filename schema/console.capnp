@0xf528dda6f4f2b863;
# The console: bytes to and from the person at the machine.

interface Console @0x88e73c551f47cb7f {
  # The serial line and the screen as one stream. Processes share it: what one writes comes out in its
  # order, and what two of them write at once alternates line by line.

  write @0 (bytes :Data) -> (written :UInt32);
  # Writes `bytes` and completes once the console has taken them, which it does when it has room for
  # them. What it has taken comes out, also if the process ends. `written` is less than their number
  # only if that is more than a call takes, 64; the rest is the caller's to send again. A process
  # that has 32 writes waiting for room is told `overloaded`. Bytes are passed on as they are; text
  # is UTF-8.

  read @1 (capacity :UInt32) -> (bytes :Data);
  # Waits until there is input and returns what there is, at most `capacity` bytes and at most
  # what the caller has room for. Each byte goes to one reader. A `capacity` of 0 is
  # `invalidArgument`.
}
