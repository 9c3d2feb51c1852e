@0xf528dda6f4f2b863;
# The console: bytes to and from the person at the machine.

interface Console @0x88e73c551f47cb7f {
  # The serial line and the screen as one stream. Holders share it: what two of them write at
  # once comes out call by call, never mixed within a call.

  write @0 (bytes :Data) -> (written :UInt32);
  # Writes `bytes` and completes once the console has taken them. `written` is less than their
  # number only if the console can take no more at once; the rest is the caller's to send
  # again. Bytes are passed on as they are; text is UTF-8.

  read @1 (capacity :UInt32) -> (bytes :Data);
  # Waits until there is input and returns what there is, at most `capacity` bytes and at most
  # what the caller has room for. Each byte goes to one reader. A `capacity` of 0 is
  # `invalidArgument`.
}
