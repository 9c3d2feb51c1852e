@0xbb97f3144f2919f1;
# refused: two_interfaces.capnp: Second is the second interface of the file; give it a file of its own

interface First { }
interface Second { }
