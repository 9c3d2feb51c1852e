//! How fibers end their process, and what is refused.

use alloc::string::String;

use abi_types::Status;
use demo_schema::counter;
use fiber::ring::{Caller, serve};
use fiber::sync::Mutex;
use fiber::{BuildError, Runtime, Thread, nursery};
use fiber_cases::runtime;
use fiber_rt::SystemError;
use schema::console;
use schema_wire::{Answer, NoResult};
use test_kit::{Outcome, T, check, check_eq, require_ok};
use test_user::Env;

type Test<'a> = T<'a, Env>;

/// A console that keeps what is written.
struct Paper<'a>(&'a Mutex<String>);

impl console::Server for Paper<'_> {
    fn write(&mut self, params: console::WriteParams<'_>) -> Answer<console::WriteResults> {
        self.0.lock().push_str(&String::from_utf8_lossy(params.bytes));
        Ok(console::WriteResults { written: params.bytes.len() as u32 })
    }

    fn read(&mut self, _: console::ReadParams, _: usize) -> Answer<console::ReadResults<'_>> {
        Err(NoResult::Later)
    }
}

/// What the process behind the facet `doomed` writes to the console `paper` until it ends.
fn last_words(t: &mut Test<'_>, doomed: &'static str, paper: &'static str) -> Option<String> {
    let doomed = t.env.caps.named(doomed)?;
    let paper = t.env.cap(paper, schema::endpoint::INTERFACE_ID).ok()?;
    let text = Mutex::new(String::new());
    runtime(1).run(|| {
        nursery(|n| {
            let console = n.spawn(|| {
                let mut server = Paper(&text);
                serve(paper, |call, results| {
                    console::dispatch(&mut server, call.method, call.params, results)
                })
            });
            // Answered by its end.
            let ended = counter::Client::new(Caller::new(), doomed).add(1).map(|_| ());
            assert_eq!(ended, Err(schema_wire::CallError::Status(Status::Disconnected)));
            console.cancel();
            assert_eq!(console.join().unwrap(), Status::Cancelled);
        });
    });
    Some(text.into_inner())
}

pub fn a_panic_is_told(t: &mut Test<'_>) -> Outcome {
    let Some(text) = last_words(t, "panics", "panic-paper") else {
        return t.fail(format_args!("a capability is missing"));
    };
    for part in
        ["fiber ", "(the doomed)", "on worker ", "panicked at", "ends_main.rs", "it broke: 7"]
    {
        check!(t, text.contains(part), "{part} in {text}");
    }
    check_eq!(t, text.matches("panicked").count(), 1);
    Ok(())
}

/// The kernel tells of it. The process itself has no say in it any more, and its callers get an answer.
pub fn an_overflow_ends_it_at_once(t: &mut Test<'_>) -> Outcome {
    let Some(text) = last_words(t, "overflows", "overflow-paper") else {
        return t.fail(format_args!("a capability is missing"));
    };
    check_eq!(t, text, "");
    Ok(())
}

pub fn no_more_threads(t: &mut Test<'_>) -> Outcome {
    let refused = Runtime::builder().workers(64).build().map(|_| ());
    check_eq!(t, refused, Err(BuildError::System(SystemError::Threads)));
    check_eq!(t, runtime(4).run(|| 6), 6);
    let thread = require_ok!(t, Thread::spawn("one more", || ()));
    thread.join();
    Ok(())
}

/// Every completion of the first thread went to who asked for it.
pub fn nothing_stray(t: &mut Test<'_>) -> Outcome {
    check_eq!(t, t.env.io.strays(), 0);
    Ok(())
}
