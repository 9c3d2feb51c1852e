//! What a test machine serves: the clock, a console and threads, as the kernel serves them.

use crate::machine::Host;
use abi_types::{InterfaceTag, Status};
use core_manifest::GrantKind;
use core_sched_policy::Weight;
use core_thread::ThreadKey;
use kernel_object as served;
use kernel_ops::capability::{Object, ProcessKey};
use kernel_ops::machine::ProcessPart;
use kernel_ops::object::{Calling, Objects};
use kernel_ops::output::Sent;
use kernel_ops::shared::MemoryFacet;
use kernel_ops::{interrupt, trace};
use kernel_process::{Machine, Thread, end, handle, join, shared};
use schema_wire::Served;

/// An object that the machine serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostObject {
    /// The clock.
    Timer,
    /// The console, which nobody types at.
    Console,
    /// The interrupt line at that place.
    Interrupt(u32),
    /// What each CPU did.
    Trace,
    /// Threads of the process.
    ThreadSpawner,
    /// The calling thread itself.
    ThreadControl,
    /// The address space of the process.
    VirtualMemory,
    /// Makes memory objects.
    FrameAllocator,
    /// Memory that processes share.
    MemoryObject(MemoryFacet),
    /// The calling thread's share and account; with the most it may weigh.
    SchedulingPolicy(Option<Weight>),
    /// Shares and accounts of all threads.
    SchedulerControl,
    /// One thread of the process.
    ThreadHandle(ThreadKey),
    /// Processes that a program starts.
    ProcessSpawner,
    /// One of them.
    ProcessHandle(ProcessKey),
    /// What runs.
    ProcessDirectory,
    /// A session, by who began it.
    UserSession(ProcessKey),
}

impl HostObject {
    /// Its interface.
    pub const fn interface(self) -> InterfaceTag {
        match self {
            Self::Timer => schema::timer::INTERFACE_TAG,
            Self::Console => schema::console::INTERFACE_TAG,
            Self::Interrupt(_) => schema::interrupt::INTERFACE_TAG,
            Self::Trace => schema::trace::INTERFACE_TAG,
            Self::ThreadSpawner => schema::thread_spawner::INTERFACE_TAG,
            Self::ThreadControl => schema::thread_control::INTERFACE_TAG,
            Self::ThreadHandle(_) => schema::thread_handle::INTERFACE_TAG,
            Self::FrameAllocator => schema::frame_allocator::INTERFACE_TAG,
            Self::MemoryObject(_) => schema::memory_object::INTERFACE_TAG,
            Self::SchedulingPolicy(_) => schema::scheduling_policy::INTERFACE_TAG,
            Self::SchedulerControl => schema::scheduler_control::INTERFACE_TAG,
            Self::VirtualMemory => schema::virtual_memory::INTERFACE_TAG,
            Self::ProcessSpawner => schema::process_spawner::INTERFACE_TAG,
            Self::ProcessHandle(_) => schema::process_handle::INTERFACE_TAG,
            Self::ProcessDirectory => schema::process_directory::INTERFACE_TAG,
            Self::UserSession(_) => schema::user_session::INTERFACE_TAG,
        }
    }

    /// Whether it may go to another process.
    pub fn is_transferable(self) -> bool {
        let tag = self.interface();
        let interfaces = schema::INTERFACES.iter();
        let mut its = interfaces.filter(|one| InterfaceTag::of(one.id) == Some(tag));
        its.next().is_some_and(|one| one.is_transferable)
    }
}

/// The calling thread: it has no registers, and can end.
struct Control<'c, 'r, M: Machine>(&'c mut Calling<'r, M>);

impl<M: Machine> served::thread_control::Host for Control<'_, '_, M> {
    fn fs_base(&self) -> u64 {
        0
    }

    fn set_fs_base(&mut self, _: u64) -> bool {
        false
    }

    fn exit_thread(&mut self, code: i64) {
        self.0.ends_with = Some(code);
    }
}

/// A call on the console.
struct Line<'c, 'r, M: Machine>(&'c mut Calling<'r, M>);

impl<M: Machine> served::console::Host for Line<'_, '_, M> {
    fn send(&mut self, bytes: &[u8]) -> Sent {
        served::console::send(self.0, bytes)
    }

    fn receive(&mut self, _: &mut [u8]) -> usize {
        0
    }

    fn complete_on_input(&mut self, _: usize) -> bool {
        false
    }
}

/// Serves a call on one of these objects, on any machine that has them.
pub fn serve_call<M: Machine<Other = HostObject>>(
    calling: &mut Calling<'_, M>,
    object: Object<HostObject>,
    method: u16,
    params: &[u8],
    results: &mut [u8],
) -> Result<Served, Status> {
    match object {
        Object::Other(HostObject::Timer) => {
            schema::timer::dispatch(&mut served::timer::Timer(calling), method, params, results)
        }
        Object::Other(HostObject::Console) => {
            let mut host = Line(calling);
            let mut server = served::console::Console::new(&mut host);
            schema::console::dispatch(&mut server, method, params, results)
        }
        Object::Other(HostObject::Interrupt(place)) => {
            let mut host = served::interrupt::OfLine { calling, place };
            let mut server = served::interrupt::Interrupt(&mut host);
            schema::interrupt::dispatch(&mut server, method, params, results)
        }
        Object::Other(HostObject::Trace) => {
            let mut server = served::trace::Trace::new(calling);
            schema::trace::dispatch(&mut server, method, params, results)
        }
        Object::Other(HostObject::ThreadSpawner) => {
            let mut server = served::thread_spawner::ThreadSpawner(calling);
            schema::thread_spawner::dispatch(&mut server, method, params, results)
        }
        Object::Other(HostObject::VirtualMemory) => {
            let mut server = served::virtual_memory::VirtualMemory(calling);
            schema::virtual_memory::dispatch(&mut server, method, params, results)
        }
        Object::Other(HostObject::FrameAllocator) => {
            let mut server = served::frame_allocator::FrameAllocator(calling);
            schema::frame_allocator::dispatch(&mut server, method, params, results)
        }
        Object::Other(HostObject::MemoryObject(of)) => {
            let mut host = served::memory_object::Facet { calling, of };
            let mut server = served::memory_object::MemoryObject(&mut host);
            schema::memory_object::dispatch(&mut server, method, params, results)
        }
        Object::Other(HostObject::SchedulingPolicy(ceiling)) => {
            let mut host = served::scheduling_policy::Own { calling, ceiling };
            let mut server = served::scheduling_policy::SchedulingPolicy(&mut host);
            schema::scheduling_policy::dispatch(&mut server, method, params, results)
        }
        Object::Other(HostObject::SchedulerControl) => {
            let mut host = served::scheduler_control::All(calling);
            let mut server = served::scheduler_control::SchedulerControl::new(&mut host);
            schema::scheduler_control::dispatch(&mut server, method, params, results)
        }
        Object::Other(HostObject::ThreadControl) => {
            let mut host = Control(calling);
            let mut server = served::thread_control::ThreadControl(&mut host);
            schema::thread_control::dispatch(&mut server, method, params, results)
        }
        Object::Other(HostObject::ProcessSpawner) => {
            let mut server = served::process_spawner::ProcessSpawner(calling);
            schema::process_spawner::dispatch(&mut server, method, params, results)
        }
        Object::Other(HostObject::ProcessHandle(process)) => {
            let held = handle::hold(calling.caller.m, process).ok_or(Status::Disconnected)?;
            let mut host = served::process_handle::Handle { calling, held };
            let mut server = served::process_handle::ProcessHandle(&mut host);
            schema::process_handle::dispatch(&mut server, method, params, results)
        }
        Object::Other(HostObject::ProcessDirectory) => {
            let mut page = served::process_directory::Page::new();
            let mut server = served::process_directory::ProcessDirectory::new(calling, &mut page);
            schema::process_directory::dispatch(&mut server, method, params, results)
        }
        Object::Other(HostObject::UserSession(of)) => {
            let mut host = served::user_session::Held { calling, of };
            let mut server = served::user_session::UserSession(&mut host);
            schema::user_session::dispatch(&mut server, method, params, results)
        }
        Object::Other(HostObject::ThreadHandle(thread)) => {
            let mut host = served::thread_handle::Handle { calling, thread };
            let mut server = served::thread_handle::ThreadHandle(&mut host);
            schema::thread_handle::dispatch(&mut server, method, params, results)
        }
        Object::Endpoint(of) => {
            let mut host = served::endpoint::Owner { calling, of };
            let mut server = served::endpoint::Endpoint(&mut host);
            schema::endpoint::dispatch(&mut server, method, params, results)
        }
        Object::ParkSpace | Object::Facet(_) => Err(Status::Unimplemented),
    }
}

/// A capability to one of these objects left a slot.
pub fn released<M: Machine<Other = HostObject>>(
    m: M,
    process: &'static ProcessPart<M>,
    object: HostObject,
) {
    match object {
        HostObject::Interrupt(place) => interrupt::released(m, place),
        HostObject::Trace => trace::end(m, process.key()),
        HostObject::ThreadHandle(thread) => join::handle_released(m, thread),
        HostObject::ProcessHandle(process) | HostObject::UserSession(process) => {
            handle::released(m, process);
        }
        HostObject::MemoryObject(facet) => shared::released(m, facet),
        _ => {}
    }
}

/// A capability to one of these objects is about to be copied.
pub fn retained<M: Machine<Other = HostObject>>(m: M, object: HostObject) -> bool {
    match object {
        HostObject::ProcessHandle(process) | HostObject::UserSession(process) => {
            handle::retained(m, process)
        }
        HostObject::MemoryObject(facet) => shared::retained(m, facet),
        HostObject::Interrupt(place) => interrupt::retained(m, place),
        _ => true,
    }
}

/// The object that a grant of a manifest is.
pub fn granted(kind: GrantKind<'_>) -> Option<HostObject> {
    Some(match kind {
        GrantKind::Timer => HostObject::Timer,
        GrantKind::Console => HostObject::Console,
        GrantKind::Trace => HostObject::Trace,
        GrantKind::ThreadSpawner => HostObject::ThreadSpawner,
        GrantKind::ThreadControl => HostObject::ThreadControl,
        GrantKind::VirtualMemory => HostObject::VirtualMemory,
        GrantKind::FrameAllocator => HostObject::FrameAllocator,
        GrantKind::ProcessSpawner => HostObject::ProcessSpawner,
        GrantKind::SchedulingPolicy { ceiling } => HostObject::SchedulingPolicy(ceiling),
        GrantKind::SchedulerControl => HostObject::SchedulerControl,
        GrantKind::ProcessDirectory => HostObject::ProcessDirectory,
        _ => return None,
    })
}

impl Objects for Host {
    fn serve_call(
        self,
        calling: &mut Calling<'_, Self>,
        object: Object<HostObject>,
        method: u16,
        params: &[u8],
        results: &mut [u8],
    ) -> Result<Served, Status> {
        serve_call(calling, object, method, params, results)
    }

    fn takes(self, interface: InterfaceTag, method: u16) -> u16 {
        served::takes(interface, method)
    }

    fn is_transferable(self, object: HostObject) -> bool {
        object.is_transferable()
    }

    fn retained(self, object: HostObject) -> bool {
        retained(self, object)
    }

    fn released(self, process: &'static ProcessPart<Self>, object: HostObject) {
        released(self, process, object);
    }

    fn exit_thread(self, thread: &'static Thread<Self>, code: i64) -> ! {
        end::exit_thread(self, thread, code)
    }
}
