//! `select!` and `select_biased!`: the set, the choice and its completion in one expression.

/// Waits for one of several channel operations; if several are ready each is as likely to be chosen.
///
/// ```text
/// select! {
///     recv(receiver) -> value => …,          // value: Result<T, RecvError>
///     send(sender, expression) -> done => …, // done: Result<(), SendError<T>>
///     default => …,                          // or default(duration) => …
///     cancelled => …,
/// }
/// ```
///
/// The arms come in any order; `default` and `cancelled` may be left out. The expression of a send is
/// evaluated when it is chosen, and only then.
///
/// If the fiber is cancelled while it waits, `cancelled` runs. Without it the first receive of the list
/// runs, with `Err(RecvError::Cancelled)`; a set of sends alone that waits has to have it. An empty set
/// waits for the cancellation.
#[macro_export]
macro_rules! select {
    ($($arms:tt)*) => {
        $crate::__select!(@parse new (() () ()) $($arms)*)
    };
}

/// As `select!`, but of the arms that are ready the first one in the list is chosen.
#[macro_export]
macro_rules! select_biased {
    ($($arms:tt)*) => {
        $crate::__select!(@parse new_biased (() () ()) $($arms)*)
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __select {
    // ---- one arm after the other, each with a comma, or a block without one ---------------------
    (@parse $new:ident $state:tt
        $case:ident $(($($args:tt)*))? $(-> $p:pat)? => $body:block, $($rest:tt)*) => {
        $crate::__select!(@case $new $state $case ($($($args)*)?) ($($p)?) ($body) $($rest)*)
    };
    (@parse $new:ident $state:tt
        $case:ident $(($($args:tt)*))? $(-> $p:pat)? => $body:expr, $($rest:tt)*) => {
        $crate::__select!(@case $new $state $case ($($($args)*)?) ($($p)?) ($body) $($rest)*)
    };
    (@parse $new:ident $state:tt
        $case:ident $(($($args:tt)*))? $(-> $p:pat)? => $body:block $($rest:tt)*) => {
        $crate::__select!(@case $new $state $case ($($($args)*)?) ($($p)?) ($body) $($rest)*)
    };
    (@parse $new:ident $state:tt
        $case:ident $(($($args:tt)*))? $(-> $p:pat)? => $body:expr) => {
        $crate::__select!(@case $new $state $case ($($($args)*)?) ($($p)?) ($body))
    };
    // ---- what it is: the names written here are new ones for each arm ---------------------------
    (@case $new:ident (($($arms:tt)*) $default:tt $cancelled:tt)
        recv ($r:expr $(,)?) ($p:pat) ($body:expr) $($rest:tt)*) => {
        $crate::__select!(@parse $new
            (($($arms)* {__index __end recv ($r) () ($p) ($body)}) $default $cancelled) $($rest)*)
    };
    (@case $new:ident (($($arms:tt)*) $default:tt $cancelled:tt)
        send ($s:expr, $m:expr $(,)?) ($p:pat) ($body:expr) $($rest:tt)*) => {
        $crate::__select!(@parse $new
            (($($arms)* {__index __end send ($s) ($m) ($p) ($body)}) $default $cancelled) $($rest)*)
    };
    (@case $new:ident ($arms:tt () $cancelled:tt) default () () ($body:expr) $($rest:tt)*) => {
        $crate::__select!(@parse $new ($arms (now ($body)) $cancelled) $($rest)*)
    };
    (@case $new:ident ($arms:tt () $cancelled:tt)
        default ($d:expr $(,)?) () ($body:expr) $($rest:tt)*) => {
        $crate::__select!(@parse $new ($arms (after ($d) ($body)) $cancelled) $($rest)*)
    };
    (@case $new:ident ($arms:tt $default:tt ()) cancelled () () ($body:expr) $($rest:tt)*) => {
        $crate::__select!(@parse $new ($arms $default ($body)) $($rest)*)
    };
    (@case $new:ident $state:tt $($rest:tt)*) => {
        ::core::compile_error!(
            "an arm of `select!` is `recv(receiver) -> pattern => …`, \
             `send(sender, value) -> pattern => …`, or once `default => …`, `default(duration) => …` \
             or `cancelled => …`"
        )
    };
    // ---- all parsed -----------------------------------------------------------------------------
    (@parse $new:ident (
        ($({$i:ident $a:ident $kind:ident ($end:expr) ($($m:expr)?) ($p:pat) ($body:expr)})*)
        $default:tt $cancelled:tt
    )) => {{
        $(let $a = &$end;)*
        let mut __set = $crate::Select::$new();
        $(let $i = __set.$kind($a);)*
        match $crate::__select!(@choose __set $default) {
            $(
                ::core::result::Result::Ok(__chosen) if __chosen.index() == $i => {
                    let $p = $crate::__select!(@complete $kind __chosen $a ($($m)?));
                    $body
                }
            )*
            ::core::result::Result::Ok(_) => $crate::__impossible(),
            ::core::result::Result::Err(__error) => {
                $crate::__select!(@otherwise __error $default $cancelled
                    $({$a $kind ($p) ($body)})*)
            }
        }
    }};
    (@parse $($rest:tt)*) => {
        ::core::compile_error!("arms of `select!` are separated by commas, and begin with a word")
    };
    (@choose $set:ident ()) => { $set.select() };
    (@choose $set:ident (now ($body:expr))) => { $set.try_select() };
    (@choose $set:ident (after ($d:expr) ($body:expr))) => { $set.select_timeout($d) };
    (@complete recv $chosen:ident $a:ident ()) => { $chosen.recv($a) };
    (@complete send $chosen:ident $a:ident ($m:expr)) => { $chosen.send($a, $m) };
    // ---- nothing was chosen -----------------------------------------------------------------------
    (@otherwise $error:ident (now ($default:expr)) $cancelled:tt $($arms:tt)*) => {{
        let _ = $error;
        $default
    }};
    (@otherwise $error:ident (after ($d:expr) ($default:expr)) ()) => {{
        let _ = $error;
        $default
    }};
    (@otherwise $error:ident (after ($d:expr) ($default:expr)) $cancelled:tt $($arms:tt)*) => {
        match $error {
            $crate::SelectTimeoutError::Timeout => $default,
            $crate::SelectTimeoutError::Cancelled => {
                $crate::__select!(@cancelled $cancelled $($arms)*)
            }
        }
    };
    (@otherwise $error:ident () ()) => {{
        let _ = $error;
    }};
    (@otherwise $error:ident () $cancelled:tt $($arms:tt)*) => {{
        let _ = $error;
        $crate::__select!(@cancelled $cancelled $($arms)*)
    }};
    // ---- cancelled: its own arm, or the first that receives ---------------------------------------
    (@cancelled ($body:expr) $($arms:tt)*) => { $body };
    (@cancelled () {$a:ident recv ($p:pat) ($body:expr)} $($arms:tt)*) => {{
        let $p = $crate::__recv_cancelled($a);
        $body
    }};
    (@cancelled () {$a:ident send $p:tt $body:tt} $($arms:tt)*) => {
        $crate::__select!(@cancelled () $($arms)*)
    };
    (@cancelled ()) => {
        ::core::compile_error!(
            "a `select!` of sends that waits needs an arm `cancelled => …`: \
             no value is made for a send that is not chosen"
        )
    };
}
