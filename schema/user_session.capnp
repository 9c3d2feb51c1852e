@0xdf8a6bd99f8be3f6;
# A person's session: what belongs together and ends together.

interface UserSession @0xb7593bc0053998ef {
  # Every process of a session knows it by being spawned in it. Ending it takes CPU time and
  # isolation away from its processes; it does not end them.

  info @0 () -> (sessionId :UInt64, live :Bool, processes :UInt32, startedNs :UInt64);
  # Which session, whether it is live, and how many processes it has.

  logout @1 () -> (revokedContexts :UInt32, skippedDonated :UInt32, revokedLeases :UInt32, wasLive :Bool);
  # Ends the session: revokes the contexts that are bound to threads of its processes, but leaves
  # those that are lent to a receiver until it answers, and counts both; revokes its leases. Once
  # it has ended, another call finds nothing left to do and says so.
}
