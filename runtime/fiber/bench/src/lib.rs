//! The fiber runtime beside its peers: the driver's parts.
//!
//! In here: the [`rows`], the command line's [`options`], how contestants are run and timed
//! ([`race`]), and what comes out ([`report`], [`plot`]). Not in here: the contestants, programs of
//! their own in the folders beside this one.

pub mod options;
pub mod plot;
pub mod race;
pub mod report;
pub mod rows;
