//! `select!`: the set, the choice and its completion in one expression.

/// Waits for one of several channel operations.
///
/// ```text
/// select! {
///     recv(receiver) -> value => …,        // value: Result<T, RecvError>
///     send(sender, expression) -> done => …, // done: Result<(), SendError<T>>
///     default => …,                        // or default(duration) => …
/// }
/// ```
///
/// The expression of a send is evaluated when it is chosen. If the fiber is cancelled while it waits,
/// each arm's result is what its operation says to that: the first receive or send arm runs with
/// `Cancelled`.
#[macro_export]
macro_rules! select {
    ($($arms:tt)*) => {
        $crate::__select!(@parse () () $($arms)*)
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __select {
    // ---- arms, each with a comma, or a block without one ------------------------------------
    (@parse ($($arms:tt)*) () recv($r:expr) -> $p:pat => $body:block $(,)? $($rest:tt)*) => {
        $crate::__select!(@parse ($($arms)* {recv ($r) ($p) ($body)}) () $($rest)*)
    };
    (@parse ($($arms:tt)*) () recv($r:expr) -> $p:pat => $body:expr, $($rest:tt)*) => {
        $crate::__select!(@parse ($($arms)* {recv ($r) ($p) ($body)}) () $($rest)*)
    };
    (@parse ($($arms:tt)*) () recv($r:expr) -> $p:pat => $body:expr) => {
        $crate::__select!(@parse ($($arms)* {recv ($r) ($p) ($body)}) ())
    };
    (@parse ($($arms:tt)*) () send($s:expr, $m:expr) -> $p:pat => $body:block $(,)? $($rest:tt)*) => {
        $crate::__select!(@parse ($($arms)* {send ($s, $m) ($p) ($body)}) () $($rest)*)
    };
    (@parse ($($arms:tt)*) () send($s:expr, $m:expr) -> $p:pat => $body:expr, $($rest:tt)*) => {
        $crate::__select!(@parse ($($arms)* {send ($s, $m) ($p) ($body)}) () $($rest)*)
    };
    (@parse ($($arms:tt)*) () send($s:expr, $m:expr) -> $p:pat => $body:expr) => {
        $crate::__select!(@parse ($($arms)* {send ($s, $m) ($p) ($body)}) ())
    };
    (@parse ($($arms:tt)*) () default($d:expr) => $body:expr $(,)?) => {
        $crate::__select!(@parse ($($arms)*) (after ($d) ($body)))
    };
    (@parse ($($arms:tt)*) () default => $body:expr $(,)?) => {
        $crate::__select!(@parse ($($arms)*) (now ($body)))
    };
    // ---- all parsed: number them ----------------------------------------------------------------
    (@parse ($($arms:tt)*) ($($default:tt)*)) => {
        $crate::__select!(@bind [
            (0 a0) (1 a1) (2 a2) (3 a3) (4 a4) (5 a5) (6 a6) (7 a7)
            (8 a8) (9 a9) (10 a10) (11 a11) (12 a12) (13 a13) (14 a14) (15 a15)
        ] () ($($arms)*) ($($default)*))
    };
    (@bind [($i:tt $a:ident) $($more:tt)*] ($($bound:tt)*)
        ({$kind:ident ($end:expr $(, $m:expr)?) ($p:pat) ($body:expr)} $($arms:tt)*) $default:tt) => {
        $crate::__select!(@bind [$($more)*]
            ($($bound)* {$i $a $kind ($end) ($($m)?) ($p) ($body)}) ($($arms)*) $default)
    };
    (@bind $names:tt ($({$i:tt $a:ident $kind:ident ($end:expr) ($($m:expr)?) ($p:pat) ($body:expr)})*)
        () ($($default:tt)*)) => {{
        $(let $a = &$end;)*
        #[allow(unused_mut)]
        let mut __set = $crate::Select::new();
        $(__set.$kind($a);)*
        match $crate::__select!(@choose __set $($default)*) {
            $(
                ::core::result::Result::Ok(__chosen) if __chosen.index() == $i => {
                    let $p = $crate::__select!(@complete $kind __chosen $a ($($m)?));
                    $body
                }
            )*
            ::core::result::Result::Ok(_) => $crate::__impossible(),
            #[allow(unreachable_patterns)]
            ::core::result::Result::Err(__error) => {
                $crate::__select!(@otherwise __error ($($default)*)
                    $({$a $kind ($($m)?) ($p) ($body)})*)
            }
        }
    }};
    (@choose $set:ident) => { $set.select() };
    (@choose $set:ident now ($body:expr)) => {
        $set.try_select().map_err(|_| $crate::SelectTimeoutError::Timeout)
    };
    (@choose $set:ident after ($d:expr) ($body:expr)) => { $set.select_timeout($d) };
    (@complete recv $chosen:ident $a:ident ()) => { $chosen.recv($a) };
    (@complete send $chosen:ident $a:ident ($m:expr)) => { $chosen.send($a, $m) };
    // ---- nothing was chosen: the default, or the first arm is told of the cancellation --------------
    (@otherwise $error:ident (now ($default:expr)) $($arms:tt)*) => {{
        let _ = $error;
        $default
    }};
    (@otherwise $error:ident (after ($d:expr) ($default:expr)) $($arms:tt)*) => {
        match $error {
            $crate::SelectTimeoutError::Timeout => $default,
            $crate::SelectTimeoutError::Cancelled => $crate::__select!(@cancelled $($arms)*),
        }
    };
    (@otherwise $error:ident () $($arms:tt)*) => {{
        let _ = $error;
        $crate::__select!(@cancelled $($arms)*)
    }};
    (@cancelled {$a:ident recv () ($p:pat) ($body:expr)} $($arms:tt)*) => {{
        let $p = $crate::__recv_cancelled($a);
        $body
    }};
    (@cancelled {$a:ident send ($m:expr) ($p:pat) ($body:expr)} $($arms:tt)*) => {{
        let $p = $crate::__send_cancelled($a, $m);
        $body
    }};
}
