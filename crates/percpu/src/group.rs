//! Many counters side by side: one set of slots for all of them.

/// Declares a struct of counters that share their slots: all fields of one slot lie side by side, on as few
/// cache lines as they fit (16 plain counters: one aligned pair), so that an operation that bumps three of
/// them touches one line, and the group costs the memory of one counter.
///
/// A field is a plain counter, or with `batched` before its name a signed one with an approximate read. Each
/// gets a method of its name, giving a [`CounterField`](crate::CounterField) or a
/// [`BatchedField`](crate::BatchedField). Beside the struct a `...Snapshot` is declared with the exact sums.
///
/// ```
/// cairn_percpu::counter_group! {
///     /// What the cache counts.
///     pub struct CacheStats {
///         /// Look-ups answered.
///         batched hits,
///         /// Look-ups not answered.
///         batched misses,
///         evictions,
///     }
/// }
///
/// static STATS: CacheStats = CacheStats::new();
/// STATS.hits().inc();
/// STATS.evictions().add(2);
/// let before = STATS.snapshot();
/// STATS.hits().add(10);
/// let now = STATS.snapshot();
/// assert_eq!((now.hits, now.misses, now.evictions), (11, 0, 2));
/// assert_eq!(now.since(&before).hits, 10);
/// ```
///
/// A group without fields, or with a name twice, does not compile:
///
/// ```compile_fail
/// cairn_percpu::counter_group! { pub struct Nothing {} }
/// ```
/// ```compile_fail,E0592
/// cairn_percpu::counter_group! { pub struct Twice { hits, batched hits } }
/// ```
#[macro_export]
macro_rules! counter_group {
    ($(#[$meta:meta])* $vis:vis struct $name:ident { $($fields:tt)* }) => {
        $crate::__counter_group! { [$(#[$meta])* $vis $name] [] [0] [0] [0] $($fields)* }
    };
}

/// Goes through the fields one by one, counting words, fields and batched fields, then declares the types.
#[doc(hidden)]
#[macro_export]
macro_rules! __counter_group {
    // A batched field: two words of each slot, and a set of shared words.
    ([$($head:tt)*] [$($done:tt)*] [$word:expr] [$field:expr] [$shared:expr]
        $(#[$meta:meta])* batched $name:ident $(, $($rest:tt)*)?
    ) => {
        $crate::__counter_group! { [$($head)*]
            [$($done)* { [$(#[$meta])*] batched $name [$word] [$field] [$shared] }]
            [$word + 2] [$field + 1] [$shared + 1] $($($rest)*)?
        }
    };
    // A plain field: one word.
    ([$($head:tt)*] [$($done:tt)*] [$word:expr] [$field:expr] [$shared:expr]
        $(#[$meta:meta])* $name:ident $(, $($rest:tt)*)?
    ) => {
        $crate::__counter_group! { [$($head)*]
            [$($done)* { [$(#[$meta])*] plain $name [$word] [$field] [$shared] }]
            [$word + 1] [$field + 1] [$shared] $($($rest)*)?
        }
    };
    ([$(#[$meta:meta])* $vis:vis $name:ident] [] $([$count:expr])*) => {
        ::core::compile_error!(::core::concat!(
            "counter_group! `", ::core::stringify!($name),
            "` declares no counter: name at least one, as in `hits` or `batched hits`"
        ));
    };
    ([$(#[$meta:meta])* $vis:vis $name:ident]
        [$({ [$(#[$fmeta:meta])*] $kind:ident $fname:ident [$fword:expr] [$fnum:expr] [$fshared:expr] })+]
        [$words:expr] [$fields:expr] [$shared:expr]
    ) => { $crate::__private::paste! {
        $(#[$meta])*
        #[derive(Debug)]
        $vis struct $name {
            store: $crate::__private::Store<{ $crate::__private::lines($words) }, { $fields }>,
        }

        #[allow(dead_code, reason = "which of these the declaring crate calls is its own business")]
        impl $name {
            /// All counters at 0; the slots are allocated at the first add.
            $vis const fn new() -> Self {
                Self { store: $crate::__private::Store::new($shared) }
            }

            /// Chooses backend, slots and batch.
            $vis fn builder() -> $crate::Builder<Self> {
                $crate::Builder::__new()
            }

            $(
                $(#[$fmeta])*
                #[doc = ::core::concat!("\n\nThe counter `", ::core::stringify!($fname), "`.")]
                #[inline(always)]
                $vis fn $fname(&self) -> $crate::__private::field::$kind<
                    '_, { $crate::__private::lines($words) }, { $fields },
                > {
                    $crate::__private::field::$kind::__new(&self.store, $fword, $fnum, $fshared)
                }
            )+

            /// The exact sum of each counter. Each is read for itself, while others may add.
            $vis fn snapshot(&self) -> [<$name Snapshot>] {
                [<$name Snapshot>] { $($fname: self.$fname().sum(),)+ }
            }

            /// The exact sums so far, and zero from here on.
            $vis fn drain(&mut self) -> [<$name Snapshot>] {
                let sums = self.snapshot();
                self.store.__clear();
                sums
            }

            /// Forgets what the parent process counted; without it the child of a fork goes on from there.
            $vis fn reset_after_fork(&mut self) {
                self.store.__clear();
            }

            /// The batch of the batched fields.
            $vis fn batch(&self) -> u32 {
                self.store.__batch()
            }

            /// Changes the batch of the batched fields while others add; bounds stay right, see
            /// [`Batched::set_batch`]($crate::Batched::set_batch).
            ///
            /// # Errors
            /// A batch of 0, or one above [`MAX_BATCH`]($crate::MAX_BATCH).
            $vis fn set_batch(&self, batch: u32) -> ::core::result::Result<(), $crate::BatchError> {
                self.store.__try_set_batch(batch)
            }

            /// The backend that counts, and why it is that one. Allocates the slots if there are none.
            $vis fn backend(&self) -> $crate::Effective {
                self.store.__effective()
            }

            /// How many adds to plain counters found no slot of their own.
            $vis fn overflow_hits(&self) -> u64 {
                self.store.__overflow_hits()
            }

            /// Bytes in use, this value included.
            $vis fn memory(&self) -> usize {
                self.store.__bytes()
            }
        }

        impl ::core::default::Default for $name {
            fn default() -> Self {
                Self::new()
            }
        }

        impl $crate::__private::Build for $name {
            fn from_parts(parts: $crate::__private::Parts) -> Self {
                Self { store: parts.store($shared) }
            }
        }

        #[doc = ::core::concat!("The sums of a [`", ::core::stringify!($name), "`] at one moment.")]
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        $vis struct [<$name Snapshot>] {
            $(
                $(#[$fmeta])*
                #[doc = ::core::concat!("\n\nThe sum of `", ::core::stringify!($fname), "`.")]
                $vis $fname: $crate::__private::value::$kind,
            )+
        }

        #[allow(dead_code, reason = "which of these the declaring crate calls is its own business")]
        impl [<$name Snapshot>] {
            /// What was added since `earlier`, per counter; right across a wrap.
            #[must_use]
            $vis fn since(&self, earlier: &Self) -> Self {
                Self { $($fname: self.$fname.wrapping_sub(earlier.$fname),)+ }
            }

            /// Each counter's name and sum, in the order of declaration.
            $vis fn named(&self) -> [(&'static str, i128); $fields] {
                [$((::core::stringify!($fname), i128::from(self.$fname)),)+]
            }
        }
    } };
    // Anything else is no field.
    ([$(#[$meta:meta])* $vis:vis $name:ident] [$($done:tt)*] [$word:expr] [$field:expr] [$shared:expr]
        $($other:tt)+
    ) => {
        ::core::compile_error!(::core::concat!(
            "counter_group! `", ::core::stringify!($name),
            "`: expected `name` or `batched name`, found `", ::core::stringify!($($other)+), "`"
        ));
    };
}
