//! Contexts that are coroutines: what the contract of a context promises, and that no stack is lost.

use smp_ring::Context;
use smp_ring_testing::{CoroutineContext, CoroutineStack, InUse};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

fn context() -> &'static CoroutineContext {
    Box::leak(Box::new(CoroutineContext::new()))
}

fn stack() -> CoroutineStack {
    CoroutineStack::new().unwrap()
}

/// A body that counts its rounds, and holds `count` as long as it is there.
fn counting(context: &'static CoroutineContext, count: &Rc<Cell<u32>>) {
    let count = Rc::clone(count);
    let body = Box::new(move || {
        loop {
            assert!(context.runs_here(), "what runs in a context is there");
            count.set(count.get() + 1);
            CoroutineContext::suspend();
        }
    });
    assert!(context.prepare(stack(), body).is_ok());
}

#[test]
fn a_context_goes_on_where_it_was_suspended_and_ends_with_its_body() {
    let (one, count) = (context(), Rc::new(Cell::new(0)));
    assert_eq!(one.take_apart().err(), Some(InUse), "nothing to take apart");
    counting(one, &count);
    assert_eq!(count.get(), 0, "nothing runs before it is resumed");
    assert!(!one.runs_here());
    (1..=3).for_each(|round| {
        one.resume();
        assert_eq!(count.get(), round);
    });
    let refused = one.prepare(stack(), Box::new(|| unreachable!()));
    assert!(matches!(refused, Err((_, InUse))), "a context has one stack");
    assert_eq!(Rc::strong_count(&count), 2);
    assert!(matches!(one.take_apart(), Ok(Some(_))));
    assert_eq!(Rc::strong_count(&count), 1, "what the body captured is dropped");
}

#[test]
fn what_lies_on_the_stack_is_abandoned() {
    let (one, count) = (context(), Rc::new(Cell::new(0)));
    let held = Rc::clone(&count);
    let body = Box::new(move || {
        let _on_the_stack = Rc::clone(&held);
        loop {
            CoroutineContext::suspend();
        }
    });
    assert!(one.prepare(stack(), body).is_ok());
    one.resume();
    assert_eq!(Rc::strong_count(&count), 3);
    assert!(matches!(one.take_apart(), Ok(Some(_))));
    assert_eq!(Rc::strong_count(&count), 2);
}

#[test]
fn a_context_that_never_ran_drops_its_body() {
    let (one, count) = (context(), Rc::new(Cell::new(0)));
    counting(one, &count);
    assert!(matches!(one.take_apart(), Ok(Some(_))));
    assert_eq!((Rc::strong_count(&count), count.get()), (1, 0));
}

#[test]
fn one_context_takes_another_apart_and_none_itself() {
    let (one, other, count) = (context(), context(), Rc::new(Cell::new(0)));
    counting(other, &count);
    other.resume();
    let body = Box::new(move || {
        assert_eq!(one.take_apart().err(), Some(InUse), "it runs");
        assert!(matches!(other.take_apart(), Ok(Some(_))));
        assert!(one.runs_here() && !other.runs_here());
        loop {
            CoroutineContext::suspend();
        }
    });
    assert!(one.prepare(stack(), body).is_ok());
    one.resume();
    assert_eq!(Rc::strong_count(&count), 1);
    assert!(one.take_apart().is_ok());
}

#[test]
fn a_panic_comes_out_of_the_resumption() {
    let one = context();
    assert!(one.prepare(stack(), Box::new(|| panic!("on purpose"))).is_ok());
    let unwound = catch_unwind(AssertUnwindSafe(|| one.resume())).unwrap_err();
    assert_eq!(unwound.downcast_ref(), Some(&"on purpose"));
    assert!(matches!(one.take_apart(), Ok(Some(_))));
}

#[test]
fn stacks_are_used_again() {
    let one = context();
    for _ in 0..100 {
        counting(one, &Rc::new(Cell::new(0)));
        one.resume();
        drop(one.take_apart());
        assert_eq!(CoroutineStack::kept(), 1);
    }
}

#[test]
fn another_thread_of_the_host_is_refused() {
    let one = context();
    counting(one, &Rc::new(Cell::new(0)));
    let refused = std::thread::spawn(|| one.resume()).join().unwrap_err();
    let said = refused.downcast_ref::<&str>().unwrap();
    assert!(said.ends_with("the thread of the host that made it, and no other"), "{said}");
}
