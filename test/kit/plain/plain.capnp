@0xd2a7c19e6f3b4085;
# What the endpoints of tests serve that speak no schema.

interface Plain @0xa3f1c2d4e5b60718 {
  # Words in inline slots, numbered as the two programs of a test agree on. There are no methods
  # to read the numbers by; a call still has to mean this interface, like any other.
}
