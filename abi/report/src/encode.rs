//! The guest's half: records to bytes.

use crate::frame::Body;
use crate::record::Record;

/// Where encoded bytes go: a serial port, a capability, a buffer in a test.
pub trait Sink {
    /// Sends one byte; returns when it is on its way. There is no failure to report: a byte
    /// that is lost shows at the reader.
    fn write(&mut self, byte: u8);
}

/// Numbers records and writes them as frames.
///
/// One boot has one encoder: the sequence numbers are how the reader sees that nothing is
/// missing. Whoever shares it between threads brings the lock.
#[derive(Debug, Default)]
pub struct Encoder {
    sequence: u32,
}

impl Encoder {
    /// An encoder at sequence number 0.
    pub const fn new() -> Encoder {
        Encoder { sequence: 0 }
    }

    /// An encoder that goes on where another stopped, at its [`Encoder::sequence`].
    pub const fn resume(sequence: u32) -> Encoder {
        Encoder { sequence }
    }

    /// The number of the next frame.
    pub const fn sequence(&self) -> u32 {
        self.sequence
    }

    /// Writes one record as one frame. Text beyond its limit is cut.
    pub fn send(&mut self, sink: &mut (impl Sink + ?Sized), record: &Record<'_>) {
        let body = Body::new(self.sequence, record);
        // A boot sends far fewer than 2^32 frames; a wrap would show as a gap.
        self.sequence = self.sequence.wrapping_add(1);
        sink.write(0);
        cobs(body.bytes(), sink);
        sink.write(0);
    }
}

/// Consistent overhead byte stuffing: the same bytes without a zero among them.
///
/// Each group is a length byte `n` and `n - 1` bytes; a group with `n < 255` stands for its
/// bytes and a zero, except for the last.
fn cobs(body: &[u8], sink: &mut (impl Sink + ?Sized)) {
    for run in body.split(|byte| *byte == 0) {
        let mut groups = run.chunks_exact(254);
        for full in groups.by_ref() {
            write_group(full, sink);
        }
        write_group(groups.remainder(), sink);
    }
}

fn write_group(bytes: &[u8], sink: &mut (impl Sink + ?Sized)) {
    // At most 254 bytes, so the length byte is at most 255.
    sink.write(bytes.len() as u8 + 1);
    for byte in bytes {
        sink.write(*byte);
    }
}
