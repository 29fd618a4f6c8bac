//! The two types, the checks over all bits, and the calls of the role macros.

/// Writes out what `__state_bits_parse!` filed.
#[macro_export]
#[doc(hidden)]
macro_rules! __state_bits_emit {
    (
        { [$($outer:tt)*] [$vis:vis] $Name:ident $T:ident }
        { $( { [$($m:tt)*] [$($B:tt)*] [$n:literal] $Role:ident [$mac:ident $($margs:tt)*] } )* }
        { $( [$smac:ident $($sargs:tt)*] )* }
    ) => {
        $crate::__private::paste! {
            $crate::__private::bitflags! {
                $($outer)*
                #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
                $vis struct $Name: $T {
                    $(
                        $($m)*
                        const $($B)* = $crate::__private::bit!($T, $n);
                    )*
                }
            }

            impl $Name {
                /// Name, index and role of each declared bit, in the order of declaration.
                pub const LAYOUT: &'static [$crate::StateBit] = &[
                    $( $crate::StateBit::new(
                        stringify!($($B)*), $n, $crate::Role::$Role,
                    ), )*
                ];
            }

            const _: () = $crate::__private::check_layout($T::BITS, $Name::LAYOUT);

            #[doc = concat!("[`", stringify!($Name), "`] as one atomic word: each bit has the ",
                "operations of its role and no others.")]
            #[repr(transparent)]
            $vis struct [<Atomic $Name>]<P: $crate::Probe = $crate::NoProbe> {
                word: $crate::AtomicFlags<$Name, P>,
            }

            #[allow(dead_code, reason = "a word seldom needs every operation of every bit")]
            impl [<Atomic $Name>] {
                $crate::__const_fn! {
                    /// A word with no bit set, without a probe.
                    pub fn new() -> Self {
                        Self::probed()
                    }
                }

                $crate::__const_fn! {
                    /// A word with `flags` set, without a probe.
                    pub fn with(flags: $Name) -> Self {
                        Self::probed_with(flags)
                    }
                }
            }

            #[allow(dead_code, reason = "a word seldom needs every operation of every bit")]
            impl<P: $crate::Probe> [<Atomic $Name>]<P> {
                $crate::__const_fn! {
                    /// A word with no bit set that reports to `P`.
                    pub fn probed() -> Self {
                        Self::probed_with($Name::empty())
                    }
                }

                $crate::__const_fn! {
                    /// A word with `flags` set that reports to `P`.
                    pub fn probed_with(flags: $Name) -> Self {
                        Self {
                            word: $crate::AtomicFlags::probed_from(
                                <$crate::Storage<$Name>>::new(flags.bits()),
                            ),
                        }
                    }
                }

                /// The word underneath, where any operation on any bit goes and no role is kept.
                #[inline(always)]
                pub const fn as_raw(&self) -> &$crate::AtomicFlags<$Name, P> {
                    &self.word
                }

                /// The whole word, for displays and statistics.
                ///
                /// # Ordering
                /// One relaxed load: orders nothing. A decision about one bit uses the bit's test.
                #[inline(always)]
                pub fn snapshot(&self) -> $Name {
                    self.word.load($crate::__private::Ordering::Relaxed)
                }

                /// The whole word, from its exclusive owner: a plain load.
                #[inline]
                pub fn load_mut(&mut self) -> $Name {
                    self.word.load_mut()
                }

                /// Replaces the word, by its exclusive owner: a plain store. With no bits it is as
                /// fresh as a new one.
                #[inline]
                pub fn store_mut(&mut self, flags: $Name) {
                    self.word.store_mut(flags);
                }

                /// Sets `flags`, by the exclusive owner: plain instructions.
                #[inline]
                pub fn set_mut(&mut self, flags: $Name) {
                    self.word.set_mut(flags);
                }

                /// Clears `flags`, by the exclusive owner: plain instructions.
                #[inline]
                pub fn clear_mut(&mut self, flags: $Name) {
                    self.word.clear_mut(flags);
                }

                /// Takes the word apart.
                #[inline]
                pub fn into_inner(self) -> $Name {
                    self.word.into_inner()
                }
            }

            impl<P: $crate::Probe> ::core::default::Default for [<Atomic $Name>]<P> {
                fn default() -> Self {
                    Self::probed()
                }
            }

            impl ::core::convert::From<$Name> for [<Atomic $Name>] {
                fn from(flags: $Name) -> Self {
                    Self::with(flags)
                }
            }

            impl<P: $crate::Probe> ::core::fmt::Debug for [<Atomic $Name>]<P> {
                fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                    $crate::__private::write_names(
                        stringify!([<Atomic $Name>]), &self.snapshot(), f,
                    )
                }
            }

            $( $crate::$mac! { [$vis] $Name [<Atomic $Name>] $($margs)* } )*
            $( $crate::$smac! { [$vis] $Name [<Atomic $Name>] $($sargs)* } )*
        }
    };
}

/// A `const fn`, except in loom models, whose atomics have no constant constructors.
#[cfg(not(loom))]
#[macro_export]
#[doc(hidden)]
macro_rules! __const_fn {
    ($(#[$m:meta])* $vis:vis fn $($rest:tt)*) => {
        $(#[$m])* $vis const fn $($rest)*
    };
}

/// A `const fn`, except in loom models, whose atomics have no constant constructors.
#[cfg(loom)]
#[macro_export]
#[doc(hidden)]
macro_rules! __const_fn {
    ($(#[$m:meta])* $vis:vis fn $($rest:tt)*) => {
        $(#[$m])* $vis fn $($rest)*
    };
}
