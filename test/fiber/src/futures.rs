//! Futures: run by fibers and threads, and at channels, beside both, on an executor of their own.
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::task::Wake;
use alloc::vec::Vec;
use core::pin::{Pin, pin};
use core::sync::atomic::{AtomicUsize, Ordering};
use core::task::{Context, Poll, Waker};
use core::time::Duration;

use fiber::channel::{Receiver, RecvError, Select, SendError, Sender, TryRecvError, after};
use fiber::channel::{bounded, unbounded};
use fiber::future::{block_on, sleep};
use fiber::sync::Mutex;
use fiber::{Cancelled, Instant, JoinError, Thread, nursery, oneshot, shield, spawn, yield_now};

use crate::{runtime, scaled, settle};

const SHORT: Duration = Duration::from_millis(2);

/// An executor in small: what is woken comes to its channel.
struct Executor {
    tx: Sender<Arc<Job>>,
    rx: Receiver<Arc<Job>>,
    live: usize,
}

struct Job {
    future: Mutex<Option<Pin<Box<dyn Future<Output = ()> + Send>>>>,
    queue: Sender<Arc<Job>>,
}

impl Wake for Job {
    fn wake(self: Arc<Self>) {
        let queue = self.queue.clone();
        let _ = shield(|| queue.send(self));
    }
}

impl Executor {
    fn new() -> Self {
        let (tx, rx) = unbounded();
        Self { tx, rx, live: 0 }
    }

    fn add(&mut self, future: impl Future<Output = ()> + Send + 'static) {
        self.live += 1;
        let future: Pin<Box<dyn Future<Output = ()> + Send>> = Box::pin(future);
        Arc::new(Job { future: Mutex::new(Some(future)), queue: self.tx.clone() }).wake();
    }

    /// Polls what is woken until all futures have ended.
    fn run(mut self) {
        while self.live > 0 {
            let job = self.rx.recv().unwrap();
            let waker = Waker::from(job.clone());
            let mut future = job.future.lock();
            if let Some(polled) = &mut *future
                && polled.as_mut().poll(&mut Context::from_waker(&waker)).is_ready()
            {
                *future = None;
                self.live -= 1;
            }
        }
    }
}

/// Counts how often it was woken.
#[derive(Default)]
struct Wakes(AtomicUsize);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

fn poll<F: Future>(future: Pin<&mut F>, wakes: &Arc<Wakes>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(&Waker::from(wakes.clone())))
}

/// Counts its drops.
#[derive(Debug)]
struct Counted<'a>(&'a AtomicUsize);

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

pub fn a_fiber_runs_a_future_and_others_go_on() {
    runtime(1).run(|| {
        let (tx, rx) = bounded(0);
        let others = AtomicUsize::new(0);
        nursery(|n| {
            n.spawn(|| {
                // The only worker is free for this one.
                others.fetch_add(1, Ordering::SeqCst);
                tx.send(7).unwrap();
            });
            assert_eq!(block_on(async { rx.recv_async().await.map(|v| v + 1) }), Ok(Ok(8)));
        });
        assert_eq!(others.load(Ordering::SeqCst), 1);
        assert_eq!(block_on(async { 1 }), Ok(1), "ready at once");
    });
}

pub fn a_thread_runs_a_future() {
    let (tx, rx) = bounded(1);
    let (back, answers) = bounded(0);
    let thread = Thread::spawn("runs a future", move || {
        let sum = block_on(async {
            let mut sum = 0;
            while let Ok(value) = rx.recv_async().await {
                sum += value;
            }
            back.send_async(sum).await
        });
        assert_eq!(sum, Ok(Ok(())));
    });
    runtime(2).run(move || {
        (1..=100).for_each(|value| tx.send(value).unwrap());
        drop(tx);
        assert_eq!(answers.recv(), Ok(5050));
    });
    thread.unwrap().join();
}

pub fn a_cancelled_fiber_drops_the_future_it_runs() {
    for workers in [1, 3] {
        let runtime = runtime(workers);
        runtime.run(|| {
            let (tx, rx) = bounded::<u32>(0);
            let drops = AtomicUsize::new(0);
            nursery(|n| {
                let waits = n.spawn(|| {
                    let held = Counted(&drops);
                    let ended = block_on(async {
                        let _held = held;
                        rx.recv_async().await
                    });
                    assert_eq!(drops.load(Ordering::SeqCst), 1, "the future is gone");
                    // It stays cancelled, and within a shield nothing of it is seen.
                    let (back, later) = oneshot::channel();
                    back.send(3).unwrap();
                    let ready = block_on(later.recv_async());
                    let shielded = shield(|| block_on(sleep(SHORT)));
                    (ended, block_on(sleep(SHORT)), ready, shielded)
                });
                settle(&runtime);
                waits.cancel();
                let ended = waits.join().unwrap();
                assert_eq!(ended, (Err(Cancelled), Err(Cancelled), Ok(Ok(3)), Ok(Ok(()))));
            });
            assert!(tx.try_send(1).is_err(), "nobody waits any more");
        });
    }
}

pub fn a_future_that_never_waits_lets_others_run() {
    runtime(1).run(|| {
        let (tx, rx) = unbounded();
        let has_run = AtomicUsize::new(0);
        nursery(|n| {
            n.spawn(|| has_run.store(1, Ordering::SeqCst));
            let count = block_on(async {
                let mut count = 0;
                while has_run.load(Ordering::SeqCst) == 0 && count < 10_000 {
                    tx.send_async(count).await.unwrap();
                    assert_eq!(rx.recv_async().await, Ok(count));
                    count += 1;
                }
                count
            });
            assert!(count.unwrap() <= 128, "{count:?}");
        });
    });
}

pub fn futures_and_fibers_wait_in_turn() {
    let runtime = runtime(1);
    runtime.run(|| {
        let (tx, rx) = bounded(0);
        let wakes = Arc::new(Wakes::default());
        nursery(|n| {
            let mut first = pin!(rx.recv_async());
            assert!(poll(first.as_mut(), &wakes).is_pending());
            let second = n.spawn(|| rx.recv());
            settle(&runtime);
            let mut third = pin!(rx.recv_async());
            assert!(poll(third.as_mut(), &wakes).is_pending());
            // Polled again it keeps its place.
            assert!(poll(first.as_mut(), &wakes).is_pending());
            (1..=3).for_each(|value| tx.try_send(value).unwrap());
            assert_eq!(wakes.0.load(Ordering::SeqCst), 2, "each is woken once");
            assert_eq!(poll(third.as_mut(), &wakes), Poll::Ready(Ok(3)));
            assert_eq!(second.join().unwrap(), Ok(2));
            assert_eq!(poll(first.as_mut(), &wakes), Poll::Ready(Ok(1)));
        });
        // The same for those who send.
        nursery(|n| {
            let mut first = pin!(tx.send_async(1));
            assert!(poll(first.as_mut(), &wakes).is_pending());
            let second = n.spawn(|| tx.send(2));
            settle(&runtime);
            let mut third = pin!(tx.send_async(3));
            assert!(poll(third.as_mut(), &wakes).is_pending());
            assert!((1..=3).all(|value| rx.recv() == Ok(value)));
            assert_eq!(second.join().unwrap(), Ok(()));
            assert_eq!(poll(first.as_mut(), &wakes), Poll::Ready(Ok(())));
            assert_eq!(poll(third.as_mut(), &wakes), Poll::Ready(Ok(())));
        });
    });
}

pub fn a_dropped_receive_gives_its_value_back() {
    let wakes = Arc::new(Wakes::default());
    for capacity in [Some(0), Some(2), None] {
        let (tx, rx) = capacity.map_or_else(unbounded, bounded);
        // Never polled, and polled without a value: nothing to give.
        drop(rx.recv_async());
        {
            let mut future = pin!(rx.recv_async());
            assert!(poll(future.as_mut(), &wakes).is_pending());
        }
        assert_eq!(tx.try_send(1).is_ok(), capacity != Some(0), "nobody waits any more");
        let _ = rx.try_recv();
        // Handed over, and dropped before the next poll: it comes before what came later.
        {
            let mut future = pin!(rx.recv_async());
            assert!(poll(future.as_mut(), &wakes).is_pending());
            tx.try_send(1).unwrap();
            if capacity != Some(0) {
                tx.try_send(2).unwrap();
            }
        }
        assert_eq!(rx.try_recv(), Ok(1), "back at the front");
        while rx.try_recv().is_ok() {}
        // Or it goes to whoever waits, closed or not: it is not drained while a future has one.
        let mut other = pin!(rx.recv_async());
        let mut future = Box::pin(rx.recv_async());
        assert!(poll(future.as_mut(), &wakes).is_pending());
        assert!(poll(other.as_mut(), &wakes).is_pending());
        tx.try_send(3).unwrap();
        drop(tx);
        assert!(poll(other.as_mut(), &wakes).is_pending());
        drop(future);
        assert_eq!(poll(other.as_mut(), &wakes), Poll::Ready(Ok(3)));
        // And it is when the future has taken it.
        assert_eq!(block_on(rx.recv_async()), Ok(Err(RecvError::Disconnected)));
    }
}

pub fn a_dropped_send_gives_up_its_place() {
    let drops = AtomicUsize::new(0);
    let wakes = Arc::new(Wakes::default());
    let (tx, rx) = bounded(1);
    drop(tx.send_async(Counted(&drops)));
    assert_eq!(drops.load(Ordering::SeqCst), 1, "never polled");
    tx.try_send(Counted(&drops)).unwrap();
    {
        let mut first = Box::pin(tx.send_async(Counted(&drops)));
        let mut second = pin!(tx.send_async(Counted(&drops)));
        assert!(poll(first.as_mut(), &wakes).is_pending());
        assert!(poll(second.as_mut(), &wakes).is_pending());
        drop(first);
        assert_eq!(drops.load(Ordering::SeqCst), 2, "not sent");
        drop(rx.try_recv().unwrap());
        // Its place is the other's, which has sent although it is dropped before it could know.
        assert_eq!(wakes.0.load(Ordering::SeqCst), 1);
    }
    assert_eq!((drops.load(Ordering::SeqCst), rx.len()), (3, 1));
    drop(rx.try_recv().unwrap());
    assert_eq!(rx.try_recv().err(), Some(TryRecvError::Empty));
    // The last receiver goes: the value comes back.
    tx.try_send(Counted(&drops)).unwrap();
    let mut refused = pin!(tx.send_async(Counted(&drops)));
    assert!(poll(refused.as_mut(), &wakes).is_pending());
    drop(rx);
    let Poll::Ready(Err(SendError::Disconnected(back))) = poll(refused.as_mut(), &wakes) else {
        panic!("not refused");
    };
    drop(back);
    assert_eq!(drops.load(Ordering::SeqCst), 6, "each once");
}

pub fn futures_meet_selects_at_a_rendezvous() {
    runtime(2).run(|| {
        let (tx, rx) = bounded::<u32>(0);
        let wakes = Arc::new(Wakes::default());
        // A select that sends finds a future, and one of them is dropped before the value is there.
        for is_dropped in [false, true] {
            let mut future = Box::pin(rx.recv_async());
            assert!(poll(future.as_mut(), &wakes).is_pending());
            let mut set = Select::new();
            set.send(&tx);
            let chosen = set.try_select().unwrap();
            assert!(poll(future.as_mut(), &wakes).is_pending(), "on its way");
            if is_dropped {
                drop(future);
                chosen.send(&tx, 5).unwrap();
                assert_eq!(rx.try_recv(), Ok(5), "anybody's");
            } else {
                chosen.send(&tx, 4).unwrap();
                assert_eq!(poll(future.as_mut(), &wakes), Poll::Ready(Ok(4)));
            }
        }
        // Dropped, and no receiver is left: the value comes back.
        let (alone, last) = bounded::<u32>(0);
        let mut future = Box::pin(last.recv_async());
        assert!(poll(future.as_mut(), &wakes).is_pending());
        let mut set = Select::new();
        set.send(&alone);
        let chosen = set.try_select().unwrap();
        drop(future);
        drop(last);
        assert_eq!(chosen.send(&alone, 8), Err(SendError::Disconnected(8)));
        // The select takes its commitment back: the future waits on.
        let mut future = pin!(rx.recv_async());
        assert!(poll(future.as_mut(), &wakes).is_pending());
        let mut set = Select::new();
        set.send(&tx);
        drop(set.try_select().unwrap());
        assert!(poll(future.as_mut(), &wakes).is_pending());
        tx.try_send(6).unwrap();
        assert_eq!(poll(future.as_mut(), &wakes), Poll::Ready(Ok(6)));
        // A select that receives finds a future that sends.
        let mut sent = pin!(tx.send_async(7));
        assert!(poll(sent.as_mut(), &wakes).is_pending());
        let mut set = Select::new();
        set.recv(&rx);
        assert_eq!(set.select().unwrap().recv(&rx), Ok(7));
        assert_eq!(poll(sent.as_mut(), &wakes), Poll::Ready(Ok(())));
    });
}

pub fn sleeps_are_futures() {
    let runtime = runtime(2);
    runtime.run(|| {
        let began = Instant::now();
        assert_eq!(block_on(sleep(SHORT)), Ok(Ok(())));
        assert!(began.elapsed() >= SHORT, "early");
        assert!(block_on(after(SHORT).recv_async()).unwrap().is_ok());
        // Dropped while it is under way.
        let wakes = Arc::new(Wakes::default());
        let mut long = Box::pin(sleep(Duration::from_secs(1000)));
        assert!(poll(long.as_mut(), &wakes).is_pending());
        drop(long);
    });
    assert_eq!(runtime.stats().timers, 0, "a timer is left");
    // Elsewhere a runtime is named; when it ends, so does the sleep.
    assert_eq!(block_on(runtime.sleep(SHORT)), Ok(Ok(())));
    let wakes = Arc::new(Wakes::default());
    let mut cut = pin!(runtime.sleep(Duration::from_secs(1000)));
    let mut late = pin!(runtime.sleep(Duration::from_secs(1000)));
    assert!(poll(cut.as_mut(), &wakes).is_pending());
    drop(runtime);
    assert_eq!(wakes.0.load(Ordering::SeqCst), 1);
    assert_eq!(poll(cut.as_mut(), &wakes), Poll::Ready(Err(Cancelled)));
    assert_eq!(poll(late.as_mut(), &wakes), Poll::Ready(Err(Cancelled)));
}

/// Wakes with as many operations as a fiber has in a row, and more.
struct Rings(Sender<()>);

impl Wake for Rings {
    fn wake(self: Arc<Self>) {
        for _ in 0..RINGS {
            self.0.try_send(()).unwrap();
        }
    }
}

const RINGS: usize = 200;

pub fn a_waker_may_use_channels() {
    // Its only worker calls the wakers between two fibers: none of these has done what they do.
    let runtime = Arc::new(runtime(1));
    let (tx, rx) = unbounded();
    let rings = Waker::from(Arc::new(Rings(tx)));
    let (stop, stopped) = bounded::<()>(0);
    let busy = {
        let runtime = runtime.clone();
        let yields = move || {
            let yields = || {
                while stopped.try_recv() == Err(TryRecvError::Empty) {
                    let _ = yield_now();
                }
            };
            nursery(|n| (0..3).for_each(|_| drop(n.spawn(yields))));
        };
        Thread::spawn("yields", move || runtime.run(yields)).unwrap()
    };
    let mut context = Context::from_waker(&rings);
    let mut sleeps = Vec::new();
    while sleeps.len() < 8 {
        let mut sleep = Box::pin(runtime.sleep(SHORT));
        // One that is over by then has nobody to wake.
        if sleep.as_mut().poll(&mut context).is_pending() {
            sleeps.push(sleep);
        }
    }
    (0..sleeps.len() * RINGS).for_each(|_| rx.recv().unwrap());
    for sleep in &mut sleeps {
        assert_eq!(sleep.as_mut().poll(&mut context), Poll::Ready(Ok(())));
    }
    drop(stop);
    busy.join();
}

pub fn a_fibers_end_is_a_future() {
    let runtime = runtime(2);
    runtime.run(|| {
        let drops = AtomicUsize::new(0);
        let wakes = Arc::new(Wakes::default());
        let (go, wait) = bounded::<()>(0);
        nursery(|n| {
            let handle = n.spawn(|| {
                let _ = wait.recv();
                Counted(&drops)
            });
            let mut end = pin!(handle.into_future());
            assert!(poll(end.as_mut(), &wakes).is_pending());
            go.send(()).unwrap();
            assert!(matches!(block_on(end), Ok(Ok(_))));
            // Over before it is asked; cancelled before it ran.
            let done = n.spawn(|| 5);
            settle(&runtime);
            assert!(matches!(block_on(done.into_future()), Ok(Ok(5))));
            // Dropped before the end, and after it.
            for is_late in [false, true] {
                let before = wakes.0.load(Ordering::SeqCst);
                let handle = n.spawn(|| {
                    let _ = wait.recv();
                    Counted(&drops)
                });
                let mut end = Box::pin(handle.into_future());
                assert!(poll(end.as_mut(), &wakes).is_pending());
                if is_late {
                    go.send(()).unwrap();
                    while wakes.0.load(Ordering::SeqCst) == before {
                        let _ = yield_now();
                    }
                    drop(end);
                } else {
                    drop(end);
                    go.send(()).unwrap();
                }
            }
            n.cancel();
            let void = n.spawn(|| 6);
            assert!(matches!(block_on(void.into_future()), Ok(Err(JoinError::Cancelled))));
        });
        assert_eq!(drops.load(Ordering::SeqCst), 3, "each result is dropped once");
    });
}

pub fn a_oneshot_is_a_future() {
    let wakes = Arc::new(Wakes::default());
    let (tx, rx) = oneshot::channel();
    let mut future = pin!(rx.recv_async());
    assert!(poll(future.as_mut(), &wakes).is_pending());
    tx.send(1).unwrap();
    assert_eq!(wakes.0.load(Ordering::SeqCst), 1);
    assert_eq!(poll(future.as_mut(), &wakes), Poll::Ready(Ok(1)));
    let (tx, rx) = oneshot::channel::<u32>();
    let mut future = Box::pin(rx.recv_async());
    assert!(poll(future.as_mut(), &wakes).is_pending());
    drop(future);
    assert_eq!(tx.send(2), Err(2), "nobody will receive it");
    let (tx, rx) = oneshot::channel::<u32>();
    drop(tx);
    assert_eq!(block_on(rx.recv_async()), Ok(Err(RecvError::Disconnected)));
}

/// Is polled again when others have been.
async fn take_turns() {
    let mut is_first = true;
    core::future::poll_fn(|context| {
        context.waker().wake_by_ref();
        if core::mem::take(&mut is_first) { Poll::Pending } else { Poll::Ready(()) }
    })
    .await;
}

/// Receives until the channel is closed; every other receive is dropped after its first poll.
async fn receive(rx: Receiver<u32>) -> u64 {
    let (mut sum, mut is_dropped) = (0, false);
    loop {
        is_dropped = !is_dropped;
        let mut received = Box::pin(rx.recv_async());
        let got = if is_dropped {
            let first = |context: &mut Context<'_>| Poll::Ready(received.as_mut().poll(context));
            core::future::poll_fn(first).await
        } else {
            Poll::Ready(received.await)
        };
        match got {
            Poll::Ready(Ok(value)) => sum += u64::from(value),
            Poll::Ready(Err(_)) => return sum,
            // Dropped when others have had their turn: by then it may have a value in hand.
            Poll::Pending => take_turns().await,
        }
    }
}

pub fn an_executor_fibers_and_threads_share_channels() {
    let count = scaled(2000, 100);
    let each: u64 = (1..=u64::from(count)).sum();
    for capacity in [0, 1, 16] {
        let (tx, rx) = bounded(capacity);
        let (sums, results) = unbounded();
        let mut executor = Executor::new();
        for _ in 0..2 {
            let (tx, rx, sums) = (tx.clone(), rx.clone(), sums.clone());
            executor.add(async move {
                for value in 1..=count {
                    tx.send_async(value).await.unwrap();
                }
            });
            executor.add(async move { sums.send_async(receive(rx).await).await.unwrap() });
        }
        let executes = Thread::spawn("executes", move || executor.run()).unwrap();
        let sends = {
            let tx = tx.clone();
            let run = move || (1..=count).for_each(|value| tx.send(value).unwrap());
            Thread::spawn("sends", run).unwrap()
        };
        runtime(2).run(move || {
            for _ in 0..2 {
                let (tx, rx, sums) = (tx.clone(), rx.clone(), sums.clone());
                drop(spawn(move || (1..=count).for_each(|value| tx.send(value).unwrap())));
                drop(spawn(move || sums.send(rx.iter().map(u64::from).sum()).unwrap()));
            }
        });
        sends.join();
        executes.join();
        assert_eq!(results.iter().sum::<u64>(), 5 * each, "capacity {capacity}");
    }
}
