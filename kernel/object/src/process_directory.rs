//! ProcessDirectory: what runs, to read and nothing else.
//!
//! Pages are bounded twice: by the entries that one holds, and by the places that one call looks at. So a call takes
//! no longer because there are more processes, and a reader goes on from where it was.

use crate::process_handle::usage_of;
use crate::refuse;
use core_ledger::{Line, Reading};
use core_manifest::Name;
use kernel_dispatch::preemption_point;
use kernel_ops::capability::ProcessKey;
use kernel_ops::object::Calling;
use kernel_process::Machine;
use kernel_process::directory::{
    self, Looked, SeenAccount, SeenCapability, SeenProcess, SeenThread,
};
use kernel_process::listed::{
    NO_CAPABILITY, NO_PROCESS, NO_THREAD, capability_entry, process_entry, thread_entry,
};
use schema::process_directory::{
    CapabilitiesParams, CapabilitiesResults, CapabilityEntry, LedgerParams, LedgerResults,
    OwnResults, ProcessEntry, ProcessesParams, ProcessesResults, Server, ThreadEntry,
    ThreadsParams, ThreadsResults,
};
use schema::process_directory_capnp::DirectoryResult;
use schema_wire::{Answer, Element, ExceptionKind, List};

/// Entries of a page at most.
pub const PAGE_ENTRIES: usize = 16;
/// Records that one call looks at, at most.
const LOOKS_PER_CALL: u32 = 4096;
/// Records that are looked at and are nothing to tell, between two preemption points.
const LOOKS_PER_PAUSE: u32 = 256;

/// What it needs of the kernel.
pub trait Host {
    /// The process that calls.
    fn own(&self) -> ProcessKey;
    /// Records of processes.
    fn process_records(&self) -> u32;
    /// The process in the record at that position.
    fn process(&mut self, slot: u32) -> Option<SeenProcess>;
    /// Records of threads.
    fn thread_records(&self) -> u32;
    /// The thread in the record at that position, if it is one of that process.
    fn thread(&mut self, of: ProcessKey, slot: u32) -> Option<SeenThread>;
    /// Whether that process is there.
    fn is_there(&self, of: ProcessKey) -> bool;
    /// Fills `into` with what the slots of a process from `from` on hold; `None` if it is gone.
    fn capabilities(
        &mut self,
        of: ProcessKey,
        from: u32,
        into: &mut [Option<SeenCapability>],
    ) -> Option<Looked>;
    /// The account of a process, if it is there.
    fn account(&self, of: ProcessKey) -> Option<SeenAccount>;
    /// Lets others run.
    fn pause(&mut self);
}

impl<M: Machine> Host for Calling<'_, M> {
    fn own(&self) -> ProcessKey {
        self.caller.ring.shared.process.key()
    }

    fn process_records(&self) -> u32 {
        self.caller.m.records().processes().len() as u32
    }

    fn process(&mut self, slot: u32) -> Option<SeenProcess> {
        directory::process_at(self.caller.m, slot)
    }

    fn thread_records(&self) -> u32 {
        self.caller.m.records().threads().len() as u32
    }

    fn thread(&mut self, of: ProcessKey, slot: u32) -> Option<SeenThread> {
        directory::thread_at(self.caller.m, of, slot)
    }

    fn is_there(&self, of: ProcessKey) -> bool {
        directory::is_there(self.caller.m, of)
    }

    fn capabilities(
        &mut self,
        of: ProcessKey,
        from: u32,
        into: &mut [Option<SeenCapability>],
    ) -> Option<Looked> {
        directory::capabilities(self.caller.m, of, from, into)
    }

    fn account(&self, of: ProcessKey) -> Option<SeenAccount> {
        directory::account(self.caller.m, of)
    }

    fn pause(&mut self) {
        preemption_point(self.caller.m);
    }
}

/// Room for one page.
#[derive(Debug)]
pub struct Page<'p> {
    names: [Name; PAGE_ENTRIES],
    processes: [ProcessEntry<'p>; PAGE_ENTRIES],
    threads: [ThreadEntry; PAGE_ENTRIES],
    capabilities: [CapabilityEntry<'p>; PAGE_ENTRIES],
}

impl Page<'_> {
    /// An empty one.
    pub fn new() -> Self {
        Self {
            names: [Name::new(""); PAGE_ENTRIES],
            processes: [NO_PROCESS; PAGE_ENTRIES],
            threads: [NO_THREAD; PAGE_ENTRIES],
            capabilities: [NO_CAPABILITY; PAGE_ENTRIES],
        }
    }
}

impl Default for Page<'_> {
    fn default() -> Self {
        Self::new()
    }
}

/// The server of one call.
#[derive(Debug)]
pub struct ProcessDirectory<'h, 'p, H> {
    host: &'h mut H,
    names: &'p mut [Name],
    processes: &'p mut [ProcessEntry<'p>],
    threads: &'p mut [ThreadEntry],
    capabilities: &'p mut [CapabilityEntry<'p>],
}

impl<'h, 'p, H> ProcessDirectory<'h, 'p, H> {
    /// A server over `host`, which fills `page`.
    pub fn new(host: &'h mut H, page: &'p mut Page<'p>) -> Self {
        let Page { names, processes, threads, capabilities } = page;
        Self { host, names, processes, threads, capabilities }
    }
}

/// Bytes of a name in a message, at most.
const NAME_BYTES: usize = abi_types::CAPSET_NAME_BYTES.next_multiple_of(8) + 8;

/// Entries that `room` has room for, each of at most so many bytes.
fn entries_in(room: usize, entry_bytes: usize) -> Answer<usize> {
    // A list of structs begins with a word that says what they look like.
    match room.saturating_sub(8) / entry_bytes {
        0 => Err(refuse(
            ExceptionKind::InvalidArgument,
            "the results have no room for an entry: take results of at least 256 bytes",
        )),
        entries => Ok(entries.min(PAGE_ENTRIES)),
    }
}

/// Where a page ends.
struct Walk {
    count: usize,
    next: u32,
    has_more: bool,
}

/// Looks at the records from `from` on, at most [`LOOKS_PER_CALL`], and keeps at most `entries` of what is there.
fn walk<H: Host, T>(
    host: &mut H,
    (from, records): (u32, u32),
    entries: usize,
    look: impl Fn(&mut H, u32) -> Option<T>,
    mut keep: impl FnMut(usize, T),
) -> Walk {
    let end = from.saturating_add(LOOKS_PER_CALL).min(records);
    let (mut next, mut count) = (from, 0);
    while next < end && count < entries {
        if let Some(seen) = look(host, next) {
            keep(count, seen);
            count += 1;
            host.pause();
        } else if next % LOOKS_PER_PAUSE == LOOKS_PER_PAUSE - 1 {
            host.pause();
        }
        next += 1;
    }
    host.pause();
    Walk { count, next, has_more: next < records }
}

impl<H: Host> Server for ProcessDirectory<'_, '_, H> {
    fn processes(&mut self, params: ProcessesParams, room: usize) -> Answer<ProcessesResults<'_>> {
        let entries = entries_in(room, ProcessEntry::LAYOUT.stride() + NAME_BYTES)?;
        let names = core::mem::take(&mut self.names);
        let rows = &mut *self.processes;
        let within = (params.from, self.host.process_records());
        let Walk { count, next, has_more } =
            walk(self.host, within, entries, H::process, |number, seen| {
                if let (Some(name), Some(row)) = (names.get_mut(number), rows.get_mut(number)) {
                    (*name, *row) = (seen.name, process_entry(&seen));
                }
            });
        let names = &*names;
        for (row, name) in rows.iter_mut().zip(names) {
            row.name = name.as_str();
        }
        let processes = List::of(self.processes.get(..count).unwrap_or_default());
        Ok(ProcessesResults { processes, next, more: has_more })
    }

    fn threads(&mut self, params: ThreadsParams, room: usize) -> Answer<ThreadsResults<'_>> {
        let entries = entries_in(room, ThreadEntry::LAYOUT.stride())?;
        let of = ProcessKey { slot: params.pid, generation: params.generation };
        let rows = &mut *self.threads;
        let within = (params.from, self.host.thread_records());
        let gone = DirectoryResult::StaleGeneration;
        let nothing = ThreadsResults { result: gone, threads: List::EMPTY, next: 0, more: false };
        if !self.host.is_there(of) {
            return Ok(nothing);
        }
        let look = |host: &mut H, slot| host.thread(of, slot);
        let Walk { count, next, has_more } =
            walk(self.host, within, entries, look, |number, seen| {
                if let Some(row) = rows.get_mut(number) {
                    *row = thread_entry(&seen);
                }
            });
        if !self.host.is_there(of) {
            return Ok(nothing);
        }
        let threads = List::of(self.threads.get(..count).unwrap_or_default());
        Ok(ThreadsResults { result: DirectoryResult::Ok, threads, next, more: has_more })
    }

    fn capabilities(
        &mut self,
        params: CapabilitiesParams,
        room: usize,
    ) -> Answer<CapabilitiesResults<'_>> {
        let entries = entries_in(room, CapabilityEntry::LAYOUT.stride() + NAME_BYTES)?;
        let of = ProcessKey { slot: params.pid, generation: params.generation };
        let mut seen = [None; PAGE_ENTRIES];
        let into = seen.get_mut(..entries).unwrap_or_default();
        let Some(looked) = self.host.capabilities(of, params.from, into) else {
            let result = DirectoryResult::StaleGeneration;
            let capabilities = List::EMPTY;
            return Ok(CapabilitiesResults { result, capabilities, next: 0, more: false });
        };
        let names = core::mem::take(&mut self.names);
        for (name, seen) in names.iter_mut().zip(seen.iter().flatten()) {
            *name = seen.name;
        }
        let names = &*names;
        let from = names.iter().zip(seen.iter().flatten());
        for (row, (name, seen)) in self.capabilities.iter_mut().zip(from) {
            *row = capability_entry(seen, name.as_str());
        }
        self.host.pause();
        let Looked { count, next, has_more } = looked;
        let capabilities = List::of(self.capabilities.get(..count).unwrap_or_default());
        let result = DirectoryResult::Ok;
        Ok(CapabilitiesResults { result, capabilities, next, more: has_more })
    }

    fn ledger(&mut self, params: LedgerParams) -> Answer<LedgerResults> {
        let of = ProcessKey { slot: params.pid, generation: params.generation };
        let (result, lines, limits) = match self.host.account(of) {
            Some(account) => (DirectoryResult::Ok, Some(account.lines), account.limits),
            None => (DirectoryResult::StaleGeneration, None, [0; 4]),
        };
        let nothing = Reading { used: 0, lent: 0, limit: 0 };
        let line = |line: Line| {
            lines.as_ref().and_then(|lines| lines.get(line.index()).copied()).unwrap_or(nothing)
        };
        Ok(LedgerResults { result, usage: usage_of(line, limits) })
    }

    fn own(&mut self) -> Answer<OwnResults> {
        let key = self.host.own();
        Ok(OwnResults { pid: key.slot, generation: key.generation })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core_sched_policy::{LatencyClass, Share, Weight};
    use core_thread::{State, ThreadKey};
    use kernel_process::directory::{PendingKinds, ProcessState, Snapshot};
    use kernel_process::process::{Ended, Reason};
    use schema::process_directory_capnp as told;
    use schema::process_handle_capnp::ExitReason;
    use schema_wire::NoResult;

    /// Every thousandth record is a process's, every hundredth a thread's.
    struct Many {
        records: u32,
        looked: u32,
        since_pause: u32,
        longest: u32,
        is_gone: bool,
    }

    const MANY: Many =
        Many { records: 16_384, looked: 0, since_pause: 0, longest: 0, is_gone: false };
    const OF: ProcessKey = ProcessKey { slot: 7, generation: 3 };

    impl Many {
        fn look(&mut self) {
            self.looked += 1;
            self.since_pause += 1;
            self.longest = self.longest.max(self.since_pause);
        }
    }

    impl Host for Many {
        fn own(&self) -> ProcessKey {
            OF
        }
        fn process_records(&self) -> u32 {
            self.records
        }
        fn process(&mut self, slot: u32) -> Option<SeenProcess> {
            self.look();
            slot.is_multiple_of(1000).then_some(SeenProcess {
                key: ProcessKey { slot, generation: 5 },
                name: Name::new("a name of this process that is 44 bytes long"),
                state: ProcessState::Gone,
                ended: Some(Ended { code: -3, reason: Reason::Killed }),
                weight: Weight::DEFAULT,
                live_threads: 2,
                began_ns: 9,
                cpu_time_ns: 11,
                is_cpu_time_whole: true,
                parent: Some(OF),
                session: None,
            })
        }
        fn thread_records(&self) -> u32 {
            self.records
        }
        fn thread(&mut self, of: ProcessKey, slot: u32) -> Option<SeenThread> {
            assert_eq!(of, OF);
            self.look();
            let pending =
                PendingKinds { calls: 1, sleeps: u16::from(slot == 100), ..Default::default() };
            slot.is_multiple_of(100).then_some(SeenThread {
                key: ThreadKey { slot, generation: 1 },
                state: State::Waiting,
                is_killed: false,
                pending: Some(pending),
                cpu: 3,
                account: Snapshot {
                    share: Share::new(Weight::DEFAULT, LatencyClass::Batch),
                    runtime_ns: 1,
                    virtual_runtime_ns: 2,
                    voluntary_blocks: 3,
                    preemptions: 4,
                    runnable_accumulated_ns: 5,
                },
            })
        }
        fn is_there(&self, of: ProcessKey) -> bool {
            of == OF && !self.is_gone
        }
        fn capabilities(
            &mut self,
            of: ProcessKey,
            from: u32,
            into: &mut [Option<SeenCapability>],
        ) -> Option<Looked> {
            if !self.is_there(of) {
                return None;
            }
            for (place, slot) in into.iter_mut().zip(from..) {
                *place = Some(SeenCapability {
                    slot: abi_types::CapSlot::new(slot, 2),
                    kind: directory::CapabilityKind::Client,
                    tag: schema::timer::INTERFACE_TAG,
                    interface_id: schema::timer::INTERFACE_ID,
                    name: Name::new(if slot.is_multiple_of(2) { "even" } else { "" }),
                });
            }
            let count = into.len();
            Some(Looked { count, next: from + count as u32, has_more: true })
        }
        fn account(&self, of: ProcessKey) -> Option<SeenAccount> {
            let lines = [Reading { used: 1, lent: 2, limit: 3 }; Line::COUNT];
            self.is_there(of).then_some(SeenAccount { lines, limits: [4, 5, 6, 7] })
        }
        fn pause(&mut self) {
            self.since_pause = 0;
        }
    }

    fn kind_of<T: core::fmt::Debug>(answer: Answer<T>) -> ExceptionKind {
        match answer {
            Err(NoResult::Exception(exception)) => exception.kind(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_list_is_read_page_by_page_in_bounded_pieces() {
        let (mut many, mut from, mut found, mut calls) = (MANY, 0, 0, 0);
        loop {
            let mut page = Page::new();
            let before = many.looked;
            let mut server = ProcessDirectory::new(&mut many, &mut page);
            let results = server.processes(ProcessesParams { from }, 4000).unwrap();
            for entry in results.processes.iter().map(Result::unwrap) {
                assert_eq!(entry.pid, found * 1000);
                assert_eq!(entry.name, "a name of this process that is 44 bytes long");
                assert_eq!((entry.state, entry.exit_code), (told::ProcessState::Gone, -3));
                assert_eq!(entry.exit_reason, ExitReason::Killed);
                assert_eq!((entry.parent_pid, entry.parent_generation), (7, 3));
                found += 1;
            }
            let more = results.more;
            from = results.next;
            calls += 1;
            assert!(many.looked - before <= LOOKS_PER_CALL);
            if !more {
                break;
            }
        }
        assert_eq!((found, calls, many.looked), (17, 4, 16_384));
        // Beyond the last.
        let mut page = Page::new();
        let mut server = ProcessDirectory::new(&mut many, &mut page);
        let results = server.processes(ProcessesParams { from: u32::MAX }, 4000).unwrap();
        assert!(results.processes.is_empty() && !results.more);
        assert!(many.longest <= LOOKS_PER_PAUSE, "{}", many.longest);
    }

    #[test]
    fn a_page_has_as_many_entries_as_there_is_room_for() {
        for (room, expected) in [(96, 1), (4000, PAGE_ENTRIES)] {
            let (mut many, mut page) = (MANY, Page::new());
            let mut server = ProcessDirectory::new(&mut many, &mut page);
            let params = ThreadsParams { pid: 7, generation: 3, from: 100 };
            let results = server.threads(params, room).unwrap();
            assert_eq!((results.result, results.threads.len()), (DirectoryResult::Ok, expected));
            assert!(results.threads.bytes() <= room && results.more);
            let first = results.threads.get(0).unwrap().unwrap();
            assert_eq!((first.tid, first.waits_for), (100, told::WaitsFor::Several));
            assert_eq!((first.calls, first.sleeps, first.cpu, first.weight), (1, 1, 3, 64));
            let second = results.threads.get(1).map(|entry| entry.unwrap().waits_for);
            assert!(second.is_none_or(|kind| kind == told::WaitsFor::Call));
        }
        let (mut many, mut page) = (MANY, Page::new());
        let mut server = ProcessDirectory::new(&mut many, &mut page);
        let none = server.processes(ProcessesParams { from: 0 }, 96);
        assert_eq!(kind_of(none), ExceptionKind::InvalidArgument);
        assert_eq!(many.looked, 0);
    }

    #[test]
    fn capabilities_have_their_own_names() {
        let (mut many, mut page) = (MANY, Page::new());
        let mut server = ProcessDirectory::new(&mut many, &mut page);
        let params = CapabilitiesParams { pid: 7, generation: 3, from: 4 };
        let results = server.capabilities(params, 4000).unwrap();
        let names = results.capabilities.iter().map(|entry| entry.unwrap());
        for (entry, slot) in names.zip(4..) {
            assert_eq!((entry.slot, entry.generation), (slot, 2));
            assert_eq!(entry.name, if slot % 2 == 0 { "even" } else { "" });
            assert_eq!(entry.interface_id, schema::timer::INTERFACE_ID);
        }
        assert_eq!((results.next, results.more), (20, true));
    }

    #[test]
    fn of_a_process_that_is_gone_nothing_is_told() {
        let (mut many, mut page) = (MANY, Page::new());
        let mut server = ProcessDirectory::new(&mut many, &mut page);
        assert_eq!(server.own().map(|own| (own.pid, own.generation)), Ok((7, 3)));
        let told = server.ledger(LedgerParams { pid: 7, generation: 3 }).unwrap().usage;
        assert_eq!((told.frames.lent, told.ring_entries, told.endpoint_queue_limit), (2, 4, 7));
        for (is_gone, generation) in [(true, 3), (false, 5)] {
            let (mut many, mut page) = (Many { is_gone, ..MANY }, Page::new());
            let mut server = ProcessDirectory::new(&mut many, &mut page);
            let params = ThreadsParams { pid: 7, generation, from: 0 };
            let threads = server.threads(params, 4000).unwrap();
            assert_eq!(threads.result, DirectoryResult::StaleGeneration);
            assert!(threads.threads.is_empty() && !threads.more);
            let params = CapabilitiesParams { pid: 7, generation, from: 0 };
            let caps = server.capabilities(params, 4000).unwrap();
            assert_eq!((caps.result, caps.more), (DirectoryResult::StaleGeneration, false));
            let told = server.ledger(LedgerParams { pid: 7, generation }).unwrap();
            assert_eq!(told.result, DirectoryResult::StaleGeneration);
            assert_eq!((told.usage.frames.limit, told.usage.ring_entries), (0, 0));
        }
    }
}
