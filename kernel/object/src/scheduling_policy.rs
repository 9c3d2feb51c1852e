//! SchedulingPolicyCap: the calling thread's own weight, latency class and account.

use core_sched_policy::{LatencyClass, Share, Weight};
use kernel_dispatch::{Account, account, set_share};
use kernel_ops::object::Calling;
use kernel_process::Machine;
use kernel_process::machine::process_of;
use schema::scheduling_policy::{Server, SetLatencyClassParams, SetWeightParams, SnapshotResults};
use schema::scheduling_policy_capnp::LatencyClass as Named;
use schema_wire::{Answer, Exception, ExceptionKind, NoResult};

/// What it needs of the kernel.
pub trait Host {
    /// The most that the capability may ask for.
    fn ceiling(&self) -> Weight;
    /// Gives the caller another share, made of the one it asked for last.
    fn set_share(&mut self, change: &dyn Fn(Share) -> Share);
    /// What the caller has counted.
    fn account(&self) -> Account;
    /// Counts what became of a request for another share.
    fn judged(&self, is_admitted: bool);
}

/// A capability of the caller's, in a call.
pub struct Own<'c, 'r, M: Machine> {
    /// The call on it.
    pub calling: &'c mut Calling<'r, M>,
    /// Its ceiling; that of the process's weight if it has none.
    pub ceiling: Option<Weight>,
}

impl<M: Machine> Host for Own<'_, '_, M> {
    fn ceiling(&self) -> Weight {
        let caller = self.calling.caller;
        self.ceiling.unwrap_or_else(|| process_of(caller.m, caller.thread).weight())
    }

    fn set_share(&mut self, change: &dyn Fn(Share) -> Share) {
        let caller = self.calling.caller;
        let key = caller.thread.key();
        if !set_share(caller.m, caller.thread, key, || true, change) {
            caller.m.defect("a thread that calls is gone");
        }
    }

    fn account(&self) -> Account {
        let caller = self.calling.caller;
        let key = caller.thread.key();
        match account(caller.m, caller.thread, key, || true) {
            Some(account) => account,
            None => caller.m.defect("a thread that calls is gone"),
        }
    }

    fn judged(&self, is_admitted: bool) {
        self.calling.caller.m.policy_judged(is_admitted);
    }
}

/// The server.
#[derive(Debug)]
pub struct SchedulingPolicy<'h, H>(pub &'h mut H);

/// The weight of that number, from 1 to `ceiling`.
pub(crate) fn weight_up_to(number: u16, ceiling: Weight) -> Result<Weight, NoResult> {
    match Weight::new(number) {
        Ok(weight) if weight <= ceiling => Ok(weight),
        _ => Err(NoResult::Exception(Exception::with(
            ExceptionKind::InvalidArgument,
            format_args!("weight has to be from {} to {}", Weight::MIN.get(), ceiling.get()),
        ))),
    }
}

/// The class of the schema's name.
pub(crate) const fn class_of(named: Named) -> LatencyClass {
    match named {
        Named::Interactive => LatencyClass::Interactive,
        Named::Normal => LatencyClass::Normal,
        Named::Batch => LatencyClass::Batch,
        Named::IpcServer => LatencyClass::IpcServer,
    }
}

/// The schema's name of a class.
pub(crate) const fn named(class: LatencyClass) -> Named {
    match class {
        LatencyClass::Interactive => Named::Interactive,
        LatencyClass::Normal => Named::Normal,
        LatencyClass::Batch => Named::Batch,
        LatencyClass::IpcServer => Named::IpcServer,
    }
}

impl<H: Host> Server for SchedulingPolicy<'_, H> {
    fn set_weight(&mut self, params: SetWeightParams) -> Answer<()> {
        let weight = weight_up_to(params.weight, self.0.ceiling());
        self.0.judged(weight.is_ok());
        let weight = weight?;
        self.0.set_share(&|share| Share::new(weight, share.class()));
        Ok(())
    }

    fn set_latency_class(&mut self, params: SetLatencyClassParams) -> Answer<()> {
        let class = class_of(params.class);
        self.0.judged(true);
        self.0.set_share(&|share| Share::new(share.weight(), class));
        Ok(())
    }

    fn snapshot(&mut self) -> Answer<SnapshotResults> {
        let counted = self.0.account().counted;
        Ok(SnapshotResults {
            weight: counted.share.weight().get(),
            class: named(counted.share.class()),
            runtime_ns: counted.runtime_ns,
            virtual_runtime_ns: counted.virtual_runtime_ns,
            voluntary_blocks: counted.voluntary_blocks,
            preemptions: counted.preemptions,
            runnable_accumulated_ns: counted.runnable_accumulated_ns,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::refuse;
    use core::cell::Cell;
    use core_sched::{CpuId, Snapshot};
    use core_sched_policy::WeightOutOfRange;

    /// A thread that may weigh up to 200.
    struct Caller {
        ceiling: Weight,
        share: Share,
        judged: Cell<(u32, u32)>,
    }

    fn caller() -> Caller {
        Caller { ceiling: weight(200), share: Share::default(), judged: Cell::new((0, 0)) }
    }

    fn weight(number: u16) -> Weight {
        Weight::new(number).unwrap_or_else(|WeightOutOfRange { asked }| panic!("{asked}"))
    }

    impl Host for Caller {
        fn ceiling(&self) -> Weight {
            self.ceiling
        }
        fn set_share(&mut self, change: &dyn Fn(Share) -> Share) {
            self.share = change(self.share);
        }
        fn account(&self) -> Account {
            let counted = Snapshot {
                share: self.share,
                runtime_ns: 1,
                virtual_runtime_ns: 2,
                voluntary_blocks: 3,
                preemptions: 4,
                runnable_accumulated_ns: 5,
            };
            Account { counted, cpu: CpuId::new(0).unwrap(), is_runnable: true }
        }
        fn judged(&self, is_admitted: bool) {
            let (admitted, denied) = self.judged.get();
            self.judged.set((admitted + u32::from(is_admitted), denied + u32::from(!is_admitted)));
        }
    }

    #[test]
    fn every_number_is_a_weight_up_to_the_ceiling_or_refused_with_the_range() {
        for ceiling in [1, 64, 200, 1024] {
            let mut host = Caller { ceiling: weight(ceiling), ..caller() };
            for number in 0..=u16::MAX {
                let before = host.share;
                let answer =
                    SchedulingPolicy(&mut host).set_weight(SetWeightParams { weight: number });
                if (1..=ceiling).contains(&number) {
                    assert_eq!(answer, Ok(()));
                    assert_eq!(host.share.weight().get(), number);
                    continue;
                }
                let Err(NoResult::Exception(exception)) = answer else { panic!("{number}") };
                assert_eq!(exception.kind(), ExceptionKind::InvalidArgument);
                let Caller { share, .. } = host;
                assert_eq!(share, before, "{number} is not clamped");
                let said = exception.message();
                assert!(said.starts_with("weight has to be from 1 to "), "{said}");
                assert!(said.rsplit(' ').next().is_some_and(|last| last.parse() == Ok(ceiling)));
            }
            let denied = u32::from(u16::MAX) + 1 - u32::from(ceiling);
            assert_eq!(host.judged.get(), (u32::from(ceiling), denied));
        }
    }

    #[test]
    fn weight_and_class_are_changed_one_without_the_other() {
        let mut host = caller();
        for class in LatencyClass::ALL {
            let params = SetLatencyClassParams { class: named(class) };
            assert_eq!(SchedulingPolicy(&mut host).set_latency_class(params), Ok(()));
            let params = SetWeightParams { weight: 100 };
            assert_eq!(SchedulingPolicy(&mut host).set_weight(params), Ok(()));
            assert_eq!((host.share.class(), host.share.weight().get()), (class, 100));
            assert_eq!(class_of(named(class)), class);
        }
        assert_eq!(host.judged.get(), (8, 0));
    }

    #[test]
    fn a_snapshot_is_the_account_and_counts_as_no_request() {
        let mut host = caller();
        let seen = SchedulingPolicy(&mut host).snapshot();
        let expected = SnapshotResults {
            weight: 64,
            class: Named::Normal,
            runtime_ns: 1,
            virtual_runtime_ns: 2,
            voluntary_blocks: 3,
            preemptions: 4,
            runnable_accumulated_ns: 5,
        };
        assert_eq!((seen, host.judged.get()), (Ok(expected), (0, 0)));
        let refused = refuse(ExceptionKind::InvalidArgument, "weight has to be from 1 to 200");
        assert_eq!(weight_up_to(201, weight(200)), Err(refused));
    }
}
