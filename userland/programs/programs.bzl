"""The programs of this folder: name → what it does, as the shell's `help` says it.

The one list of them: their targets, the boot modules and the names the shell knows are made from it.
"""

PROGRAMS = {
    "echo": "prints its arguments: echo a b",
    "fault": "overflows its stack, for the crash report to look at",
    "hello": "says hello: hello NAME",
    "keys": "shows what each key sends, until Ctrl-D",
    "primes": "counts the primes below a million with so many threads: primes THREADS",
    "sleep": "sleeps for so many milliseconds: sleep 500",
    "spin": "computes for ever, with so many threads: spin THREADS",
}
