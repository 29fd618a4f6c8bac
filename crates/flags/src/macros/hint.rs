//! Methods of a hint bit, and of one that is configured out.

/// Writes the methods of one hint bit.
#[macro_export]
#[doc(hidden)]
macro_rules! __state_bit_hint {
    ([$vis:vis] $Name:ident $Atomic:ident $stem:ident $B:ident $n:literal) => {
        $crate::__private::paste! {
            #[allow(dead_code, reason = "a word seldom needs every operation of every bit")]
            impl<P: $crate::Probe> $Atomic<P> {
                #[doc = concat!("Whether `", stringify!($B), "` is set.")]
                ///
                /// # Ordering
                /// One relaxed load: orders nothing, whatever it finds.
                #[inline(always)]
                pub fn $stem(&self) -> bool {
                    self.word.contains($Name::$B)
                }

                #[doc = concat!("Sets `", stringify!($B), "`, looking first. Returns whether this ",
                    "call changed it.")]
                ///
                /// # Ordering
                /// Clear: a relaxed load and a relaxed RMW. Set: the load alone, which leaves the
                /// cache line shared (Linux 60f91826ca62). Orders nothing in either case: losing
                /// the set to a concurrent clear must be harmless.
                #[inline(always)]
                pub fn [<set_ $stem>](&self) -> bool {
                    self.word.set_if_clear($Name::$B)
                }

                #[doc = concat!("Sets `", stringify!($B), "` by an RMW, set or not.")]
                ///
                /// # Ordering
                /// One relaxed RMW, also when nothing changes; no order is promised, although some
                /// processors give one (`set_bit()` of Linux, `Documentation/atomic_bitops.txt`).
                #[inline(always)]
                pub fn [<set_ $stem _always>](&self) {
                    self.word.set($Name::$B, $crate::__private::Ordering::Relaxed);
                }

                #[doc = concat!("Sets `", stringify!($B), "` in the form that `policy` says.")]
                ///
                /// # Ordering
                /// Orders nothing under either policy, whether the bit changes or not.
                #[inline(always)]
                pub fn [<set_ $stem _with>](&self, policy: $crate::SetPolicy) {
                    self.word.set_with($Name::$B, policy);
                }

                #[doc = concat!("Clears `", stringify!($B), "`, set or not.")]
                ///
                /// # Ordering
                /// One relaxed RMW, also when nothing changes: orders nothing (`clear_bit()` of
                /// Linux, which does not look first either).
                #[inline(always)]
                pub fn [<clear_ $stem>](&self) {
                    self.word.clear($Name::$B, $crate::__private::Ordering::Relaxed);
                }

                #[doc = concat!("Clears `", stringify!($B), "`, looking first. Returns whether ",
                    "this call changed it.")]
                ///
                /// # Ordering
                /// Set: a relaxed load and a relaxed RMW. Clear: the load alone. Orders nothing.
                #[inline(always)]
                pub fn [<clear_ $stem _if_set>](&self) -> bool {
                    self.word.clear_if_set($Name::$B, $crate::__private::Ordering::Relaxed)
                }
            }
        }
    };
}

/// Writes the methods of a bit that does not exist: callers compile, and cost nothing.
#[macro_export]
#[doc(hidden)]
macro_rules! __state_bit_stub {
    ([$vis:vis] $Name:ident $Atomic:ident $stem:ident $B:ident) => {
        $crate::__private::paste! {
            #[allow(dead_code, reason = "a word seldom needs every operation of every bit")]
            #[allow(clippy::unused_self, reason = "stands in for an operation on the word")]
            impl<P: $crate::Probe> $Atomic<P> {
                #[doc = concat!("`", stringify!($B), "` is configured out: never set.")]
                #[inline(always)]
                pub const fn $stem(&self) -> bool {
                    false
                }

                #[doc = concat!("`", stringify!($B), "` is configured out: does nothing.")]
                #[inline(always)]
                pub const fn [<set_ $stem>](&self) -> bool {
                    false
                }

                #[doc = concat!("`", stringify!($B), "` is configured out: does nothing.")]
                #[inline(always)]
                pub const fn [<set_ $stem _always>](&self) {}

                #[doc = concat!("`", stringify!($B), "` is configured out: does nothing.")]
                #[inline(always)]
                pub const fn [<set_ $stem _with>](&self, _policy: $crate::SetPolicy) {}

                #[doc = concat!("`", stringify!($B), "` is configured out: does nothing.")]
                #[inline(always)]
                pub const fn [<clear_ $stem>](&self) {}

                #[doc = concat!("`", stringify!($B), "` is configured out: does nothing.")]
                #[inline(always)]
                pub const fn [<clear_ $stem _if_set>](&self) -> bool {
                    false
                }
            }
        }
    };
}
