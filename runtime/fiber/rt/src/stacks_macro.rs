//! `stacks!`: how a program declares its stacks.

/// Declares the stacks of a program's fibers and of its threads, as `[bytes; count]`. Once, in the
/// program's root:
///
/// ```ignore
/// fiber::stacks!(fibers: [32 << 10; 64], threads: [64 << 10; 5]);
/// ```
///
/// On capOS they are part of the program, each with a guard below it; the bytes are a multiple of 4096
/// and at least 8192. There are as many fibers at once, in all runtimes together, and as many threads:
/// a runtime's workers, as many again if it is elastic, its monitor, and each
/// [`Thread`](crate::Thread). On Linux stacks are mapped when they are wanted, and this does nothing.
#[cfg(target_os = "none")]
#[macro_export]
#[allow_internal_unsafe]
macro_rules! stacks {
    (
        fibers: [$fiber_bytes:expr; $fibers:expr],
        threads: [$thread_bytes:expr; $threads:expr] $(,)?
    ) => {
        $crate::declare::guarded! {
            static CAPOS_FIBERS: [$fiber_bytes; $fibers];
            static CAPOS_THREADS: [$thread_bytes; $threads];
        }
        #[unsafe(no_mangle)]
        static CAPOS_FIBER_STACKS: $crate::declare::Declared =
            $crate::declare::Declared::new(&CAPOS_FIBERS, &CAPOS_THREADS);
    };
}

/// Declares the stacks of a program's fibers and of its threads, as `[bytes; count]`, for capOS. On
/// Linux, here, stacks are mapped when they are wanted, and this does nothing.
#[cfg(not(target_os = "none"))]
#[macro_export]
macro_rules! stacks {
    (
        fibers: [$fiber_bytes:expr; $fibers:expr],
        threads: [$thread_bytes:expr; $threads:expr] $(,)?
    ) => {
        const _: [usize; 4] = [$fiber_bytes, $fibers, $thread_bytes, $threads];
    };
}
