@0x88552f2a46b35a24;
# An interface with every kind of field there is, to test what is generated.

enum Colour @0xf702082bf44c5840 {
  red @0;
  green @1;
  blue @2;
}

struct Numbers {
  flag @0 :Bool;
  tiny @1 :Int8;
  small @2 :Int16 = -7;
  middle @3 :Int32 = 100000;
  large @4 :Int64 = -1;
  flagOn @5 :Bool = true;
  byte @6 :UInt8 = 255;
  half @7 :UInt16;
  word @8 :UInt32;
  double @9 :UInt64 = 18446744073709551615;
  colour @10 :Colour = green;
}

struct Texts {
  name @0 :Text;
  bytes @1 :Data;
  type @2 :Colour;
}

struct Empty {}

struct Flat { a @0 :UInt32; b @1 :Colour; c @2 :Bool; d @3 :UInt64; }
struct Linked { name @0 :Text; inner @1 :Flat; cap @2 :Probe; }

struct Lists {
  words @0 :List(UInt64);
  halves @1 :List(UInt16);
  tiny @2 :List(Int8);
  flats @3 :List(Flat);
  links @4 :List(Linked);
}

# A chain that nests deeper than a message may.
struct Deep2 { next @0 :Deep3; value @1 :UInt32; }
struct Deep3 { next @0 :Deep4; value @1 :UInt32; }
struct Deep4 { next @0 :Deep5; value @1 :UInt32; }
struct Deep5 { next @0 :Deep6; value @1 :UInt32; }
struct Deep6 { next @0 :Deep7; value @1 :UInt32; }
struct Deep7 { next @0 :Deep8; value @1 :UInt32; }
struct Deep8 { next @0 :Deep9; value @1 :UInt32; }
struct Deep9 { value @0 :UInt32; }

interface Probe @0xa29731392c857bc7 {
  # Answers with what it is asked.

  numbers @0 Numbers -> (numbers :Numbers);
  texts @1 (first :Texts, empty :Empty, second :Texts) -> (first :Texts, second :Texts);
  transfers @2 (one :Probe, number :UInt32, two :Probe) -> (one :Probe, two :Probe);
  deep @3 (deep :Deep3) -> (value :UInt32);
  tooDeep @4 (deep :Deep2) -> (value :UInt32);
  nothing @5 () -> ();
  lists @6 Lists -> (lists :Lists, last :UInt64);
}
