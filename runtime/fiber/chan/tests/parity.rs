//! What somebody expects who knows crossbeam-channel, beyond what the operations do.
use std::iter::FusedIterator;
use std::panic::{AssertUnwindSafe, RefUnwindSafe, UnwindSafe, catch_unwind};
use std::rc::Rc;

use fiber_chan::{
    IntoIter, Iter, ReadyTimeoutError, Receiver, RecvError, RecvTimeoutError, Select,
    SelectTimeoutError, SendError, SendTimeoutError, Sender, TryReadyError, TryRecvError,
    TrySelectError, TrySendError, bounded, never, select, unbounded,
};
use fiber_nursery::nursery;
use fiber_rt::Runtime;

#[test]
fn ends_sets_and_iterators_have_their_traits() {
    fn unwinds<T: UnwindSafe + RefUnwindSafe>() {}
    fn shared<T: Send + Sync>() {}
    fn fused<T: FusedIterator>() {}
    fn error<T: std::error::Error>() {}
    unwinds::<Sender<*mut u8>>();
    unwinds::<Receiver<*mut u8>>();
    shared::<Sender<u8>>();
    shared::<Receiver<u8>>();
    shared::<Select<'_>>();
    fused::<Iter<'_, u8>>();
    fused::<IntoIter<u8>>();
    error::<SendError<Rc<u8>>>();
    error::<TrySendError<Rc<u8>>>();
    error::<SendTimeoutError<Rc<u8>>>();
    error::<RecvError>();
    error::<TryRecvError>();
    error::<RecvTimeoutError>();
    error::<TrySelectError>();
    error::<SelectTimeoutError>();
    error::<TryReadyError>();
    error::<ReadyTimeoutError>();
    // A constant, as there.
    const NEVER: Receiver<u8> = never();
    let _ = NEVER;
}

#[test]
fn errors_convert_and_answer() {
    let (closed, cancelled) = (SendError::Disconnected(1), SendError::Cancelled(1));
    assert_eq!(SendTimeoutError::from(closed), SendTimeoutError::Disconnected(1));
    assert_eq!(SendTimeoutError::from(cancelled), SendTimeoutError::Cancelled(1));
    assert_eq!(TrySendError::from(closed), TrySendError::Disconnected(1));
    assert_eq!(TrySendError::from(cancelled), TrySendError::Full(1));
    let (gone, ended) = (RecvError::Disconnected, RecvError::Cancelled);
    assert_eq!(RecvTimeoutError::from(gone), RecvTimeoutError::Disconnected);
    assert_eq!(RecvTimeoutError::from(ended), RecvTimeoutError::Cancelled);
    assert_eq!(TryRecvError::from(gone), TryRecvError::Disconnected);
    assert_eq!(TryRecvError::from(ended), TryRecvError::Empty);
    assert!(closed.is_disconnected() && cancelled.is_cancelled() && gone.is_disconnected());
    assert!(TrySendError::Full(1).is_full() && !TrySendError::Full(1).is_disconnected());
    assert!(
        SendTimeoutError::Timeout(1).is_timeout() && !SendTimeoutError::Timeout(1).is_cancelled()
    );
    assert!(TryRecvError::Empty.is_empty() && TryRecvError::Disconnected.is_disconnected());
    assert!(RecvTimeoutError::Timeout.is_timeout() && RecvTimeoutError::Cancelled.is_cancelled());
    assert!(ended.is_cancelled() && ended.to_string().contains("cancelled"));
}

#[test]
fn never_holds_the_none_it_can() {
    let idle = never::<u8>();
    assert_eq!((idle.capacity(), idle.len()), (Some(0), 0));
    assert!(idle.is_empty() && idle.is_full());
}

/// An iterator that ended with the cancellation of its fiber stays over when there is something again.
#[test]
fn an_iterator_that_is_over_stays_so() {
    Runtime::builder().workers(1).build().unwrap().run(|| {
        let (tx, rx) = unbounded();
        nursery(|n| {
            let fiber = n.spawn(|| {
                let mut values = rx.iter();
                assert_eq!(values.next(), None);
                tx.send(1).unwrap();
                assert_eq!(values.next(), None);
                assert_eq!(rx.try_recv(), Ok(1));
            });
            fiber.cancel();
            let _ = fiber.join();
        });
    });
}

fn no_value() -> u8 {
    panic!("no value")
}

/// The expression of a send panics: its place is free again, and who was to receive goes on waiting.
#[test]
fn a_send_whose_expression_panics_is_undone() {
    Runtime::builder().workers(1).build().unwrap().run(|| {
        for capacity in [0, 1] {
            let ((tx, rx), (idle, _keep)) = (bounded::<u8>(capacity), bounded::<u8>(0));
            nursery(|n| {
                let receiver = n.spawn(|| rx.recv());
                let panics = || {
                    select! {
                        send(tx, no_value()) -> _ => unreachable!(),
                        send(idle, 0) -> _ => unreachable!(),
                        cancelled => unreachable!(),
                    }
                };
                assert!(catch_unwind(AssertUnwindSafe(panics)).is_err());
                tx.send(3).unwrap();
                assert_eq!(receiver.join().unwrap(), Ok(3));
                assert!(capacity == 0 || tx.try_send(4).is_ok(), "its place is kept");
            });
        }
    });
}

#[test]
#[should_panic(expected = "no operation has the index 1")]
fn an_operation_that_was_never_added_cannot_be_removed() {
    let (_tx, rx) = bounded::<u8>(1);
    let mut set = Select::new();
    set.recv(&rx);
    set.remove(1);
}

#[test]
#[should_panic(expected = "no operation has the index 0")]
fn an_operation_is_removed_once() {
    let (_tx, rx) = bounded::<u8>(1);
    let mut set = Select::new();
    set.recv(&rx);
    set.remove(0);
    set.remove(0);
}

#[test]
#[should_panic(expected = "completed with the channel it was added with")]
fn an_operation_is_completed_with_its_own_channel() {
    let ((tx, rx), (_keep, other)) = (bounded(1), bounded::<u8>(1));
    tx.send(1u8).unwrap();
    let mut set = Select::new();
    set.recv(&rx);
    let _ = set.select().unwrap().recv(&other);
}
