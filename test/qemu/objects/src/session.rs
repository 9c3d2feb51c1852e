//! UserSession: who belongs to one, and what its end does.

use capos_rt::process::{Child, Command, copied};
use schema::process_directory_capnp::ProcessState;
use schema::user_session::{self, InfoResults};
use schema_wire::CallError;
use test_kit::{Outcome, check, check_eq, require_ok, require_some};

use crate::directory::each_process;
use crate::{PROFILE, Run, Shared};

fn info(shared: &Shared) -> Result<InfoResults, CallError> {
    user_session::Client::new(shared.program.io().caller(), shared.session).info()
}

/// The session that the directory tells of a process.
fn told(shared: &Shared, child: &Child) -> Option<u64> {
    let of = child.info(shared.program.io()).ok()?;
    let mut found = None;
    let is_whole = each_process(&mut shared.directory(), |entry| {
        if (entry.pid, entry.generation) == (of.pid, of.generation)
            && entry.state != ProcessState::Gone
        {
            found = Some(entry.session_id);
        }
    });
    found.filter(|_| is_whole)
}

/// A worker with this program's session.
fn with_session(shared: &Shared, what: &str) -> Result<Child, CallError> {
    let grants = [copied("timer", shared.program.timer), copied("session", shared.session)];
    let command = Command {
        arguments: &[what],
        grants: &grants,
        profile: PROFILE,
        ..Command::new("with a session", "worker.elf")
    };
    shared.processes.spawn(shared.program.io(), &command)
}

/// Ends a child and lets go of it.
fn end(shared: &Shared, child: Child) -> bool {
    let io = shared.program.io();
    child.kill(io, 0).is_ok() && child.wait(io).is_ok() && child.release(io).is_ok()
}

/// A child is counted from its start until nothing of it is left.
pub fn counts(t: &mut Run<'_>) -> Outcome {
    let before = require_ok!(t, info(t.env));
    check!(t, before.live && before.processes >= 1, "{before:?}");
    let children = [
        require_ok!(t, t.env.child("one", &["sleep"])),
        require_ok!(t, t.env.child("two", &["sleep"])),
    ];
    check_eq!(t, require_ok!(t, info(t.env)).processes, before.processes + 2);
    for child in children {
        check_eq!(t, told(t.env, &child), Some(before.session_id));
        check!(t, end(t.env, child));
    }
    check_eq!(t, require_ok!(t, info(t.env)), before);
    Ok(())
}

/// An entry that is granted one begins another session each time; its end is nobody else's.
pub fn login(t: &mut Run<'_>) -> Outcome {
    let io = t.env.program.io();
    let own = require_ok!(t, info(t.env));
    let mut last = own.session_id;
    for _ in 0..3 {
        let login = require_ok!(t, t.env.processes.start_entry(io, "login"));
        let its = require_some!(t, told(t.env, &login));
        check!(t, its != 0 && its != own.session_id && its != last, "{its:#x} after {last:#x}");
        last = its;
        // It has one process, ends it, ends it again, and says so.
        check_eq!(t, require_ok!(t, login.wait(io)).exit_code, 0b1011);
        check!(t, login.release(io).is_ok());
    }
    check_eq!(t, require_ok!(t, info(t.env)), own);
    Ok(())
}

/// Whoever holds the session can end it, once; its processes go on. Ends this program's: the last test.
pub fn logout(t: &mut Run<'_>) -> Outcome {
    let io = t.env.program.io();
    let before = require_ok!(t, info(t.env));
    let bystander = require_ok!(t, t.env.child("goes on", &["sleep"]));
    let child = require_ok!(t, with_session(t.env, "logout"));
    check_eq!(t, require_ok!(t, child.wait(io)).exit_code, 1);
    check!(t, child.release(io).is_ok());
    let mut session = user_session::Client::new(io.caller(), t.env.session);
    let again = require_ok!(t, session.logout());
    let counts = (again.revoked_contexts, again.skipped_donated, again.revoked_leases);
    check!(t, !again.was_live && counts == (0, 0, 0), "{again:?}");
    let after = require_ok!(t, info(t.env));
    check!(t, !after.live && after.session_id == before.session_id, "{after:?}");
    check_eq!(t, after.processes, before.processes + 1);
    check!(t, !require_ok!(t, bystander.exit_code(io)).exited);
    // It stays the session of whom it had, and of whom they start.
    check_eq!(t, told(t.env, &bystander), Some(before.session_id));
    let late = require_ok!(t, t.env.child("late", &["sleep"]));
    check_eq!(t, told(t.env, &late), Some(before.session_id));
    check!(t, end(t.env, bystander) && end(t.env, late));
    Ok(())
}
