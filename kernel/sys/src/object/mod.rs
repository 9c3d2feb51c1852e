//! Calls on objects of the kernel's: which interface serves which object, and the hosts that only the machine
//! can be.
//!
//! What a method answers is in `kernel/object`, one file per interface.
//!
//! * [`console`], [`control`], [`info`], [`random`]: the hosts.

pub mod console;
mod control;
mod info;
mod random;

use crate::kernel::{Calling, Kernel, KernelObject, Object, Thread};
use abi_types::{InterfaceTag, Status};
use kernel_object as served;
use kernel_ops::machine::ProcessPart;
use kernel_ops::object::Objects;
use kernel_ops::{interrupt, trace};
use kernel_process::{end, handle, join, shared};
use schema_wire::Served;

impl Objects for Kernel {
    fn serve_call(
        self,
        calling: &mut Calling<'_>,
        object: Object,
        method: u16,
        params: &[u8],
        results: &mut [u8],
    ) -> Result<Served, Status> {
        match object {
            Object::Other(object) => serve(calling, object, method, params, results),
            Object::Endpoint(of) => {
                let mut host = served::endpoint::Owner { calling, of };
                let mut server = served::endpoint::Endpoint(&mut host);
                schema::endpoint::dispatch(&mut server, method, params, results)
            }
            // Their operations are the ring's own; calls on facets do not come here.
            Object::ParkSpace | Object::Facet(_) => Err(Status::Unimplemented),
        }
    }

    fn takes(self, interface: InterfaceTag, method: u16) -> u16 {
        served::takes(interface, method)
    }

    fn is_transferable(self, object: KernelObject) -> bool {
        match object {
            KernelObject::Console | KernelObject::Records => {
                schema::console::INTERFACE.is_transferable
            }
            KernelObject::Timer => schema::timer::INTERFACE.is_transferable,
            KernelObject::Interrupt(_) => schema::interrupt::INTERFACE.is_transferable,
            KernelObject::Trace => schema::trace::INTERFACE.is_transferable,
            KernelObject::SystemInfo => schema::system_info::INTERFACE.is_transferable,
            KernelObject::ThreadSpawner => schema::thread_spawner::INTERFACE.is_transferable,
            KernelObject::ThreadControl => schema::thread_control::INTERFACE.is_transferable,
            KernelObject::ThreadHandle(_) => schema::thread_handle::INTERFACE.is_transferable,
            KernelObject::VirtualMemory => schema::virtual_memory::INTERFACE.is_transferable,
            KernelObject::ProcessSpawner => schema::process_spawner::INTERFACE.is_transferable,
            KernelObject::ProcessHandle(_) => schema::process_handle::INTERFACE.is_transferable,
            KernelObject::FrameAllocator => schema::frame_allocator::INTERFACE.is_transferable,
            KernelObject::ProcessDirectory => schema::process_directory::INTERFACE.is_transferable,
            KernelObject::Entropy => schema::entropy::INTERFACE.is_transferable,
            KernelObject::UserSession(_) => schema::user_session::INTERFACE.is_transferable,
            KernelObject::MemoryObject(_) => schema::memory_object::INTERFACE.is_transferable,
            KernelObject::SchedulingPolicy(_) => {
                schema::scheduling_policy::INTERFACE.is_transferable
            }
            KernelObject::SchedulerControl => schema::scheduler_control::INTERFACE.is_transferable,
        }
    }

    fn retained(self, object: KernelObject) -> bool {
        match object {
            KernelObject::ProcessHandle(process) | KernelObject::UserSession(process) => {
                handle::retained(self, process)
            }
            KernelObject::MemoryObject(facet) => shared::retained(self, facet),
            KernelObject::Interrupt(place) => interrupt::retained(self, place),
            _ => true,
        }
    }

    fn released(self, process: &'static ProcessPart<Self>, object: KernelObject) {
        match object {
            KernelObject::Interrupt(place) => interrupt::released(self, place),
            KernelObject::Trace => trace::end(self, process.key()),
            KernelObject::ThreadHandle(thread) => join::handle_released(self, thread),
            KernelObject::ProcessHandle(process) | KernelObject::UserSession(process) => {
                handle::released(self, process);
            }
            KernelObject::MemoryObject(facet) => shared::released(self, facet),
            _ => {}
        }
    }

    fn exit_thread(self, thread: &'static Thread, code: i64) -> ! {
        end::exit_thread(self, thread, code)
    }
}

fn serve(
    calling: &mut Calling<'_>,
    object: KernelObject,
    method: u16,
    params: &[u8],
    results: &mut [u8],
) -> Result<Served, Status> {
    match object {
        KernelObject::Console => {
            let mut host = console::Caller(calling);
            let mut server = served::console::Console::new(&mut host);
            schema::console::dispatch(&mut server, method, params, results)
        }
        KernelObject::Records => {
            let mut host = console::Records;
            let mut server = served::console::Console::new(&mut host);
            schema::console::dispatch(&mut server, method, params, results)
        }
        KernelObject::Timer => {
            schema::timer::dispatch(&mut served::timer::Timer(calling), method, params, results)
        }
        KernelObject::Interrupt(place) => {
            let mut host = served::interrupt::OfLine { calling, place };
            let mut server = served::interrupt::Interrupt(&mut host);
            schema::interrupt::dispatch(&mut server, method, params, results)
        }
        KernelObject::Trace => {
            let mut server = served::trace::Trace::new(calling);
            schema::trace::dispatch(&mut server, method, params, results)
        }
        KernelObject::SystemInfo => {
            let mut server = served::system_info::SystemInfo(&info::Counted);
            schema::system_info::dispatch(&mut server, method, params, results)
        }
        KernelObject::VirtualMemory => {
            let mut server = served::virtual_memory::VirtualMemory(calling);
            schema::virtual_memory::dispatch(&mut server, method, params, results)
        }
        KernelObject::FrameAllocator => {
            let mut server = served::frame_allocator::FrameAllocator(calling);
            schema::frame_allocator::dispatch(&mut server, method, params, results)
        }
        KernelObject::ProcessDirectory => {
            let mut page = served::process_directory::Page::new();
            let mut server = served::process_directory::ProcessDirectory::new(calling, &mut page);
            schema::process_directory::dispatch(&mut server, method, params, results)
        }
        KernelObject::Entropy => {
            let mut host = random::Random(calling);
            let mut server = served::entropy::Entropy::new(&mut host);
            schema::entropy::dispatch(&mut server, method, params, results)
        }
        KernelObject::UserSession(of) => {
            let mut host = served::user_session::Held { calling, of };
            let mut server = served::user_session::UserSession(&mut host);
            schema::user_session::dispatch(&mut server, method, params, results)
        }
        KernelObject::MemoryObject(of) => {
            let mut host = served::memory_object::Facet { calling, of };
            let mut server = served::memory_object::MemoryObject(&mut host);
            schema::memory_object::dispatch(&mut server, method, params, results)
        }
        KernelObject::ThreadSpawner => {
            let mut server = served::thread_spawner::ThreadSpawner(calling);
            schema::thread_spawner::dispatch(&mut server, method, params, results)
        }
        KernelObject::ThreadControl => {
            let mut host = control::Registers(calling);
            let mut server = served::thread_control::ThreadControl(&mut host);
            schema::thread_control::dispatch(&mut server, method, params, results)
        }
        KernelObject::SchedulingPolicy(ceiling) => {
            let mut host = served::scheduling_policy::Own { calling, ceiling };
            let mut server = served::scheduling_policy::SchedulingPolicy(&mut host);
            schema::scheduling_policy::dispatch(&mut server, method, params, results)
        }
        KernelObject::SchedulerControl => {
            let mut host = served::scheduler_control::All(calling);
            let mut server = served::scheduler_control::SchedulerControl::new(&mut host);
            schema::scheduler_control::dispatch(&mut server, method, params, results)
        }
        KernelObject::ProcessSpawner => {
            let mut server = served::process_spawner::ProcessSpawner(calling);
            schema::process_spawner::dispatch(&mut server, method, params, results)
        }
        KernelObject::ProcessHandle(process) => {
            // Held: it is not another's while the call is in progress.
            let held = handle::hold(Kernel, process).ok_or(Status::Disconnected)?;
            let mut host = served::process_handle::Handle { calling, held };
            let mut server = served::process_handle::ProcessHandle(&mut host);
            schema::process_handle::dispatch(&mut server, method, params, results)
        }
        KernelObject::ThreadHandle(thread) => {
            let mut host = served::thread_handle::Handle { calling, thread };
            let mut server = served::thread_handle::ThreadHandle(&mut host);
            schema::thread_handle::dispatch(&mut server, method, params, results)
        }
    }
}
