//! The cases as tests of this machine.

// Programs for both systems declare their stacks; here that does nothing.
fiber::stacks!(fibers: [32 << 10; 64], threads: [64 << 10; 5]);

macro_rules! tests {
    ($($module:ident: $($case:ident)*;)*) => {
        $(mod $module {
            $(#[test]
            fn $case() {
                fiber_cases::$module::$case();
            })*
        })*
    };
}

fiber_cases::cases!(tests);
