@0x9c8aab7f94171d51;
# What a thread may do to itself.

using Capos = import "capos.capnp";

interface ThreadControl @0x831c20989c7594ba $Capos.processLocal {
  # Each method acts on the thread that calls, whichever thread of the process that is.

  getFsBase @0 () -> (fsBase :UInt64);
  # The caller's FS base.

  setFsBase @1 (fsBase :UInt64) -> ();
  # Sets the caller's FS base, in effect when the call completes. An address outside user
  # memory is `invalidArgument`.

  exitThread @2 (code :Int64) -> ();
  # Ends the calling thread with `code`; there is no completion, the thread does not return. A
  # waiting join completes. The last thread's exit ends the process with its code.
}
