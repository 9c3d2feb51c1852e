//! The canonical form's way out: lines on the second serial port, then the exit port.

use core::fmt::{self, Write};

use abi_report::{EXIT_PORT, Exit};
use x86_64::instructions::port::Port;

/// COM2.
pub struct Line;

impl Write for Line {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        const COM2: u16 = 0x2f8;
        for byte in text.bytes() {
            // SAFETY: the second serial port of the machine the test starts.
            unsafe {
                while Port::<u8>::new(COM2 + 5).read() & 0x20 == 0 {
                    core::hint::spin_loop();
                }
                Port::<u8>::new(COM2).write(byte);
            }
        }
        Ok(())
    }
}

/// Prints one line of the canonical form.
#[macro_export]
macro_rules! say {
    ($($part:tt)*) => {{
        use core::fmt::Write;
        let _ = writeln!($crate::report::Line, $($part)*);
    }};
}

/// `yes` or `no`.
pub fn yes(condition: bool) -> &'static str {
    if condition { "yes" } else { "no" }
}

/// Ends QEMU.
pub fn exit(code: Exit) -> ! {
    // SAFETY: the exit device of the machine the test starts.
    unsafe { Port::<u8>::new(EXIT_PORT).write(code as u8) };
    loop {
        x86_64::instructions::hlt();
    }
}

#[panic_handler]
fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
    say!("panic {info}");
    exit(Exit::Panic)
}
