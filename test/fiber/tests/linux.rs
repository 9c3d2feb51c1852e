//! The cases as tests of this machine.

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
