//! `state_bits!`: from a list of bits with roles to a flag type, an atomic word and its methods.
//!
//! The expansion goes in three steps. `__state_bits_parse!` eats one declaration at a time, refuses
//! what has no sound meaning by name, and files the rest in one shape; `__state_bits_emit!` writes
//! the two types and the checks that need all bits at once; the role macros in `macros/` write the
//! methods of one bit.

mod emit;
mod hint;
mod lock;
mod plain;
mod publish;
mod work;

/// Declares a flag type, its atomic word, and the methods that the role of each bit allows.
///
/// ```
/// use cairn_flags::state_bits;
///
/// state_bits! {
///     /// State of one buffer.
///     pub struct BufferState: u32 {
///         /// Checked before; checking again would only cost time.
///         const VERIFIED = hint(0);
///         /// The contents are valid.
///         const UPTODATE = publish(1);
///         /// The contents must be written.
///         const DIRTY = work(2);
///         /// Somebody works on it.
///         const LOCK = lock(3, waiters = 4);
///         /// Belongs to the file system.
///         const META = plain(5);
///         /// Just allocated. `new` is taken by the constructor, so its methods say `fresh`.
///         const NEW = plain(6) as fresh;
///         /// Configured out.
///         const POISONED = stub;
///     }
/// }
///
/// let state = AtomicBufferState::new();
/// {
///     let _guard = state.lock();
///     state.publish_uptodate();
/// }
/// state.set_verified(); // an RMW
/// state.set_verified(); // a load
/// state.mark_dirty();
/// assert_eq!(format!("{state:?}"), "AtomicBufferState(VERIFIED | UPTODATE | DIRTY)");
/// assert!(state.take_dirty() && !state.dirty() && state.uptodate());
/// assert!(!state.poisoned());
/// ```
///
/// # What it makes
/// For `struct Name: T`, `T` being `u8`, `u16`, `u32`, `u64` or `usize`:
///
/// - `Name`, a [`bitflags`] type (`Debug`, `Clone`, `Copy`, `PartialEq`, `Eq`, `PartialOrd`, `Ord`,
///   `Hash` are derived) with a constant per bit, and `Name::LAYOUT`, the [`StateBit`] list;
/// - `AtomicName<P: Probe = NoProbe>`, the word: `const new()`, `const with(flags)`, the same with a
///   probe as `probed()` and `probed_with(flags)`, `snapshot()` for displays, the `&mut self` forms
///   `load_mut`, `store_mut`, `set_mut`, `clear_mut`, `into_inner`, and `as_raw()`, the
///   [`AtomicFlags`] underneath, where roles no longer hold;
/// - per bit the methods below, named after the bit in lower case or after the word given by `as`;
/// - for each lock bit `L` the waiters bit `L_WAITERS` and a guard type `NameLGuard`.
///
/// | declared | methods |
/// |---|---|
/// | `const B = hint(n)` | `b`, `set_b`, `set_b_always`, `set_b_with(policy)`, `clear_b`, `clear_b_if_set` |
/// | `const B = publish(n)` | `b` (acquire), `publish_b`, `retract_b_mut` (`&mut self`), `unsafe retract_b` |
/// | `const B = work(n)` | `b`, `mark_b`, `mark_b_always`, `take_b` |
/// | `const B = lock(n, waiters = m)` | `try_b`, `b`, `b_timeout`, `spin_b`, `b_held`, `wait_b`, `wait_b_timeout`, `release_b` |
/// | `const B = plain(n)` | `b`, `set_b`, `set_b_if_clear`, `clear_b`, `clear_b_if_set`, `assign_b`, `test_and_set_b`, `test_and_clear_b` |
/// | `const B = stub` | those of `hint`, doing nothing and finding nothing set; takes no bit |
///
/// # What does not compile
/// A bit declared twice, in one role or two; a waiters bit without a lock and a lock without one; a
/// bit beyond the word; a role that does not exist. The message names the bit. And no role's method
/// exists for a bit of another role:
///
/// ```compile_fail
/// cairn_flags::state_bits! {
///     pub struct State: u32 { const DIRTY = work(0); }
/// }
/// AtomicState::new().set_dirty(); // check-first without a fence would lose work
/// ```
///
/// [`StateBit`]: crate::StateBit
/// [`AtomicFlags`]: crate::AtomicFlags
#[macro_export]
macro_rules! state_bits {
    (
        $(#[$($outer:tt)*])*
        $vis:vis struct $Name:ident : $T:ident { $($bits:tt)* }
    ) => {
        $crate::__state_bits_word! { $T { [$(#[$($outer)*])*] [$vis] $Name $T } $($bits)* }
    };
}

/// Lets the integers pass that a word can be made of.
#[macro_export]
#[doc(hidden)]
macro_rules! __state_bits_word {
    (u8 $head:tt $($bits:tt)*) => { $crate::__state_bits_parse! { $head {} {} $($bits)* } };
    (u16 $head:tt $($bits:tt)*) => { $crate::__state_bits_parse! { $head {} {} $($bits)* } };
    (u32 $head:tt $($bits:tt)*) => { $crate::__state_bits_parse! { $head {} {} $($bits)* } };
    (u64 $head:tt $($bits:tt)*) => { $crate::__state_bits_parse! { $head {} {} $($bits)* } };
    (usize $head:tt $($bits:tt)*) => { $crate::__state_bits_parse! { $head {} {} $($bits)* } };
    ($T:ident { $outer:tt $vis:tt $Name:ident $U:ident } $($bits:tt)*) => {
        compile_error! { concat!("`", stringify!($Name), "`: the word must be u8, u16, u32, u64 ",
            "or usize, not `", stringify!($T), "`") }
    };
}

/// Files the declarations: `{ head } { filed bits } { filed stubs } declarations...`.
#[macro_export]
#[doc(hidden)]
macro_rules! __state_bits_parse {
    ({ $($head:tt)* } { $($bits:tt)* } { $($stubs:tt)* }) => {
        $crate::__state_bits_emit! { { $($head)* } { $($bits)* } { $($stubs)* } }
    };

    // A declaration without `as` takes its bit's name in lower case.
    ({ $($head:tt)* } { $($bits:tt)* } { $($stubs:tt)* }
        $(#[$($m:tt)*])* const $B:ident = $role:ident $(($($arg:tt)*))? ; $($rest:tt)*) => {
        $crate::__state_bits_parse! { { $($head)* } { $($bits)* } { $($stubs)* }
            $(#[$($m)*])* const $B = $role $(($($arg)*))? as [<$B:lower>] ; $($rest)* }
    };

    ({ $($head:tt)* } { $($bits:tt)* } { $($stubs:tt)* }
        $(#[$($m:tt)*])* const $B:ident = hint($n:literal $(,)?) as $stem:tt ; $($rest:tt)*) => {
        $crate::__state_bits_parse! { { $($head)* }
            { $($bits)* { [$(#[$($m)*])*] [$B] [$n] Hint [__state_bit_hint $stem $B $n] } }
            { $($stubs)* } $($rest)* }
    };
    ({ $($head:tt)* } { $($bits:tt)* } { $($stubs:tt)* }
        $(#[$($m:tt)*])* const $B:ident = publish($n:literal $(,)?) as $stem:tt ; $($rest:tt)*) => {
        $crate::__state_bits_parse! { { $($head)* }
            { $($bits)* { [$(#[$($m)*])*] [$B] [$n] Publish [__state_bit_publish $stem $B $n] } }
            { $($stubs)* } $($rest)* }
    };
    ({ $($head:tt)* } { $($bits:tt)* } { $($stubs:tt)* }
        $(#[$($m:tt)*])* const $B:ident = work($n:literal $(,)?) as $stem:tt ; $($rest:tt)*) => {
        $crate::__state_bits_parse! { { $($head)* }
            { $($bits)* { [$(#[$($m)*])*] [$B] [$n] Work [__state_bit_work $stem $B $n] } }
            { $($stubs)* } $($rest)* }
    };
    ({ $($head:tt)* } { $($bits:tt)* } { $($stubs:tt)* }
        $(#[$($m:tt)*])* const $B:ident = plain($n:literal $(,)?) as $stem:tt ; $($rest:tt)*) => {
        $crate::__state_bits_parse! { { $($head)* }
            { $($bits)* { [$(#[$($m)*])*] [$B] [$n] Plain [__state_bit_plain $stem $B $n] } }
            { $($stubs)* } $($rest)* }
    };
    ({ $($head:tt)* } { $($bits:tt)* } { $($stubs:tt)* }
        $(#[$($m:tt)*])* const $B:ident = lock($n:literal, waiters = $w:literal $(,)?) as $stem:tt ;
        $($rest:tt)*) => {
        $crate::__state_bits_parse! { { $($head)* }
            { $($bits)*
                { [$(#[$($m)*])*] [$B] [$n] Lock [__state_bit_lock $stem $B $n $w] }
                {
                    [#[doc = concat!("Somebody waits for `", stringify!($B), "`.")]]
                    [[<$B _WAITERS>]] [$w] Waiters [__state_bit_waiters $stem $B $w]
                }
            }
            { $($stubs)* } $($rest)* }
    };
    ({ $($head:tt)* } { $($bits:tt)* } { $($stubs:tt)* }
        $(#[$($m:tt)*])* const $B:ident = stub as $stem:tt ; $($rest:tt)*) => {
        $crate::__state_bits_parse! { { $($head)* } { $($bits)* }
            { $($stubs)* [__state_bit_stub $stem $B] } $($rest)* }
    };

    // What has no sound meaning.
    ({ $($head:tt)* } { $($bits:tt)* } { $($stubs:tt)* }
        $(#[$($m:tt)*])* const $B:ident = lock($n:literal $(,)?) as $stem:tt ; $($rest:tt)*) => {
        compile_error! { concat!("state bit `", stringify!($B),
            "`: a lock needs a waiters bit: `lock(", stringify!($n), ", waiters = BIT)`") }
    };
    ({ $($head:tt)* } { $($bits:tt)* } { $($stubs:tt)* }
        $(#[$($m:tt)*])* const $B:ident = waiters $(($($arg:tt)*))? as $stem:tt ; $($rest:tt)*) => {
        compile_error! { concat!("state bit `", stringify!($B), "`: a waiters bit without a lock; ",
            "it is declared by the lock bit it belongs to: `lock(BIT, waiters = BIT)`") }
    };
    ({ $($head:tt)* } { $($bits:tt)* } { $($stubs:tt)* }
        $(#[$($m:tt)*])* const $B:ident = $role:ident($n:literal, waiters = $w:literal $(,)?)
        as $stem:tt ; $($rest:tt)*) => {
        compile_error! { concat!("state bit `", stringify!($B), "`: a waiters bit without a lock: ",
            "role `", stringify!($role), "` has none, only `lock(BIT, waiters = BIT)` has") }
    };
    ({ $($head:tt)* } { $($bits:tt)* } { $($stubs:tt)* }
        $(#[$($m:tt)*])* const $B:ident = $role:ident $(($($arg:tt)*))? as $stem:tt ; $($rest:tt)*) => {
        compile_error! { concat!("state bit `", stringify!($B), "`: no role `",
            stringify!($role $(($($arg)*))?), "`; roles are hint(BIT), publish(BIT), work(BIT), ",
            "lock(BIT, waiters = BIT), plain(BIT) and stub, BIT being a number") }
    };
    ({ $($head:tt)* } { $($bits:tt)* } { $($stubs:tt)* }
        $(#[$($m:tt)*])* const $B:ident = $role:ident ($($arg:tt)*) $more:tt $($rest:tt)*) => {
        compile_error! { concat!("state bit `", stringify!($B), "`: role clash: one role per bit, ",
            "but `", stringify!($more), "` follows `", stringify!($role($($arg)*)), "`") }
    };
    ({ $($head:tt)* } { $($bits:tt)* } { $($stubs:tt)* } $($rest:tt)+) => {
        compile_error! { concat!("expected `const NAME = role(BIT);`, found `",
            stringify!($($rest)+), "`") }
    };
}
