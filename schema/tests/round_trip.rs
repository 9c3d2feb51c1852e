//! Every method of every interface: what the client sends is what the server sees, what the
//! server answers is what the client gets.
use schema::scheduling_policy_capnp::LatencyClass;
use schema::system_info_capnp::ImageProfile;
use schema::{
    INTERFACES, console, endpoint, scheduling_policy, system_info, thread_control, thread_handle,
    thread_spawner, timer,
};
use schema_testing::{Everything, Loopback, serve};
use schema_wire::{CallError, CapSlot, ExceptionKind, Status};
use test_property::prelude::*;

const SLOT: CapSlot = CapSlot::new(3, 1);

/// A client of `module` whose calls go to `$server`.
macro_rules! client {
    ($module:ident, $server:expr) => {
        $module::Client::new(
            Loopback::new(|method, params, results| {
                $module::dispatch(&mut *$server, method, params, results)
            }),
            SLOT,
        )
    };
}

proptest! {
    #[test]
    fn console_write_and_read(text in prop::collection::vec(any::<u8>(), 0..300), capacity in 0u32..400) {
        let server = &mut Everything { input: text.clone(), ..Everything::default() };
        let mut client = client!(console, server);
        prop_assert_eq!(client.write(&text).unwrap().written as usize, text.len());
        let reading = client.read(capacity).unwrap();
        prop_assert_eq!(reading.get().unwrap().bytes, &text[..text.len().min(capacity as usize)]);
        let asked = [
            format!("{:?}", console::WriteParams { bytes: &text }),
            format!("{:?}", console::ReadParams { capacity }),
        ];
        prop_assert_eq!(server.asked.as_slice(), &asked);
    }

    #[test]
    fn timer_methods(number in any::<u64>(), ns in 0..u64::MAX) {
        let server = &mut Everything { number, ..Everything::default() };
        let mut client = client!(timer, server);
        prop_assert_eq!(client.now().unwrap().ns, number);
        client.sleep(ns).unwrap();
        client.sleep_until(number).unwrap();
        let date = client.wall_clock().unwrap();
        prop_assert_eq!((date.unix_seconds, date.nanoseconds), (number, number as u32));
        let asked = [
            format!("{:?}", timer::SleepParams { ns }),
            format!("{:?}", timer::SleepUntilParams { deadline_ns: number }),
        ];
        prop_assert_eq!(server.asked.as_slice(), &asked);
    }

    #[test]
    fn endpoint_methods(badge in any::<u64>(), interface_id in any::<u64>(), number in any::<u64>()) {
        let server = &mut Everything { number, ..Everything::default() };
        let mut client = client!(endpoint, server);
        let facet = client.mint_facet(badge, interface_id).unwrap();
        prop_assert_eq!((facet.facet_index, facet.facet_generation), (badge as u16, interface_id as u32));
        prop_assert_eq!(client.revoke_facets(badge).unwrap().revoked, badge as u32);
        let load = client.load().unwrap();
        let number = number as u32;
        prop_assert_eq!(
            (load.queued, load.queue_limit, load.in_flight, load.in_flight_limit),
            (number, !number, number.rotate_left(8), number.rotate_left(16))
        );
        let asked = [
            format!("{:?}", endpoint::MintFacetParams { badge, interface_id }),
            format!("{:?}", endpoint::RevokeFacetsParams { badge }),
        ];
        prop_assert_eq!(server.asked.as_slice(), &asked);
    }

    #[test]
    fn thread_spawner_create(entry in any::<u64>(), stack_top in any::<u64>(), arg in any::<u64>(), fs_base in any::<u64>(), flags in 0u64..3) {
        let server = &mut Everything::default();
        let mut client = client!(thread_spawner, server);
        let created = client.create(entry, stack_top, arg, fs_base, flags);
        if flags == 0 {
            let created = created.unwrap();
            prop_assert_eq!((created.handle_index, created.handle_generation), (entry as u16, stack_top as u32));
        } else {
            let Err(CallError::Exception(exception)) = created else { panic!("{created:?}") };
            prop_assert_eq!(exception.kind(), ExceptionKind::Failed);
            prop_assert_eq!(exception.message(), format!("flags {flags:#x} are not 0"));
        }
        let asked = format!("{:?}", thread_spawner::CreateParams { entry, stack_top, arg, fs_base, flags });
        prop_assert_eq!(server.asked.as_slice(), &[asked]);
    }

    #[test]
    fn thread_handle_and_control(number in any::<u64>(), value in any::<u64>(), code in any::<i64>()) {
        let server = &mut Everything { number, ..Everything::default() };
        let mut handle = client!(thread_handle, server);
        prop_assert_eq!(handle.join().unwrap().exit_code, number as i64);
        let exit = handle.exit_code().unwrap();
        prop_assert_eq!((exit.exited, exit.exit_code), (number % 2 == 1, -(number as i64 >> 1)));
        let mut control = client!(thread_control, server);
        prop_assert_eq!(control.get_fs_base().unwrap().fs_base, number);
        control.set_fs_base(value).unwrap();
        // The exit has no answer; this transport says so by a status.
        prop_assert_eq!(control.exit_thread(code).unwrap_err(), CallError::Status(Status::Cancelled));
        let asked = [
            format!("{:?}", thread_control::SetFsBaseParams { fs_base: value }),
            format!("{:?}", thread_control::ExitThreadParams { code }),
        ];
        prop_assert_eq!(server.asked.as_slice(), &asked);
    }

    #[test]
    fn system_info_methods(number in any::<u64>(), cpu in any::<u32>()) {
        let server = &mut Everything { number, ..Everything::default() };
        let mut client = client!(system_info, server);
        let machine = client.machine().unwrap().machine;
        prop_assert_eq!(machine, system_info::Machine {
            cpus: number as u32,
            profile: ImageProfile::Measure,
            uptime_ns: number,
            frames_total: number << 1,
            frames_free: number >> 1,
heap_bytes: number ^ 1,
heap_frames: number ^ 2,
heap_allocations: number ^ 4,
accounts_closed: number ^ 5,
accounts_not_zero: number ^ 6,
        });
        let counters = client.cpu(cpu).unwrap().counters;
        prop_assert_eq!(counters.runnable, number as u32);
        prop_assert_eq!(counters.runnable_max, number.rotate_left(1) as u32);
        let rest = [
            counters.switches, counters.preemptions, counters.steals, counters.failed_placements,
            counters.reschedule_sent, counters.reschedule_skipped, counters.tlb_requests,
            counters.tlb_failures, counters.idle_entries, counters.idle_ns,
            counters.timer_interrupts, counters.one_shots, counters.handoffs_taken,
            counters.handoffs_missed, counters.syscalls, counters.idle_cooperative,
            counters.idle_dispatch_timer, counters.idle_dispatch_block,
            counters.idle_dispatch_exit, counters.policy_admissions, counters.policy_denials,
        ];
        for (position, value) in rest.into_iter().enumerate() {
            prop_assert_eq!(value, number.rotate_left(position as u32 + 2));
        }
        prop_assert_eq!(server.asked.as_slice(), &[format!("{:?}", system_info::CpuParams { cpu })]);
    }

    #[test]
    fn scheduling_policy_methods(number in any::<u64>(), weight in any::<u16>(), class in 0u16..4) {
        let class = LatencyClass::try_from(class).unwrap();
        let server = &mut Everything { number, ..Everything::default() };
        let mut client = client!(scheduling_policy, server);
        client.set_weight(weight).unwrap();
        client.set_latency_class(class).unwrap();
        let snapshot = client.snapshot().unwrap();
        prop_assert_eq!(snapshot, scheduling_policy::SnapshotResults {
            weight: number as u16,
            class: LatencyClass::IpcServer,
            runtime_ns: number.rotate_left(1),
            virtual_runtime_ns: number.rotate_left(2),
            voluntary_blocks: number.rotate_left(3),
            preemptions: number.rotate_left(4),
            runnable_accumulated_ns: number.rotate_left(5),
        });
        let asked = [
            format!("{:?}", scheduling_policy::SetWeightParams { weight }),
            format!("{:?}", scheduling_policy::SetLatencyClassParams { class }),
        ];
        prop_assert_eq!(server.asked.as_slice(), &asked);
    }
}

#[test]
fn a_call_that_is_answered_later_leaves_no_results() {
    let mut results = [0xa5; 128];
    let mut server = Everything::default();
    let mut words = schema_testing::Words::dirty(16);
    let length =
        schema_wire::Encode::encode(&timer::SleepParams { ns: u64::MAX }, words.bytes_mut());
    assert_eq!(length, Ok(16));
    let served = timer::dispatch(&mut server, 1, words.bytes(), &mut results);
    assert_eq!(served, Ok(schema_wire::Served::Later));
    assert_eq!(results, [0xa5; 128]);
}

#[test]
fn results_that_cannot_fit_are_refused_before_the_method_runs() {
    let mut server = Everything { input: vec![1; 64], ..Everything::default() };
    let mut results = [0; 112];
    for interface in INTERFACES {
        for method in interface.methods {
            let served = serve(&mut server, interface.name, method.ordinal, &[], &mut results);
            assert_eq!(served, Some(Err(Status::ResultTooLarge)), "{}", method.name);
        }
    }
    assert_eq!(server.asked, [""; 0]);
    // The counters of a CPU need more than an inline slot has.
    let served = serve(&mut server, "SystemInfo", 1, &[], &mut [0; 128]);
    assert_eq!(served, Some(Err(Status::ResultTooLarge)));
    assert_eq!(server.asked, [""; 0]);
}

#[test]
fn a_method_that_is_not_there_is_unimplemented() {
    let mut server = Everything::default();
    for interface in INTERFACES {
        for method in [interface.methods.len() as u16, 0x7fff, u16::MAX] {
            let served = serve(&mut server, interface.name, method, &[], &mut [0; 256]);
            assert_eq!(served, Some(Err(Status::Unimplemented)), "{}", interface.name);
        }
    }
}

#[test]
fn an_enum_value_of_another_schema_is_an_invalid_argument() {
    let mut server = Everything::default();
    let mut words = schema_testing::Words::dirty(16);
    let class = LatencyClass::Batch;
    let params = scheduling_policy::SetLatencyClassParams { class };
    let length = schema_wire::Encode::encode(&params, words.bytes_mut()).unwrap();
    words.bytes_mut()[8] = 4;
    let mut results = schema_testing::Words::dirty(128);
    let served =
        scheduling_policy::dispatch(&mut server, 1, &words.bytes()[..length], results.bytes_mut());
    let Ok(schema_wire::Served::Exception(length)) = served else { panic!("{served:?}") };
    let exception = schema_wire::Exception::decode(&results.bytes()[..length]).unwrap();
    assert_eq!(exception.kind(), ExceptionKind::InvalidArgument);
    assert_eq!(server.asked, [""; 0]);
}
