//! What a process's address space consists of: regions, what backs them, what may be done there.
//!
//! In here: [`PageRange`], user pages that are nobody else's; [`Regions`], the sorted list of
//! regions with map, reserve, unmap, protect and find-free; [`ObjectLife`], how long a memory
//! object lives. Not in here: page tables, frames, the account they are charged to.
//!
//! # Contract
//!
//! - Called under the address space's lock. Storage comes from outside: a list of `n` places
//!   holds `n - 2` regions (a change needs two for a moment), and can be changed for a larger one.
//! - A [`PageRange`] can only name whole pages of user memory outside the kernel's own areas
//!   (ring arena, CapSet, time page) and never the null page, so no operation can touch those.
//! - No page is writable and executable: [`Access`] has no value for it, and [`access`] refuses
//!   the wish.
//! - Two regions never overlap, and neighbours that continue each other are one region: what is not in transit
//!   is a function of what is mapped, not of how it came about.
//! - An error changes nothing. A change has two halves, because page tables and what other CPUs remember of them
//!   take time: pages in transit ([`Use::Settling`], [`Use::Leaving`]) are their changer's alone until it settles
//!   them, and nothing else is mapped, unmapped or protected there meanwhile.
//! - A region of a memory object pins it. Regions split and merge; count pins in pages.
//!
//! Decided in ADRs 131 and 300.
#![no_std]

mod find;
mod object;
mod range;
mod region;
mod regions;
mod rewrite;

pub use core_paging::Access;
pub use find::gap_around;
pub use object::{LetGo, ObjectLife, Over, Payer};
pub use range::{AREAS, Area, FIRST_PAGE, LAST_PAGE, PageRange, RangeError};
pub use region::{AccessError, Backing, Ceiling, Region, Use, access};
pub use regions::{Mapped, Regions, StorageError, VmError};
