//! The bytes of the record port as a list of events.

use abi_report::{Damage, Decoder, Item, Record};
use std::fmt;

/// One thing the record port carried: a record, or bytes that are none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    Plan { index: u32, total: u32, id: String },
    Run { id: String },
    Ok { id: String },
    Fail { id: String, failure: Failure },
    Skip { id: String, reason: String },
    Metric { id: String, metric: Metric },
    Done(Count),
    Damage(Damage),
}

/// A failed assertion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    pub file: String,
    pub line: u32,
    pub message: String,
}

/// A figure a test measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metric {
    pub name: String,
    pub value: u64,
    pub unit: String,
}

/// How many tests ended how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    pub passed: u32,
    pub failed: u32,
    pub skipped: u32,
}

/// Whether something else may have used the port before the guest's first record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Before {
    /// Direct boot: every byte on the port is the guest's.
    Nothing,
    /// UEFI firmware copies its console to both serial ports; that text comes before the
    /// guest runs and is no damage.
    FirmwareText,
}

/// Reads everything the port carried.
pub fn read(bytes: &[u8], before: Before) -> Vec<Event> {
    let (mut decoder, mut events) = (Decoder::new(), Vec::new());
    for byte in bytes {
        decoder.push(*byte, |item| match item {
            Item::Damage(Damage::Garbage { .. })
                if events.is_empty() && before == Before::FirmwareText => {}
            item => events.push(item.into()),
        });
    }
    if !(events.is_empty() && before == Before::FirmwareText) {
        events.extend(decoder.finish().map(Event::Damage));
    }
    events
}

impl From<Item<'_>> for Event {
    fn from(item: Item<'_>) -> Event {
        let record = match item {
            Item::Damage(damage) => return Event::Damage(damage),
            Item::Record { record, .. } => record,
        };
        match record {
            Record::Plan { index, total, id } => Event::Plan { index, total, id: id.into() },
            Record::Run { id } => Event::Run { id: id.into() },
            Record::Ok { id } => Event::Ok { id: id.into() },
            Record::Fail { id, line, file, message } => Event::Fail {
                id: id.into(),
                failure: Failure { file: file.into(), line, message: message.into() },
            },
            Record::Skip { id, reason } => Event::Skip { id: id.into(), reason: reason.into() },
            Record::Metric { id, name, value, unit } => Event::Metric {
                id: id.into(),
                metric: Metric { name: name.into(), value, unit: unit.into() },
            },
            Record::Done { passed, failed, skipped } => {
                Event::Done(Count { passed, failed, skipped })
            }
        }
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Event::Plan { index, total, id } => write!(f, "plan   {id} ({} of {total})", index + 1),
            Event::Run { id } => write!(f, "run    {id}"),
            Event::Ok { id } => write!(f, "ok     {id}"),
            Event::Fail { id, failure } => write!(f, "fail   {id} {failure}"),
            Event::Skip { id, reason } => write!(f, "skip   {id}: {reason}"),
            Event::Metric { id, metric: Metric { name, value, unit } } => {
                write!(f, "metric {id} {name} = {value} {unit}")
            }
            Event::Done(count) => write!(f, "done   {count}"),
            Event::Damage(damage) => write!(f, "damage {}", Told(damage)),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file, self.line, self.message)
    }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed, {} skipped", self.passed, self.failed, self.skipped)
    }
}

/// A damage in words.
pub struct Told<'a>(pub &'a Damage);

impl fmt::Display for Told<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Damage::Garbage { len } => write!(f, "{len} bytes that are no record"),
            Damage::Truncated { len } => write!(f, "the stream ends {len} bytes into a record"),
            Damage::OutOfSequence { expected, found } => {
                write!(f, "record {expected} was due, record {found} came")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use abi_report::{Encoder, Sink};

    struct Bytes(Vec<u8>);

    impl Sink for Bytes {
        fn write(&mut self, byte: u8) {
            self.0.push(byte);
        }
    }

    #[test]
    fn firmware_text_is_allowed_before_the_first_record_only() {
        let mut bytes = Bytes(b"BdsDxe: loading Boot0001\r\n".into());
        let run = Record::Run { id: "a" };
        let mut encoder = Encoder::new();
        encoder.send(&mut bytes, &run);
        assert_eq!(read(&bytes.0, Before::FirmwareText), [Event::Run { id: "a".into() }]);
        let garbage = Event::Damage(Damage::Garbage { len: 26 });
        assert_eq!(read(&bytes.0, Before::Nothing)[0], garbage);

        bytes.0.extend(b"late text");
        let events = read(&bytes.0, Before::FirmwareText);
        assert_eq!(events[1..], [Event::Damage(Damage::Truncated { len: 9 })]);
        assert_eq!(read(b"only text", Before::FirmwareText), []);
        assert_eq!(read(b"only text", Before::Nothing).len(), 1);
    }
}
