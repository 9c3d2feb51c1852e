//! The guest as a kernel: it asks the loader for its command line and nothing else.
#![no_std]
#![no_main]

use limine::request::ExecutableCmdlineRequest;
use limine::{BaseRevision, RequestsEndMarker, RequestsStartMarker};

#[used]
#[unsafe(link_section = ".requests_start")]
static START: RequestsStartMarker = RequestsStartMarker::new();

#[used]
#[unsafe(link_section = ".requests")]
static REVISION: BaseRevision = BaseRevision::with_revision(6);

#[used]
#[unsafe(link_section = ".requests")]
static COMMAND_LINE: ExecutableCmdlineRequest = ExecutableCmdlineRequest::new();

#[used]
#[unsafe(link_section = ".requests_end")]
static END: RequestsEndMarker = RequestsEndMarker::new();

#[unsafe(no_mangle)]
extern "C" fn guest_start() -> ! {
    let response = COMMAND_LINE.response().filter(|_| REVISION.is_supported());
    guest::behave(response.map_or("", |response| response.cmdline()))
}
