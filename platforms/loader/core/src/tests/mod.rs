//! Host tests of the core: every refusal, every request, odd maps, damaged files.

mod archive;
mod boot;
mod config;
mod firmware;
mod image;
mod kernel;
mod memmap;
mod paging;
mod ram;
mod relocate;
mod requests;
