@0xa8e45d41577237b5;
# CPU time as a capability: a budget per period, on given CPUs.

enum OverrunPolicy @0xa902fbb89b24fbea {
  # What happens when the budget of a period is used up.

  throttle @0;
  # The thread waits for the next period.

  notify @1;
  # It waits too, and the observer is woken.

  shed @2;
  # It goes on under its own weight, as a thread without a context would.
}

enum Criticality @0x9c6973679e8981e4 {
  # Which contexts of an overloaded CPU are throttled first: those of the lower band.

  low @0;
  normal @1;
  high @2;
}

enum ContextResult @0x8d61f220fd23ba36 {
  # What became of a call, beside exceptions.

  ok @0;
  staleGeneration @1;
  # The capability is of an earlier generation of the context; nothing was done.

  revoked @2;
  # The context was revoked; nothing was done.
}

enum ContextLifecycle @0xebb3778395a81e14 {
  active @0;
  revoked @1;
  stale @2;
  # Seen through a capability of an earlier generation.
}

enum ContextBinding @0xf7210b52da924218 {
  unbound @0;
  bound @1;
  donated @2;
  # A receiver runs on it until it answers the call it came with.
}

enum DispatchEffect @0x9b92d58b735b3464 {
  infoOnlyNoDispatchChange @0;
  # It changes nothing about who runs: it is stale or revoked.

  budgetEnforced @1;
}

struct SchedulingContextSpec @0xacfd1caf030ee88a {
  # Valid if 0 < budget ≤ deadline ≤ period and all are within the kernel's bounds.

  budgetNs @0 :UInt64;
  # Time it may run in each period.

  periodNs @1 :UInt64;
  relativeDeadlineNs @2 :UInt64;
  # From the beginning of a period.

  cpuMask @3 :Data;
  # Where it may run: CPU n is bit n % 8 of byte n / 8, the lowest bit first. Without trailing zero
  # bytes; empty is no CPU at all.

  overrunPolicy @4 :OverrunPolicy;
  criticality @5 :Criticality = normal;
}

struct SchedulingContextInfo @0x9eac3067935e4a8f {
  contextId @0 :UInt64;
  # Never reused.

  generation @1 :UInt64;
  # Steps with each revocation; with the id it names what a capability is for.

  lifecycle @2 :ContextLifecycle;
  binding @3 :ContextBinding;
  effect @4 :DispatchEffect;

  consumedNs @5 :UInt64;
  # Time charged to it since it was made.

  remainingBudgetNs @6 :UInt64;
  # Of this period; 0 for a stale or revoked one.

  nextReplenishmentNs @7 :UInt64;
  # When the next period begins, by the monotonic clock.

  budgetNs @8 :UInt64;
  periodNs @9 :UInt64;
  relativeDeadlineNs @10 :UInt64;
  overrunPolicy @11 :OverrunPolicy;
  criticality @12 :Criticality;

  boundPid @13 :UInt32;
  boundProcessGeneration @14 :UInt32;
  boundTid @15 :UInt32;
  boundThreadGeneration @16 :UInt32;
  # The thread it is bound to; zero while it is unbound.

  donorDebtNs @17 :UInt64;
  # Time receivers ran beyond the budget they were lent, still to be paid.
}

struct NotificationCell @0xbc36b80f4b50aacf {
  # Events of one kind, counted together until they are drained.

  sequence @0 :UInt64;
  # Counts all events ever; does not wrap.

  count @1 :UInt64;
  # Since the last drain; 0 is none.

  holderPid @2 :UInt32;
  holderProcessGeneration @3 :UInt32;
  holderTid @4 :UInt32;
  holderThreadGeneration @5 :UInt32;
  # The thread that ran on the context at the latest event.

  remainingBudgetNs @6 :UInt64;
  nextNs @7 :UInt64;
  # When the next period, or the next deadline, is.

  donated @8 :Bool;
  # The holder ran on a donated context.
}

interface SchedulingContext @0xead5b90ed70e34be {
  # A context is bound to one thread, and a thread to one context. A bound thread runs only while
  # there is budget and only on the context's CPUs; when the budget is used up its overrun policy
  # acts. A call to a receiver without a context lends it the caller's until the answer.
  #
  # Holding a capability is the authority to make others within the same limits, to bind the
  # calling thread, and to revoke.

  info @0 () -> (info :SchedulingContextInfo);
  # What it is and how much of it is left. Answers through a stale or revoked capability too.

  create @1 (spec :SchedulingContextSpec) -> (result :ContextResult, contextIndex :UInt16, contextGeneration :UInt32);
  # A new context, as a capability in the caller's table (0 and 0 unless `ok`). A specification
  # that is not valid, or a mask that is not in the form above, is `invalidArgument`; if a CPU of
  # the mask would have promised more than 95 % of its time, or the table is full, it is
  # `overloaded`.

  bindCallerThread @2 () -> (result :ContextResult);
  # Binds it to the calling thread. `failed`: the thread or the context is bound, the mask has no
  # CPU of this machine. A bind that fails arms nothing.

  revoke @3 () -> (result :ContextResult);
  # Ends this generation: unbinds, stales every capability of it, and frees what it promised.

  drainNotifications @4 () -> (result :ContextResult, budgetDepleted :NotificationCell, deadlineOrTimeout :NotificationCell);
  # Takes what has happened. The cells are empty unless `ok`.

  waitNotification @5 () -> (result :ContextResult, budgetDepleted :NotificationCell, deadlineOrTimeout :NotificationCell);
  # As `drainNotifications`, but waits for an event if there is none. The place to wait is part of
  # the context: one call waits, another is `overloaded`. A revocation ends the wait with
  # `revoked`.
}
