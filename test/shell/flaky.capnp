@0xe7c35a0d41b9f286;
# init with a service that breaks each time, and one that ends well.

using Boot = import "/schema/manifest.capnp";

const manifest :Boot.Manifest = (processes = [
  (name = "init", binary = "init.elf", boot = true, essential = true,
   arguments = [(text = "good restarts=5"), (text = "nobody"), (text = "flaky restarts=2 pause=1 essential")],
   grants = [
    (name = "console", console = void),
    (name = "timer", timer = void),
    (name = "processes", processSpawner = void)]),
  (name = "good", binary = "hello.elf", arguments = [(text = "once")], grants = [(name = "console", console = void)]),
  (name = "flaky", binary = "fault.elf", grants = [(name = "console", console = void)]),
]);
