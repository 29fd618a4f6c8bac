//! Methods of a plain bit, whose orderings the caller picks.

/// Writes the methods of one plain bit.
#[macro_export]
#[doc(hidden)]
macro_rules! __state_bit_plain {
    ([$vis:vis] $Name:ident $Atomic:ident $stem:ident $B:ident $n:literal) => {
        $crate::__private::paste! {
            #[allow(dead_code, reason = "a word seldom needs every operation of every bit")]
            impl<P: $crate::Probe> $Atomic<P> {
                #[doc = concat!("Whether `", stringify!($B), "` is set.")]
                ///
                /// # Ordering
                /// One load with `order`, whatever it finds.
                #[inline(always)]
                pub fn $stem(&self, order: $crate::__private::Ordering) -> bool {
                    self.word.load(order).contains($Name::$B)
                }

                #[doc = concat!("Sets `", stringify!($B), "`, set or not.")]
                ///
                /// # Ordering
                /// One RMW with `order`, also when nothing changes.
                #[inline(always)]
                pub fn [<set_ $stem>](&self, order: $crate::__private::Ordering) {
                    self.word.set($Name::$B, order);
                }

                #[doc = concat!("Sets `", stringify!($B), "`, looking first. Returns whether this ",
                    "call changed it.")]
                ///
                /// # Ordering
                /// A relaxed load and a relaxed RMW when clear, the load alone when set: orders
                /// nothing. See the role `hint` for when that is sound.
                #[inline(always)]
                pub fn [<set_ $stem _if_clear>](&self) -> bool {
                    self.word.set_if_clear($Name::$B)
                }

                #[doc = concat!("Clears `", stringify!($B), "`, set or not.")]
                ///
                /// # Ordering
                /// One RMW with `order`, also when nothing changes.
                #[inline(always)]
                pub fn [<clear_ $stem>](&self, order: $crate::__private::Ordering) {
                    self.word.clear($Name::$B, order);
                }

                #[doc = concat!("Clears `", stringify!($B), "`, looking first. Returns whether ",
                    "this call changed it.")]
                ///
                /// # Ordering
                /// Set: a relaxed load, then an RMW with `order`. Clear: the relaxed load alone,
                /// which orders nothing.
                #[inline(always)]
                pub fn [<clear_ $stem _if_set>](&self, order: $crate::__private::Ordering) -> bool {
                    self.word.clear_if_set($Name::$B, order)
                }

                #[doc = concat!("Sets `", stringify!($B), "` if `value`, else clears it.")]
                ///
                /// # Ordering
                /// One RMW with `order`, also when nothing changes.
                #[inline(always)]
                pub fn [<assign_ $stem>](&self, value: bool, order: $crate::__private::Ordering) {
                    self.word.assign($Name::$B, value, order);
                }

                #[doc = concat!("Sets `", stringify!($B), "`; returns whether it was set before.")]
                ///
                /// # Ordering
                /// One RMW with `order`, also when it was set before: never looks first, for callers
                /// rely on the order of a failure (Linux 415d83249709).
                #[inline(always)]
                pub fn [<test_and_set_ $stem>](&self, order: $crate::__private::Ordering) -> bool {
                    self.word.test_and_set::<$n>(order)
                }

                #[doc = concat!("Clears `", stringify!($B), "`; returns whether it was set before.")]
                ///
                /// # Ordering
                /// One RMW with `order`, also when it was clear before: never looks first, for
                /// callers rely on the order of a failure (Linux 415d83249709).
                #[inline(always)]
                pub fn [<test_and_clear_ $stem>](&self, order: $crate::__private::Ordering) -> bool {
                    self.word.test_and_clear::<$n>(order)
                }
            }
        }
    };
}
