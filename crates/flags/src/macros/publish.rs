//! Methods of a publish bit.

/// Writes the methods of one publish bit.
#[macro_export]
#[doc(hidden)]
macro_rules! __state_bit_publish {
    ([$vis:vis] $Name:ident $Atomic:ident $stem:ident $B:ident $n:literal) => {
        $crate::__private::paste! {
            #[allow(dead_code, reason = "a word seldom needs every operation of every bit")]
            impl<P: $crate::Probe> $Atomic<P> {
                #[doc = concat!("Whether `", stringify!($B), "` is published; then what its ",
                    "publisher wrote before is visible.")]
                ///
                /// # Ordering
                /// One acquire load, whatever it finds: without it a reader may see the bit and
                /// stale data (Linux d4252071b97d).
                #[inline(always)]
                pub fn $stem(&self) -> bool {
                    self.word.contains_acquire($Name::$B)
                }

                #[doc = concat!("Publishes `", stringify!($B), "`: what this thread wrote before ",
                    "is visible to whoever finds it set. Returns whether this call set it.")]
                ///
                /// # Ordering
                /// Clear: a relaxed load, then an RMW with `Release`. Set: the load alone, no
                /// barrier; the first publisher released the data (Linux 2f79cdfe58c1). The result
                /// acquires nothing.
                ///
                /// # Panics
                /// In debug builds when the bit was retracted meanwhile.
                #[inline(always)]
                pub fn [<publish_ $stem>](&self) -> bool {
                    self.word.publish($Name::$B)
                }

                #[doc = concat!("Retracts `", stringify!($B), "`, by the exclusive owner: a plain ",
                    "store.")]
                #[inline]
                pub fn [<retract_ $stem _mut>](&mut self) {
                    self.word.clear_mut($Name::$B);
                }

                #[doc = concat!("Retracts `", stringify!($B), "` on a word that others can reach.")]
                ///
                /// # Safety
                /// No other thread may publish or test the bit from the start of this call until it
                /// learns, in a way that orders (a lock, a channel), that the word is in use again.
                ///
                /// # Ordering
                /// One RMW with `AcqRel`, also when nothing changes: the data is rewritten after
                /// it.
                ///
                /// # Panics
                /// In debug builds when a publisher was still at work.
                #[inline]
                pub unsafe fn [<retract_ $stem>](&self) {
                    // SAFETY: the caller's promise, word for word.
                    unsafe { self.word.retract($Name::$B) }
                }
            }
        }
    };
}
