"""What the boot that measures consists of."""

MODULES = {
    "//test/bench/programs:manifest": "manifest.bin",
    "//test/bench/programs:client": "client.elf",
    "//test/bench/programs:echo": "echo.elf",
    "//test/bench/programs:large": "large.elf",
    "//test/bench/programs:typed": "typed.elf",
    "//test/bench/programs:yielder": "yielder.elf",
}
