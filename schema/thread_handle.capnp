@0xbf894360f0093660;
# Observes one thread of the caller's process.

using Capos = import "capos.capnp";

interface ThreadHandle @0xbd3c3c9f6b1fe58d $Capos.processLocal {
  # Releasing the last handle of a live thread detaches it: it runs on and leaves no status.
  # Releasing it after the thread's exit drops the status, unless a join waits for it.

  join @0 () -> (exitCode :Int64);
  # Waits for the thread to exit and takes its status; at once if it has exited. Works once:
  # joining oneself, joining while another join waits, after a join or after detaching is
  # `failed`.

  exitCode @1 () -> (exited :Bool, exitCode :Int64);
  # Whether the thread has exited, and its code if so (0 while it lives). Takes nothing: the
  # status can still be joined.
}
