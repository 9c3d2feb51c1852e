//! How soon a thread wants to run once it can, as opposed to how much.

/// A latency class scales the request a thread is ordered by; it changes no share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum LatencyClass {
    /// Half a slice: runs soon after it wakes.
    Interactive,
    /// One slice.
    #[default]
    Normal,
    /// Four slices: gives way to the others, then catches up.
    Batch,
    /// A server called through endpoints: one slice.
    IpcServer,
}

impl LatencyClass {
    /// Every class.
    pub const ALL: [Self; 4] = [Self::Interactive, Self::Normal, Self::Batch, Self::IpcServer];

    /// The request in half slices, so that all of them are whole numbers.
    pub(crate) const fn half_slices(self) -> u64 {
        match self {
            Self::Interactive => 1,
            Self::Normal | Self::IpcServer => 2,
            Self::Batch => 8,
        }
    }
}
