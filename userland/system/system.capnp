@0xd6b4f1a92c07e35b;
# The system that is shipped: init, the shell, and a service with a client to look at.
#
# PROGRAMS_OF_THE_SHELL stands for the variables that name the programs of userland/programs; the build puts them there.

using Boot = import "/schema/manifest.capnp";

const manifest :Boot.Manifest = (processes = [
  # One argument for each service, in the order of their start: see userland/init/core/src/service.rs.
  (name = "init", binary = "init.elf", boot = true, essential = true, weight = 256,
   arguments = [(text = "shell restarts=5 within=60 pause=100 essential")],
   grants = [
    (name = "console", console = void),
    (name = "timer", timer = void),
    (name = "processes", processSpawner = void)]),
  # It may use what the programs that it starts may use together.
  (name = "shell", binary = "shell.elf", weight = 256, environment = [PROGRAMS_OF_THE_SHELL],
   profile = (capSlots = 1024, threads = 256, kernelStackPages = 8192, frames = 32768,
     sleepWaiters = 256, kernelBytes = 16777216),
   grants = [
    (name = "console", console = void),
    (name = "terminal", endpoint = (name = "terminal", interfaceId = 0x88e73c551f47cb7f)),
    (name = "timer", timer = void),
    (name = "info", systemInfo = void),
    (name = "park", parkSpace = void),
    (name = "directory", processDirectory = void),
    (name = "processes", processSpawner = void)]),
  # Their console is the shell's terminal. Entries have badge 0 there.
  (name = "counter-server", binary = "server.elf", grants = [
    (name = "console", client = (endpoint = "terminal", badge = 0)),
    (name = "requests", endpoint = (name = "counter", interfaceId = 0xebf46935cb01b47b))]),
  (name = "counter-client", binary = "client.elf", grants = [
    (name = "console", client = (endpoint = "terminal", badge = 0)),
    (name = "info", systemInfo = void),
    (name = "counter", client = (endpoint = "counter", badge = 1))]),
]);
