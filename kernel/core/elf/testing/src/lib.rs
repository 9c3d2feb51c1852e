//! ELF files made field by field, sound or not: the tests' linker.
//!
//! [`File::default`] is a sound executable with code, constants, data and thread-local data;
//! [`File::guarded`] has notes and guards as well. A test changes what it wants to be wrong and takes
//! the [`bytes`](File::bytes).

/// `p_type` of a segment that is loaded.
pub const PT_LOAD: u32 = 1;
/// `p_type` of notes.
pub const PT_NOTE: u32 = 4;
/// `p_type` of the thread-local template.
pub const PT_TLS: u32 = 7;
/// `p_type` that says how the stack is.
pub const PT_GNU_STACK: u32 = 0x6474_e551;
/// `p_flags`: executable.
pub const PF_X: u32 = 1;
/// `p_flags`: writable.
pub const PF_W: u32 = 2;
/// `p_flags`: readable.
pub const PF_R: u32 = 4;

/// The fields of an ELF64 header, under their names in the standard.
#[allow(missing_docs)]
#[derive(Clone, Debug)]
pub struct Header {
    pub ident: [u8; 16],
    pub e_type: u16,
    pub e_machine: u16,
    pub e_version: u32,
    pub e_entry: u64,
    pub e_phoff: u64,
    pub e_shoff: u64,
    pub e_flags: u32,
    pub e_ehsize: u16,
    pub e_phentsize: u16,
    /// By default the number of program headers there are.
    pub e_phnum: Option<u16>,
}

/// The fields of an ELF64 program header, under their names in the standard.
#[allow(missing_docs)]
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    pub p_type: u32,
    pub p_flags: u32,
    pub p_offset: u64,
    pub p_vaddr: u64,
    pub p_paddr: u64,
    pub p_filesz: u64,
    pub p_memsz: u64,
    pub p_align: u64,
}

/// A file.
#[derive(Clone, Debug)]
pub struct File {
    /// The first 64 bytes.
    pub header: Header,
    /// The table right behind it.
    pub entries: Vec<Entry>,
    /// Notes, one after the other, at [`NOTES_AT`]; the `PT_NOTE` says how many bytes of them count.
    pub notes: Vec<Note>,
    /// Bytes of the whole file; what is behind the table counts up, but for the notes.
    pub length: usize,
}

/// Where a file's notes are, in the file.
pub const NOTES_AT: usize = 0x680;

/// A note, padded to [`align`](Note::align).
#[allow(missing_docs)]
#[derive(Clone, Debug)]
pub struct Note {
    pub name: Vec<u8>,
    pub kind: u32,
    pub descriptor: Vec<u8>,
    pub align: usize,
}

impl Note {
    /// One that declares guards.
    pub fn guards(start: u64, stride: u64, count: u64) -> Self {
        let descriptor = [start, stride, count].into_iter().flat_map(u64::to_le_bytes).collect();
        Self { name: b"capOS\0".to_vec(), kind: 1, descriptor, align: 8 }
    }

    /// As it lies in a file.
    pub fn bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        out.extend((self.name.len() as u32).to_le_bytes());
        out.extend((self.descriptor.len() as u32).to_le_bytes());
        out.extend(self.kind.to_le_bytes());
        for part in [&self.name, &self.descriptor] {
            out.extend(part);
            out.resize(out.len().next_multiple_of(self.align), 0);
        }
        out
    }
}

impl Entry {
    /// A loaded segment at the address that equals its offset plus `base`.
    pub const fn load(base: u64, offset: u64, filesz: u64, memsz: u64, flags: u32) -> Self {
        Self {
            p_type: PT_LOAD,
            p_flags: flags,
            p_offset: offset,
            p_vaddr: base + offset,
            p_paddr: base + offset,
            p_filesz: filesz,
            p_memsz: memsz,
            p_align: 4096,
        }
    }
}

impl Default for Header {
    fn default() -> Self {
        Self {
            ident: [0x7f, b'E', b'L', b'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0],
            e_type: 2,
            e_machine: 62,
            e_version: 1,
            e_entry: 0x20_1480,
            e_phoff: 64,
            e_shoff: 0,
            e_flags: 0,
            e_ehsize: 64,
            e_phentsize: 56,
            e_phnum: None,
        }
    }
}

impl Default for File {
    fn default() -> Self {
        Self {
            header: Header::default(),
            entries: vec![
                Entry::load(0x20_0000, 0, 0x400, 0x400, PF_R),
                Entry::load(0x20_1000, 0x400, 0x200, 0x200, PF_R | PF_X),
                Entry::load(0x20_2000, 0x600, 0x40, 0x2100, PF_R | PF_W),
                Entry {
                    p_type: PT_TLS,
                    p_align: 16,
                    ..Entry::load(0x20_2000, 0x600, 0x10, 0x28, PF_R)
                },
                Entry { p_type: PT_GNU_STACK, p_vaddr: 0, ..Entry::load(0, 0, 0, 0, PF_R | PF_W) },
            ],
            notes: Vec::new(),
            length: 0x700,
        }
    }
}

impl File {
    /// A sound file with two notes: somebody else's, and two stacks of 8 KiB with their guards in the
    /// zeros of the data.
    pub fn guarded() -> Self {
        let mut file = Self::default();
        if let Some(data) = file.entries.get_mut(2) {
            data.p_memsz = 0x8a00;
        }
        file.notes = vec![
            Note { name: b"GNU\0".to_vec(), kind: 3, descriptor: vec![7; 5], align: 8 },
            Note::guards(0x20_4000, 0x3000, 2),
        ];
        file.entries.push(Entry {
            p_type: PT_NOTE,
            p_align: 8,
            ..Entry::load(0x20_0000, NOTES_AT as u64, 0x48, 0x48, PF_R)
        });
        file
    }

    /// The file with these notes and no others, each of the first one's alignment.
    pub fn with_notes(mut self, notes: Vec<Note>) -> Self {
        let bytes: usize = notes.iter().map(|note| note.bytes().len()).sum();
        let align = notes.first().map_or(8, |note| note.align);
        for entry in self.entries.iter_mut().filter(|entry| entry.p_type == PT_NOTE) {
            (entry.p_filesz, entry.p_memsz) = (bytes as u64, bytes as u64);
            entry.p_align = align as u64;
        }
        self.length = self.length.max(NOTES_AT + bytes);
        self.notes = notes;
        self
    }

    /// The file as it lies on a disk.
    pub fn bytes(&self) -> Vec<u8> {
        let h = &self.header;
        let mut out = Vec::with_capacity(self.length);
        out.extend(h.ident);
        out.extend(h.e_type.to_le_bytes());
        out.extend(h.e_machine.to_le_bytes());
        out.extend(h.e_version.to_le_bytes());
        out.extend(h.e_entry.to_le_bytes());
        out.extend(h.e_phoff.to_le_bytes());
        out.extend(h.e_shoff.to_le_bytes());
        out.extend(h.e_flags.to_le_bytes());
        out.extend(h.e_ehsize.to_le_bytes());
        out.extend(h.e_phentsize.to_le_bytes());
        out.extend(h.e_phnum.unwrap_or(self.entries.len() as u16).to_le_bytes());
        // No section headers.
        out.extend([0; 6]);
        for e in &self.entries {
            out.extend(e.p_type.to_le_bytes());
            out.extend(e.p_flags.to_le_bytes());
            for field in [e.p_offset, e.p_vaddr, e.p_paddr, e.p_filesz, e.p_memsz, e.p_align] {
                out.extend(field.to_le_bytes());
            }
        }
        while out.len() < self.length {
            out.push(out.len() as u8);
        }
        let notes = self.notes.iter().flat_map(Note::bytes);
        for (place, byte) in out.iter_mut().skip(NOTES_AT).zip(notes) {
            *place = byte;
        }
        out.truncate(self.length);
        out
    }
}
