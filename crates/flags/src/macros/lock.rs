//! Methods of a lock bit with its waiters bit.

/// Writes the methods of one lock bit.
#[macro_export]
#[doc(hidden)]
macro_rules! __state_bit_lock {
    ([$vis:vis] $Name:ident $Atomic:ident $stem:ident $B:ident $n:literal $w:literal) => {
        $crate::__private::paste! {
            #[doc = concat!("Holds `", stringify!($B), "` of a word until it is dropped.")]
            #[allow(dead_code, reason = "a word seldom needs every operation of every bit")]
            $vis type [<$Name $B:lower:camel Guard>]<'a, P = $crate::NoProbe> =
                $crate::BitGuard<'a, $Name, P, $n, $w>;

            #[allow(dead_code, reason = "a word seldom needs every operation of every bit")]
            impl<P: $crate::Probe> $Atomic<P> {
                #[doc = concat!("Whether `", stringify!($B), "` is held now, by anybody.")]
                ///
                /// # Ordering
                /// One relaxed load: orders nothing, whatever it finds.
                #[inline(always)]
                pub fn [<$stem _held>](&self) -> bool {
                    self.word.contains($Name::$B)
                }

                #[doc = concat!("Takes `", stringify!($B), "` if it is free.")]
                ///
                /// # Ordering
                /// Taken: a relaxed load, then an RMW with `Acquire`. Held by another: orders
                /// nothing, as there is nothing to be read (Linux 415d83249709 keeps that for locks
                /// alone).
                #[inline(always)]
                pub fn [<try_ $stem>](&self) -> Option<$crate::BitGuard<'_, $Name, P, $n, $w>> {
                    self.word.try_lock::<$n, $w>()
                }

                #[doc = concat!("Takes `", stringify!($B), "`, spinning for as long as it takes.")]
                ///
                /// # Ordering
                /// `Acquire` when it returns.
                #[inline]
                pub fn [<spin_ $stem>](&self) -> $crate::BitGuard<'_, $Name, P, $n, $w> {
                    self.word.spin_lock::<$n, $w>()
                }

                #[doc = concat!("Releases `", stringify!($B), "` after its guard was leaked.")]
                ///
                /// # Ordering
                /// One RMW with `Release`, also when it was not held. The same RMW tells of waiters
                /// (Linux b91e1302ad9b).
                ///
                /// # Panics
                /// In debug builds when it is not held, with the bit's name.
                #[inline]
                pub fn [<release_ $stem>](&self) {
                    self.word.release_leaked::<$n, $w>();
                }
            }

            $crate::__state_bit_lock_blocking! { $Name $Atomic $stem $B $n $w }
        }
    };
}

/// Writes the blocking methods of one lock bit.
#[cfg(any(feature = "std", loom))]
#[macro_export]
#[doc(hidden)]
macro_rules! __state_bit_lock_blocking {
    ($Name:ident $Atomic:ident $stem:ident $B:ident $n:literal $w:literal) => {
        $crate::__private::paste! {
            #[allow(dead_code, reason = "a word seldom needs every operation of every bit")]
            impl<P: $crate::Probe> $Atomic<P> {
                #[doc = concat!("Takes `", stringify!($B), "`, sleeping while another holds it.")]
                ///
                /// # Ordering
                /// `Acquire` when it returns.
                #[inline]
                pub fn $stem(&self) -> $crate::BitGuard<'_, $Name, P, $n, $w> {
                    self.word.lock::<$n, $w>()
                }

                #[doc = concat!("Takes `", stringify!($B), "`, or gives up after `timeout`.")]
                ///
                /// # Ordering
                /// `Acquire` when it takes it; nothing when it does not.
                #[inline]
                pub fn [<$stem _timeout>](
                    &self,
                    timeout: ::core::time::Duration,
                ) -> Option<$crate::BitGuard<'_, $Name, P, $n, $w>> {
                    self.word.lock_timeout::<$n, $w>(timeout)
                }

                #[doc = concat!("Waits until `", stringify!($B), "` is free, without taking it.")]
                ///
                /// # Ordering
                /// `Acquire` when it returns, whether it slept or not (Linux 8238b4579866).
                #[inline]
                pub fn [<wait_ $stem>](&self) {
                    self.word.wait_clear::<$n, $w>();
                }

                #[doc = concat!("Waits until `", stringify!($B), "` is free, at most for ",
                    "`timeout`; returns whether it is.")]
                ///
                /// # Ordering
                /// `Acquire` when it returns true; nothing when false.
                #[inline]
                pub fn [<wait_ $stem _timeout>](&self, timeout: ::core::time::Duration) -> bool {
                    self.word.wait_clear_timeout::<$n, $w>(timeout)
                }
            }
        }
    };
}

/// Writes the blocking methods of one lock bit: none without an operating system.
#[cfg(not(any(feature = "std", loom)))]
#[macro_export]
#[doc(hidden)]
macro_rules! __state_bit_lock_blocking {
    ($($bit:tt)*) => {};
}

/// A waiters bit has no methods of its own; its lock works it.
#[macro_export]
#[doc(hidden)]
macro_rules! __state_bit_waiters {
    ($($bit:tt)*) => {};
}
