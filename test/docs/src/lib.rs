//! What holds pages and code together: decisions, their index, citations, links and paths, the places of a
//! kernel object, the tags of interfaces, the order of the layers and that of a crate's modules.
//!
//! Everything is a function over texts. A rule that is broken is a sentence with the file it is
//! about and what would be right; `tree.rs` asks for those of the tree, the tests beside the rules
//! for those of trees that break one each.

mod citations;
mod cycles;
mod decisions;
mod index;
mod interfaces;
mod layers;
mod links;
mod modules;
mod objects;
mod paths;
mod rust;
mod tree;

pub use cycles::{ORDERED, root};
pub use layers::TABLE as LAYERS;
pub use tree::{Tree, problems};
