@0xdaa910253289901c;
# The receiving side of a service.

interface Endpoint @0xfd6f24133a06e835 {
  # The process it was made for receives the calls of every facet of the endpoint, by the ring
  # operations RECV and RETURN. It stays there: its calls wait in tables that this process pays
  # for, and a message that would take it to another one is refused. The methods here are the kernel's and make the facets; a call
  # on a facet itself is never the kernel's, it goes to the receiver whatever its method.

  mintFacet @0 (badge :UInt64, interfaceId :UInt64) -> (facetIndex :UInt16, facetGeneration :UInt32);
  # A new client facet in the caller's capability table. Calls through it, and through every
  # copy of it, arrive with `badge`; `interfaceId` is what a call through it
  # must mean, 0 for the interface that the endpoint was granted for. An id that has no tag is
  # `invalidArgument`, a full table `overloaded`.

  revokeFacets @1 (badge :UInt64) -> (revoked :UInt32);
  # Makes every facet with `badge`, and every copy of one, stale at once: later calls end with
  # status `disconnected`, calls already delivered are answered normally. `revoked` counts the
  # facets made by `mintFacet` or the manifest, not the copies.

  load @2 () -> (queued :UInt32, queueLimit :UInt32, inFlight :UInt32, inFlightLimit :UInt32);
  # How many calls wait for a receiver and how many are received and unanswered, with the
  # limits beyond which a call is `overloaded`.
}
