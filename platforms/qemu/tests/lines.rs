//! Whole command lines, and the machines that get none.

use qemu_command::{Display, Gdb, Lane, Machine, Media, Refused, Serial, quoted};

fn direct() -> Machine {
    Machine::new(Media::Direct { stub: "stub.elf".into(), bundle: "b.tar".into() })
}

fn line(machine: &Machine) -> String {
    quoted(machine.arguments().unwrap())
}

const COMMON: &str = "-no-user-config -nodefaults -no-reboot -machine q35,sata=off \
                      -run-with exit-with-parent=on -cpu max";

#[test]
fn a_deterministic_test() {
    let machine = Machine {
        lane: Lane::Deterministic,
        cpus: 2,
        serial: Serial::Files { console: "c.log".into(), records: "r.bin".into() },
        append: "exit=debug log=serial".into(),
        qmp: true,
        exit_port: true,
        extra: vec!["-device".into(), "edu".into()],
        ..direct()
    };
    let expected = [
        &format!("{COMMON},-x2apic"),
        "-m 256M -smp 2 -accel tcg,thread=single -icount shift=0,sleep=off -seed 1",
        "-rtc base=2024-01-01T00:00:00,clock=vm -display none -monitor none",
        "-serial file:c.log -serial file:r.bin -device isa-debug-exit,iobase=0xf4,iosize=0x1",
        "-qmp stdio",
        "-kernel stub.elf -initrd b.tar -append 'exit=debug log=serial' -device edu",
    ];
    assert_eq!(line(&machine), expected.join(" "));
}

#[test]
fn a_person_at_the_terminal() {
    let expected = [
        COMMON,
        "-m 256M -smp 1 -accel tcg,thread=multi -display none",
        "-serial mon:stdio -serial null -kernel stub.elf -initrd b.tar",
    ];
    assert_eq!(line(&direct()), expected.join(" "));
    let machine = Machine {
        display: Display::Vnc { socket: "screen.vnc".into() },
        gdb: Some(Gdb { port: 1234, wait: true }),
        serial: Serial::TerminalAndFile { records: "r.bin".into() },
        ..direct()
    };
    let expected = [
        COMMON,
        "-m 256M -smp 1 -accel tcg,thread=multi -device VGA -display vnc=unix:screen.vnc",
        "-serial mon:stdio -serial file:r.bin -gdb tcp:127.0.0.1:1234 -S",
        "-kernel stub.elf -initrd b.tar",
    ];
    assert_eq!(line(&machine), expected.join(" "));
}

#[test]
fn the_hybrid_image_as_cd_and_as_usb_disk() {
    let (iso, firmware) = ("c.iso".into(), "fw.fd".into());
    let cd = line(&Machine::new(Media::Cd { iso, firmware }));
    assert!(cd.contains("-display none -device VGA"), "{cd}");
    assert!(cd.contains("-machine q35 "), "{cd}");
    assert!(cd.ends_with(
        "-bios fw.fd -drive if=none,id=boot,media=cdrom,readonly=on,file=c.iso \
         -device ide-cd,drive=boot,bootindex=0"
    ));
    let (iso, firmware) = ("c.iso".into(), "fw.fd".into());
    let usb = line(&Machine::new(Media::Usb { iso, firmware }));
    assert!(usb.ends_with(
        "-bios fw.fd -drive if=none,id=boot,format=raw,readonly=on,file=c.iso \
         -device qemu-xhci -device usb-storage,drive=boot,bootindex=0"
    ));
}

#[test]
fn no_line_ever_asks_for_another_accelerator() {
    for lane in [Lane::Deterministic, Lane::Racing] {
        let line = line(&Machine { lane, ..direct() });
        assert_eq!(line.matches("-accel tcg,").count(), 1);
        assert!(!line.contains("kvm"));
    }
}

#[test]
fn refusals() {
    let (iso, firmware) = ("c.iso".into(), "fw.fd".into());
    let machine = Machine { append: "x".into(), ..Machine::new(Media::Cd { iso, firmware }) };
    assert_eq!(machine.arguments(), Err(Refused::AppendUnderUefi));
    let media = Media::Direct { stub: "s".into(), bundle: "a,b".into() };
    assert_eq!(Machine::new(media).arguments(), Err(Refused::CommaInPath("a,b".into())));
    assert_eq!(Machine { cpus: 0, ..direct() }.arguments(), Err(Refused::NoCpu));
}
