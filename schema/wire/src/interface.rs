//! Method tables: an interface as data.

/// The sections of a struct on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StructLayout {
    /// The struct's id.
    pub id: u64,
    /// Words of data.
    pub data_words: u16,
    /// Pointers.
    pub pointers: u16,
}

/// One method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MethodEntry {
    /// Its number in the interface.
    pub ordinal: u16,
    /// Its name in the schema.
    pub name: &'static str,
    /// What it takes.
    pub params: StructLayout,
    /// What it gives.
    pub results: StructLayout,
}

/// One interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Its id, what a CapSet entry names.
    pub id: u64,
    /// Its name in the schema.
    pub name: &'static str,
    /// Whether a capability of it may go to another process.
    pub is_transferable: bool,
    /// Its methods, by ordinal.
    pub methods: &'static [MethodEntry],
}

impl Interface {
    /// The method with this number.
    pub fn method(&self, ordinal: u16) -> Option<&'static MethodEntry> {
        self.methods.get(usize::from(ordinal))
    }
}
