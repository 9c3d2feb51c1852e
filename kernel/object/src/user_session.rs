//! UserSession: what belongs together and ends together.

use crate::refuse;
use kernel_ops::capability::ProcessKey;
use kernel_ops::object::Calling;
use kernel_process::Machine;
use kernel_process::session::{self, SessionInfo};
use schema::user_session::{InfoResults, LogoutResults, Server};
use schema_wire::{Answer, ExceptionKind, NoResult};

/// What it needs of the kernel.
pub trait Host {
    /// Its number, never used for another.
    fn id(&self) -> u64;
    /// What it is.
    fn info(&self) -> Option<SessionInfo>;
    /// Ends it; whether it was live.
    fn end(&mut self) -> Option<bool>;
}

/// A session of the caller's, in a call.
pub struct Held<'c, 'r, M: Machine> {
    /// The call.
    pub calling: &'c mut Calling<'r, M>,
    /// The session: who began it.
    pub of: ProcessKey,
}

impl<M: Machine> Host for Held<'_, '_, M> {
    fn id(&self) -> u64 {
        self.of.to_bits()
    }

    fn info(&self) -> Option<SessionInfo> {
        session::info(self.calling.caller.m, self.of)
    }

    fn end(&mut self) -> Option<bool> {
        session::end(self.calling.caller.m, self.of)
    }
}

/// The server.
#[derive(Debug)]
pub struct UserSession<'h, H>(pub &'h mut H);

/// Of a capability that outlived its session: no kernel leads there.
fn no_session() -> NoResult {
    refuse(ExceptionKind::Disconnected, "the session is gone; it was given back")
}

impl<H: Host> Server for UserSession<'_, H> {
    fn info(&mut self) -> Answer<InfoResults> {
        let SessionInfo { view, started_ns } = self.0.info().ok_or_else(no_session)?;
        Ok(InfoResults {
            session_id: self.0.id(),
            live: view.is_live,
            processes: view.processes,
            started_ns,
        })
    }

    fn logout(&mut self) -> Answer<LogoutResults> {
        let was_live = self.0.end().ok_or_else(no_session)?;
        // Contexts and leases are what a session's end takes away, and this kernel gives none out.
        Ok(LogoutResults { revoked_contexts: 0, skipped_donated: 0, revoked_leases: 0, was_live })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core_thread::SessionView;

    struct One(Option<SessionView>);

    impl Host for One {
        fn id(&self) -> u64 {
            77
        }
        fn info(&self) -> Option<SessionInfo> {
            self.0.map(|view| SessionInfo { view, started_ns: 5 })
        }
        fn end(&mut self) -> Option<bool> {
            let view = self.0.as_mut()?;
            Some(core::mem::take(&mut view.is_live))
        }
    }

    #[test]
    fn a_session_ends_once_and_is_told_of_afterwards() {
        let mut one = One(Some(SessionView { is_live: true, processes: 3 }));
        let told = |live| InfoResults { session_id: 77, live, processes: 3, started_ns: 5 };
        assert_eq!(UserSession(&mut one).info(), Ok(told(true)));
        let ended = |was_live| LogoutResults {
            revoked_contexts: 0,
            skipped_donated: 0,
            revoked_leases: 0,
            was_live,
        };
        assert_eq!(UserSession(&mut one).logout(), Ok(ended(true)));
        assert_eq!(UserSession(&mut one).logout(), Ok(ended(false)));
        assert_eq!(UserSession(&mut one).info(), Ok(told(false)));
    }

    #[test]
    fn one_that_is_gone_is_disconnected() {
        for answer in
            [UserSession(&mut One(None)).info().err(), UserSession(&mut One(None)).logout().err()]
        {
            let Some(NoResult::Exception(said)) = answer else { panic!("answered") };
            assert_eq!(said.kind(), ExceptionKind::Disconnected);
        }
    }
}
