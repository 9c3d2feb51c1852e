//! How long a memory object lives: who pays for it, who has a capability of it, who maps it.
//!
//! Its frames are there as long as somebody pays. Whoever made it pays while a capability of it exists or a page of it is
//! mapped anywhere; whoever maps pages of it pays as well, for all of it, as long as it does. So nobody's end takes
//! memory from under another, and nobody pays for what it did not ask for: a capability alone keeps nothing.
//!
//! Decided in ADR 300.

/// Who has what of a memory object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObjectLife {
    capabilities: u32,
    mapped_pages: u64,
    /// The maker among them, while it has not left.
    payers: u32,
    has_maker: bool,
    is_over: bool,
}

/// The object is over: nobody pays for it, or nobody could use it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Over;

/// How a mapping is paid for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Payer {
    /// By a process that pays for the object already.
    Known,
    /// By one that begins to.
    New,
}

/// What has to happen after somebody let go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum LetGo {
    /// Nothing.
    Keep,
    /// Nobody can use it any more: its maker is to leave as a payer.
    MakerLeaves,
    /// Nobody pays for it any more: its frames are to be freed.
    Free,
}

impl ObjectLife {
    /// An object that was just made: its maker pays, and has a capability of it.
    pub const fn new() -> Self {
        Self { capabilities: 1, mapped_pages: 0, payers: 1, has_maker: true, is_over: false }
    }

    /// Nothing, in the place of an object.
    pub const NONE: Self =
        Self { capabilities: 0, mapped_pages: 0, payers: 0, has_maker: false, is_over: true };

    /// Whether it is over.
    pub const fn is_over(&self) -> bool {
        self.is_over
    }

    /// Pages that are mapped, of all processes together.
    pub const fn mapped_pages(&self) -> u64 {
        self.mapped_pages
    }

    /// Processes that pay for it.
    pub const fn payers(&self) -> u32 {
        self.payers
    }

    /// One capability more.
    pub const fn retain(&mut self) -> Result<(), Over> {
        match self.capabilities.checked_add(1) {
            Some(more) if !self.is_over => {
                self.capabilities = more;
                Ok(())
            }
            _ => Err(Over),
        }
    }

    /// One capability less.
    pub const fn release(&mut self) -> LetGo {
        if self.is_over {
            return LetGo::Keep;
        }
        self.capabilities = self.capabilities.saturating_sub(1);
        self.after_use()
    }

    /// Pages are going to be mapped.
    pub const fn map(&mut self, pages: u64, payer: Payer) -> Result<(), Over> {
        if self.is_over {
            return Err(Over);
        }
        let payers = match payer {
            Payer::Known => Some(self.payers),
            Payer::New => self.payers.checked_add(1),
        };
        match (self.mapped_pages.checked_add(pages), payers) {
            (Some(mapped), Some(payers)) => {
                self.mapped_pages = mapped;
                self.payers = payers;
                Ok(())
            }
            _ => Err(Over),
        }
    }

    /// Pages are not mapped any more, and no CPU can reach them by that mapping. Who mapped them pays still.
    pub const fn unmap(&mut self, pages: u64) {
        self.mapped_pages = self.mapped_pages.saturating_sub(pages);
    }

    /// Whether its maker has nothing more to pay for; if so it is over, and the maker is to leave.
    pub const fn is_unused(&mut self) -> bool {
        matches!(self.after_use(), LetGo::MakerLeaves)
    }

    /// A process pays no more: one that maps nothing, or one that ends.
    pub const fn leave(&mut self, is_maker: bool) -> LetGo {
        self.payers = self.payers.saturating_sub(1);
        if is_maker {
            self.has_maker = false;
        }
        if self.payers == 0 {
            self.is_over = true;
            return LetGo::Free;
        }
        self.after_use()
    }

    const fn after_use(&mut self) -> LetGo {
        if self.capabilities > 0 || self.mapped_pages > 0 || !self.has_maker || self.is_over {
            return LetGo::Keep;
        }
        self.is_over = true;
        LetGo::MakerLeaves
    }
}

impl Default for ObjectLife {
    fn default() -> Self {
        Self::new()
    }
}
