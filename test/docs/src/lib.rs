//! What holds pages and code together: decisions, their index, citations, links, and the places of a
//! kernel object.
//!
//! Everything is a function over texts. A rule that is broken is a sentence with the file it is
//! about and what would be right; `tree.rs` asks for those of the tree, the tests beside the rules
//! for those of trees that break one each.

mod citations;
mod decisions;
mod index;
mod links;
mod objects;
mod tree;

pub use tree::{Tree, problems};
