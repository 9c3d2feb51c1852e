//! The outermost scope of a `run`, whose fibers borrow nothing and may be joined after it.

use core::ptr;
use core::sync::atomic::Ordering;

use alloc::sync::Arc;

use crate::fiber::shield;
use crate::handle::{Handle, JoinError};
use crate::runtime::Shared;
use crate::scope::{Scope, SpawnError};
use crate::shield::wait_in_any_case;
use crate::substrate::{PanicPayload, Substrate, Sys};
use crate::worker::current_fiber;

/// The outermost scope of one `run`.
pub struct Root {
    scope: Scope<'static, 'static>,
    shared: Arc<Shared>,
}

/// Spawns a fiber into the root scope of the `run` the caller lives in.
///
/// # Panics
/// Where no fiber runs.
pub fn spawn_root<T, F>(f: F) -> Result<Handle<'static, T>, SpawnError<F>>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    let root = current_fiber().map(|fiber| fiber.root.load(Ordering::Relaxed).cast::<Root>());
    assert!(root.is_some(), "a fiber is spawned by a fiber: within Runtime::run");
    let root = root.unwrap_or(ptr::null_mut());
    // SAFETY: the root lives while a fiber below it does; the count was made by Arc::into_raw's kin.
    let root = unsafe {
        Arc::increment_strong_count(root);
        Arc::from_raw(root)
    };
    // SAFETY: everything is 'static.
    let mut handle = unsafe { root.scope.spawn_unchecked(f)? };
    handle.root = Some(root);
    Ok(handle)
}

/// Runs `f` as the first fiber of a new root and waits for all.
pub(crate) fn run_root<R, F: FnOnce() -> R>(shared: &Arc<Shared>, f: F) -> R {
    let mut root = Arc::new(Root {
        scope: Scope::new(Arc::as_ptr(shared), ptr::null()),
        shared: shared.clone(),
    });
    let at = Arc::as_ptr(&root).cast();
    if let Some(root) = Arc::get_mut(&mut root) {
        root.scope.root = at;
    }
    debug_assert!(Arc::ptr_eq(&root.shared, shared));
    // SAFETY: all fibers of the root have ended before this returns.
    let handle = match unsafe { root.scope.spawn_unchecked(f) } {
        Ok(handle) => handle,
        Err(error) => refuse(&error),
    };
    let panic = root.scope.leave_root();
    let result = shield_join(handle);
    match (result, panic) {
        (Ok(_), Some(payload)) | (Err(JoinError::Panicked(payload)), _) => Sys::resume(payload),
        (Ok(value), None) => value,
        (Err(error), _) => refuse(&error),
    }
}

fn shield_join<T>(handle: Handle<'_, T>) -> Result<T, JoinError> {
    shield(|| handle.join())
}

impl Scope<'static, 'static> {
    /// As `leave`, but what handles hold stays theirs: they keep the root alive.
    fn leave_root(&self) -> Option<PanicPayload> {
        wait_in_any_case(|| self.wait_for_last());
        self.members.with(|members| members.rest.panic.take())
    }
}

/// Stops the caller because the system has no stack for a fiber.
#[expect(clippy::panic, reason = "documented: a fiber that cannot be spawned stops its spawner")]
#[cold]
pub(crate) fn refuse(error: &dyn core::fmt::Display) -> ! {
    panic!("no fiber was spawned: {error}")
}
