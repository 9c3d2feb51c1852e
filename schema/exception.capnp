@0xdeb0038405b7a8f9;
# What a service answers when it does not answer with results.
#
# An exception is the payload of a completion with status `exception`. What went wrong on
# the way to the service is not an exception but another completion status. There is no
# `denied`: without the capability there is nothing to call.

enum ExceptionKind @0x8998de50884f8a98 {
  failed @0;
  # The request is well formed and cannot be done.

  overloaded @1;
  # A limit is reached; nothing was done, and it may work later.

  disconnected @2;
  # Something the service relies on is gone.

  unimplemented @3;
  # The method, or this use of it, is not implemented.

  invalidArgument @4;
  # A parameter has a value the method does not take.
}

struct Exception @0x91f2a6d9c036e137 {
  kind @0 :ExceptionKind;

  message @1 :Text;
  # One sentence for a person; programs decide by `kind`. At most 95 bytes, so that every
  # exception fits the inline slot of a completion.
}
