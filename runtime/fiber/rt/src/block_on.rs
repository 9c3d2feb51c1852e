//! Running a future to its end: only the fiber waits, or the thread that is no worker.

use core::cell::Cell;
use core::pin::pin;
use core::ptr;
use core::task::{Context, Poll};

use alloc::sync::Arc;
use alloc::task::Wake;

use fiber_core::Outcome;

use crate::fiber::yield_now;
use crate::lock::SpinLock;
use crate::planted::{Defect, is_planted};
use crate::time::Cancelled;
use crate::wait::{Wait, wait};
use crate::what::What;

/// What a future's wakers and whoever runs it meet at: a waitable for one.
struct Alarm(SpinLock<Bell>);

struct Bell {
    /// Rung since the last poll began.
    is_rung: bool,
    waiter: Cell<*const Wait>,
}

// SAFETY: the wait is only reached under the lock.
unsafe impl Send for Bell {}

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let waker = self.0.with(|bell| {
            bell.is_rung = true;
            // SAFETY: a linked wait is alive: its waiter unlinks it, or is completed here.
            let wait = unsafe { bell.waiter.replace(ptr::null()).as_ref() }?;
            let waker = wait.waker();
            wait.decide(Outcome::Data(0)).then_some(waker)
        });
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// Runs `future` until it is ready. The fiber that calls this waits, and no other; a thread that is no
/// worker blocks. What has to happen to make the future ready happens elsewhere, or is polled by it.
///
/// A fiber that is cancelled gets `Cancelled` as from any other wait, and the future is dropped.
pub fn block_on<F: Future>(future: F) -> Result<F::Output, Cancelled> {
    let mut future = pin!(future);
    let bell = Bell { is_rung: false, waiter: Cell::new(ptr::null()) };
    let alarm = Arc::new(Alarm(SpinLock::new(bell)));
    let waker = alarm.clone().into();
    let mut context = Context::from_waker(&waker);
    loop {
        alarm.0.with(|bell| bell.is_rung = false);
        if let Poll::Ready(value) = future.as_mut().poll(&mut context) {
            return Ok(value);
        }
        let publish = |wait: &Wait| {
            alarm.0.with(|bell| {
                let waits = !bell.is_rung || is_planted(Defect::LinksWithoutLooking);
                if waits {
                    bell.waiter.set(wait);
                }
                waits
            })
        };
        let unlink = |_| alarm.0.with(|bell| bell.waiter.set(ptr::null()));
        let at = Arc::as_ptr(&alarm).cast();
        match wait(What::Future, at, None, publish, unlink) {
            Some(Outcome::Cancelled) => return Err(Cancelled),
            Some(_) => {}
            // Woken while it was polled, perhaps by itself: others have their turn before it goes on.
            None => _ = yield_now(),
        }
    }
}
