//! SchedulerControl: shares and accounts of any thread, and how busy CPUs are.
//!
//! It sets parameters; nothing here is asked when a CPU chooses a thread. The least weight is 1, so no call of it keeps
//! a thread from ever running.

use crate::refuse;
use crate::scheduling_policy::{class_of, named, weight_up_to};
use abi_types::{Pid, ThreadRef, Tid};
use core_sched_policy::{Share, Weight};
use core_thread::Page;
use kernel_dispatch::preemption_point;
use kernel_ops::object::Calling;
use kernel_process::Machine;
use kernel_process::scheduling::{self, Account, Load};
use schema::scheduler_control::{
    AdjustContextParams, AdjustContextResults, BindContextParams, BindContextResults, CpuLoad,
    CreateContextParams, CreateContextResults, GrantLeaseParams, GrantLeaseResults, LoadsParams,
    LoadsResults, RevokeContextParams, RevokeContextResults, RevokeLeaseParams, RevokeLeaseResults,
    Server, SetLatencyClassParams, SetLatencyClassResults, SetWeightParams, SetWeightResults,
    SnapshotParams, SnapshotResults, ThreadAccount, ThreadName, ThreadsParams, ThreadsResults,
};
use schema::scheduler_control_capnp::ControlResult;
use schema::scheduling_policy_capnp::LatencyClass as Named;
use schema_wire::{Answer, Element, ExceptionKind, List, NoResult};

/// What it needs of the kernel.
pub trait Host {
    /// Gives the thread of that name another share, made of the one that was last asked for; `false` if it is gone.
    fn set_share(&mut self, name: ThreadRef, change: &dyn Fn(Share) -> Share) -> bool;
    /// What the thread of that name has counted; `None` if it is gone.
    fn account(&self, name: ThreadRef) -> Option<Account>;
    /// Thread records that there are; one that comes meanwhile may be missed.
    fn records(&self) -> u32;
    /// The name of the thread in the record of that number.
    fn name_at(&self, record: u32) -> Option<ThreadRef>;
    /// How busy a CPU is; `None` if there is no such CPU.
    fn load(&self, cpu: u32) -> Option<Load>;
    /// Lets others run who are due.
    fn pause(&self);
    /// Counts what became of a request for another share.
    fn judged(&self, is_admitted: bool);
}

/// The machine, in a call.
pub struct All<'c, 'r, M: Machine>(pub &'c mut Calling<'r, M>);

impl<M: Machine> Host for All<'_, '_, M> {
    fn set_share(&mut self, name: ThreadRef, change: &dyn Fn(Share) -> Share) -> bool {
        scheduling::set_share(self.0.caller.m, name, change)
    }

    fn account(&self, name: ThreadRef) -> Option<Account> {
        scheduling::account(self.0.caller.m, name)
    }

    fn records(&self) -> u32 {
        self.0.caller.m.records().threads().len() as u32
    }

    fn name_at(&self, record: u32) -> Option<ThreadRef> {
        scheduling::name_at(self.0.caller.m, record)
    }

    fn load(&self, cpu: u32) -> Option<Load> {
        scheduling::load(self.0.caller.m, cpu)
    }

    fn pause(&self) {
        preemption_point(self.0.caller.m);
    }

    fn judged(&self, is_admitted: bool) {
        self.0.caller.m.policy_judged(is_admitted);
    }
}

/// Accounts in one answer at most: as many as are written into a message within a section of kernel code.
const ACCOUNTS_PER_CALL: usize = 16;
/// Loads in one answer at most: as above.
const LOADS_PER_CALL: usize = 32;
/// Records looked at between two preemption points, when each is a name that moves all that were found.
const RECORDS_PER_PREEMPTION_POINT: u32 = 64;
/// Accounts read between two preemption points, each under a queue's lock.
const ACCOUNTS_PER_PREEMPTION_POINT: usize = 8;

/// The server, with room for an answer.
#[derive(Debug)]
pub struct SchedulerControl<'h, H> {
    host: &'h mut H,
    accounts: [ThreadAccount; ACCOUNTS_PER_CALL],
    loads: [CpuLoad; LOADS_PER_CALL],
}

const NO_ACCOUNT: ThreadAccount = ThreadAccount {
    pid: 0,
    process_generation: 0,
    tid: 0,
    thread_generation: 0,
    weight: 0,
    class: Named::Interactive,
    cpu: 0,
    runnable: false,
    runtime_ns: 0,
    virtual_runtime_ns: 0,
    voluntary_blocks: 0,
    preemptions: 0,
    runnable_accumulated_ns: 0,
    context_id: 0,
};

const NO_LOAD: CpuLoad =
    CpuLoad { cpu: 0, runnable: 0, idle_ns: 0, promised_permille: 0, isolated: false, lease_id: 0 };

const fn reference(name: ThreadName) -> ThreadRef {
    ThreadRef {
        pid: Pid(name.pid),
        process_generation: name.process_generation,
        tid: Tid(name.tid),
        thread_generation: name.thread_generation,
    }
}

/// A thread's account as the schema has it.
fn told(name: ThreadRef, account: &Account) -> ThreadAccount {
    let counted = account.counted;
    ThreadAccount {
        pid: name.pid.0,
        process_generation: name.process_generation,
        tid: name.tid.0,
        thread_generation: name.thread_generation,
        weight: counted.share.weight().get(),
        class: named(counted.share.class()),
        cpu: account.cpu.index() as u16,
        runnable: account.is_runnable,
        runtime_ns: counted.runtime_ns,
        virtual_runtime_ns: counted.virtual_runtime_ns,
        voluntary_blocks: counted.voluntary_blocks,
        preemptions: counted.preemptions,
        runnable_accumulated_ns: counted.runnable_accumulated_ns,
        context_id: 0,
    }
}

/// How many elements a list has room for beside the fixed part of its message.
fn fitting<'a, E: Element<'a>>(room: usize, most: usize) -> Answer<usize> {
    let stride = E::LAYOUT.stride();
    let count = room.saturating_sub(E::LAYOUT.list_bytes(1) - stride) / stride;
    match count.min(most) {
        0 => Err(refuse(
            ExceptionKind::InvalidArgument,
            "the results need room for one element of the list at least",
        )),
        count => Ok(count),
    }
}

const fn result_of(is_there: bool) -> ControlResult {
    if is_there { ControlResult::Ok } else { ControlResult::StaleGeneration }
}

fn no_contexts() -> NoResult {
    refuse(
        ExceptionKind::Unimplemented,
        "this kernel has no scheduling contexts; weights and classes divide the CPUs",
    )
}

fn no_leases() -> NoResult {
    refuse(
        ExceptionKind::Unimplemented,
        "this kernel has no CPU leases; every CPU is shared by weight",
    )
}

impl<'h, H: Host> SchedulerControl<'h, H> {
    /// The server of one call.
    pub fn new(host: &'h mut H) -> Self {
        Self { host, accounts: [NO_ACCOUNT; ACCOUNTS_PER_CALL], loads: [NO_LOAD; LOADS_PER_CALL] }
    }

    /// Another share for a thread, which is asked for rightly.
    fn change(&mut self, name: ThreadName, change: &dyn Fn(Share) -> Share) -> ControlResult {
        let is_there = self.host.set_share(reference(name), change);
        self.host.judged(is_there);
        result_of(is_there)
    }

    /// The names that come after one, `limit` of them at most. One look at every record: what it takes does not depend
    /// on how many pages were read before.
    fn page_after(&self, after: ThreadRef, limit: usize) -> Page<ACCOUNTS_PER_CALL> {
        let mut page = Page::after(after, limit);
        for record in 0..self.host.records() {
            if record % RECORDS_PER_PREEMPTION_POINT == RECORDS_PER_PREEMPTION_POINT - 1 {
                self.host.pause();
            }
            if let Some(name) = self.host.name_at(record) {
                page.offer(name);
            }
        }
        page
    }
}

impl<H: Host> Server for SchedulerControl<'_, H> {
    fn set_weight(&mut self, params: SetWeightParams) -> Answer<SetWeightResults> {
        let weight = weight_up_to(params.weight, Weight::MAX);
        let weight = weight.inspect_err(|_| self.host.judged(false))?;
        let result = self.change(params.thread, &|share| Share::new(weight, share.class()));
        Ok(SetWeightResults { result })
    }

    fn set_latency_class(
        &mut self,
        params: SetLatencyClassParams,
    ) -> Answer<SetLatencyClassResults> {
        let class = class_of(params.class);
        let result = self.change(params.thread, &|share| Share::new(share.weight(), class));
        Ok(SetLatencyClassResults { result })
    }

    fn snapshot(&mut self, params: SnapshotParams) -> Answer<SnapshotResults> {
        let name = reference(params.thread);
        let account = self.host.account(name);
        let result = result_of(account.is_some());
        let account = account.map_or(NO_ACCOUNT, |account| told(name, &account));
        Ok(SnapshotResults { result, account })
    }

    fn threads(&mut self, params: ThreadsParams, room: usize) -> Answer<ThreadsResults<'_>> {
        let limit = fitting::<ThreadAccount>(room, ACCOUNTS_PER_CALL)?;
        let page = self.page_after(reference(params.after), limit);
        let mut count = 0;
        for (number, name) in page.names().iter().enumerate() {
            if number % ACCOUNTS_PER_PREEMPTION_POINT == 0 {
                self.host.pause();
            }
            // It may have ended since it was found.
            let Some(account) = self.host.account(*name) else { continue };
            if let Some(place) = self.accounts.get_mut(count) {
                *place = told(*name, &account);
                count += 1;
            }
        }
        self.host.pause();
        let accounts = self.accounts.get(..count).unwrap_or_default();
        Ok(ThreadsResults { accounts: List::of(accounts), more: page.is_more() })
    }

    fn bind_context(&mut self, _: BindContextParams) -> Answer<BindContextResults> {
        Err(no_contexts())
    }

    fn adjust_context(&mut self, _: AdjustContextParams<'_>) -> Answer<AdjustContextResults> {
        Err(no_contexts())
    }

    fn revoke_context(&mut self, _: RevokeContextParams) -> Answer<RevokeContextResults> {
        Err(no_contexts())
    }

    fn create_context(&mut self, _: CreateContextParams<'_>) -> Answer<CreateContextResults> {
        Err(no_contexts())
    }

    fn grant_lease(&mut self, _: GrantLeaseParams<'_>) -> Answer<GrantLeaseResults> {
        Err(no_leases())
    }

    fn revoke_lease(&mut self, _: RevokeLeaseParams) -> Answer<RevokeLeaseResults> {
        Err(no_leases())
    }

    fn loads(&mut self, params: LoadsParams, room: usize) -> Answer<LoadsResults<'_>> {
        let limit = fitting::<CpuLoad>(room, LOADS_PER_CALL)?;
        let mut count = 0;
        let numbers = (params.first_cpu..=u32::MAX).take(limit);
        let there = numbers.map_while(|cpu| self.host.load(cpu).map(|load| (cpu, load)));
        for ((cpu, load), place) in there.zip(&mut self.loads) {
            *place = CpuLoad { cpu, runnable: load.runnable, idle_ns: load.idle_ns, ..NO_LOAD };
            count += 1;
        }
        let next = u32::try_from(count).ok().and_then(|count| params.first_cpu.checked_add(count));
        let more = next.is_some_and(|next| self.host.load(next).is_some());
        self.host.pause();
        let loads = self.loads.get(..count).unwrap_or_default();
        Ok(LoadsResults { loads: List::of(loads), more })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    extern crate std;
    use core::cell::Cell;
    use core_sched::{CpuId, Snapshot};
    use core_sched_policy::LatencyClass;
    use std::vec::Vec;

    /// Threads by record; some end when they are looked at.
    #[derive(Default)]
    struct Machine {
        threads: Vec<Option<(ThreadRef, Share)>>,
        cpus: u32,
        /// Its account is not to be had, although it was found.
        gone: Option<ThreadRef>,
        pauses: Cell<u32>,
        judged: Cell<(u32, u32)>,
    }

    fn name(pid: u32, tid: u32) -> ThreadRef {
        let (process_generation, thread_generation) = (2 * pid + 1, tid + 1);
        ThreadRef { pid: Pid(pid), process_generation, tid: Tid(tid), thread_generation }
    }

    fn wire(of: ThreadRef) -> ThreadName {
        ThreadName {
            pid: of.pid.0,
            process_generation: of.process_generation,
            tid: of.tid.0,
            thread_generation: of.thread_generation,
        }
    }

    /// Processes that took records in turns, so that the order of records is not that of names.
    fn machine(threads: u32, processes: u32) -> Machine {
        let thread = |record| {
            (record % 5 != 3).then(|| (name(record % processes, record), Share::default()))
        };
        Machine { threads: (0..threads).map(thread).collect(), cpus: 3, ..Machine::default() }
    }

    impl Host for Machine {
        fn set_share(&mut self, name: ThreadRef, change: &dyn Fn(Share) -> Share) -> bool {
            let found = self.threads.iter_mut().flatten().find(|(other, _)| *other == name);
            found.map(|(_, share)| *share = change(*share)).is_some()
        }
        fn account(&self, name: ThreadRef) -> Option<Account> {
            let (_, share) = self.threads.iter().flatten().find(|(other, _)| *other == name)?;
            let counted = Snapshot {
                share: *share,
                runtime_ns: u64::from(name.tid.0),
                virtual_runtime_ns: 2,
                voluntary_blocks: 3,
                preemptions: 4,
                runnable_accumulated_ns: 5,
            };
            let account = Account { counted, cpu: CpuId::new(1).unwrap(), is_runnable: true };
            (self.gone != Some(name)).then_some(account)
        }
        fn records(&self) -> u32 {
            self.threads.len() as u32
        }
        fn name_at(&self, record: u32) -> Option<ThreadRef> {
            self.threads.get(record as usize)?.map(|(name, _)| name)
        }
        fn load(&self, cpu: u32) -> Option<Load> {
            (cpu < self.cpus).then_some(Load { runnable: cpu, idle_ns: 7 })
        }
        fn pause(&self) {
            self.pauses.set(self.pauses.get() + 1);
        }
        fn judged(&self, is_admitted: bool) {
            let (admitted, denied) = self.judged.get();
            self.judged.set((admitted + u32::from(is_admitted), denied + u32::from(!is_admitted)));
        }
    }

    /// Every page from the first on, each with that much room.
    fn all(machine: &mut Machine, room: usize) -> Vec<ThreadRef> {
        let (mut found, mut after) = (Vec::new(), NO_NAME);
        loop {
            let mut server = SchedulerControl::new(&mut *machine);
            let page = server.threads(ThreadsParams { after: wire(after) }, room).unwrap();
            let accounts = page.accounts.iter().map(Result::unwrap);
            found.extend(accounts.map(|one| {
                assert_eq!((one.runtime_ns, one.weight, one.cpu), (u64::from(one.tid), 64, 1));
                name(one.pid, one.tid)
            }));
            let Some(last) = found.last().filter(|_| page.more) else { return found };
            after = *last;
        }
    }

    const NO_NAME: ThreadRef =
        ThreadRef { pid: Pid(0), process_generation: 0, tid: Tid(0), thread_generation: 0 };
    /// Bytes of a list of one account, and of each other.
    const ONE: usize = 8 + EACH;
    const EACH: usize = 72;

    #[test]
    fn pages_of_any_size_are_all_threads_in_the_order_of_their_names() {
        let mut machine = machine(333, 7);
        let mut expected: Vec<_> =
            machine.threads.iter().flatten().map(|(name, _)| *name).collect();
        expected.sort();
        for room in [ONE, ONE + EACH - 1, ONE + EACH, ONE + 6 * EACH, 4096] {
            assert_eq!(all(&mut machine, room), expected, "{room}");
        }
    }

    #[test]
    fn a_page_holds_what_fits_and_says_whether_more_come() {
        let mut machine = machine(333, 7);
        // Room for none would never come to an end.
        let mut server = SchedulerControl::new(&mut machine);
        let none = server.threads(ThreadsParams { after: wire(NO_NAME) }, ONE - 1);
        let Err(NoResult::Exception(exception)) = none else { panic!("accepted") };
        assert_eq!(exception.kind(), ExceptionKind::InvalidArgument);
        // One that ended in between is left out.
        machine.gone = Some(name(0, 0));
        let mut server = SchedulerControl::new(&mut machine);
        let page = server.threads(ThreadsParams { after: wire(NO_NAME) }, ONE + EACH).unwrap();
        assert_eq!((page.accounts.len(), page.more), (1, true));
        assert!(machine.pauses.get() > 5, "a look at many records has preemption points");
    }

    #[test]
    fn any_thread_is_given_any_weight_and_a_stale_name_changes_nothing() {
        let mut machine = machine(20, 3);
        let thread = name(1, 1);
        for weight in [0, 1, 64, 1024, 1025, u16::MAX] {
            let params = SetWeightParams { thread: wire(thread), weight };
            let answer = SchedulerControl::new(&mut machine).set_weight(params);
            if (1..=1024).contains(&weight) {
                assert_eq!(answer.map(|answer| answer.result), Ok(ControlResult::Ok));
                let account = machine.account(thread).unwrap();
                assert_eq!(account.counted.share.weight().get(), weight);
                continue;
            }
            let Err(NoResult::Exception(exception)) = answer else { panic!("{weight}") };
            assert_eq!(exception.kind(), ExceptionKind::InvalidArgument);
            assert_eq!(exception.message(), "weight has to be from 1 to 1024");
        }
        assert_eq!(machine.judged.get(), (3, 3));
        let before = machine.threads.clone();
        for stale in [
            ThreadRef { thread_generation: 9, ..thread },
            ThreadRef { process_generation: 9, ..thread },
            NO_NAME,
        ] {
            let mut server = SchedulerControl::new(&mut machine);
            let thread = wire(stale);
            let weight = server.set_weight(SetWeightParams { thread, weight: 5 });
            assert_eq!(weight.map(|w| w.result), Ok(ControlResult::StaleGeneration));
            let class = Named::Batch;
            let class = server.set_latency_class(SetLatencyClassParams { thread, class });
            assert_eq!(class.map(|c| c.result), Ok(ControlResult::StaleGeneration));
            let seen = server.snapshot(SnapshotParams { thread }).unwrap();
            assert_eq!((seen.result, seen.account), (ControlResult::StaleGeneration, NO_ACCOUNT));
        }
        assert_eq!(machine.threads, before);
        assert_eq!(machine.judged.get(), (3, 3 + 6));
        let params = SetLatencyClassParams { thread: wire(thread), class: Named::Batch };
        let answer = SchedulerControl::new(&mut machine).set_latency_class(params);
        assert_eq!(answer.map(|answer| answer.result), Ok(ControlResult::Ok));
        let share = machine.account(thread).unwrap().counted.share;
        assert_eq!((share.weight().get(), share.class()), (1024, LatencyClass::Batch));
    }

    #[test]
    fn loads_come_from_a_number_on_as_many_as_fit() {
        let mut machine = Machine { cpus: 40, ..Machine::default() };
        let each = 32;
        for (first, room, count, more) in [
            (0, 8 + each, 1, true),
            (39, 8 + each, 1, false),
            (40, 4096, 0, false),
            (u32::MAX, 4096, 0, false),
        ] {
            let mut server = SchedulerControl::new(&mut machine);
            let page = server.loads(LoadsParams { first_cpu: first }, room).unwrap();
            assert_eq!((page.loads.len(), page.more), (count, more), "{first} {room}");
            for (number, load) in (first..=u32::MAX).zip(page.loads.iter().map(Result::unwrap)) {
                let expected = CpuLoad { cpu: number, runnable: number, idle_ns: 7, ..NO_LOAD };
                assert_eq!(load, expected);
            }
        }
        assert!(
            SchedulerControl::new(&mut machine).loads(LoadsParams { first_cpu: 0 }, 8).is_err()
        );
    }

    #[test]
    fn what_needs_contexts_or_leases_says_so() {
        let mut machine = Machine::default();
        let mut server = SchedulerControl::new(&mut machine);
        let thread = wire(name(1, 1));
        let bind = BindContextParams { context_id: 1, generation: 1, thread };
        let refused = [
            server.bind_context(bind).map(|_| ()),
            server.revoke_context(RevokeContextParams { context_id: 1, generation: 1 }).map(|_| ()),
            server.revoke_lease(RevokeLeaseParams { lease_id: 1, generation: 1 }).map(|_| ()),
        ];
        for answer in refused {
            let Err(NoResult::Exception(exception)) = answer else { panic!("accepted") };
            assert_eq!(exception.kind(), ExceptionKind::Unimplemented);
            assert!(exception.message().starts_with("this kernel has no "));
        }
    }
}
