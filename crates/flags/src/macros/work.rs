//! Methods of a work bit.

/// Writes the methods of one work bit.
#[macro_export]
#[doc(hidden)]
macro_rules! __state_bit_work {
    ([$vis:vis] $Name:ident $Atomic:ident $stem:ident $B:ident $n:literal) => {
        $crate::__private::paste! {
            #[allow(dead_code, reason = "a word seldom needs every operation of every bit")]
            impl<P: $crate::Probe> $Atomic<P> {
                #[doc = concat!("Whether `", stringify!($B), "` is marked now.")]
                ///
                /// # Ordering
                /// One relaxed load: orders nothing, whatever it finds. For displays and for
                /// passing over idle words; it replaces neither the mark nor the take.
                #[inline(always)]
                pub fn $stem(&self) -> bool {
                    self.word.contains($Name::$B)
                }

                #[doc = concat!("Marks `", stringify!($B), "`: a taker either finds the mark or ",
                    "sees all that this thread wrote before. Returns whether this call set it.")]
                ///
                /// # Ordering
                /// Clear: a relaxed load, then an RMW with `AcqRel`. Set: a relaxed load, a full
                /// barrier, a second look: without the barrier the look may overtake the data, and
                /// a cleaner in between loses it (Linux 1be62dc190eb).
                #[inline(always)]
                pub fn [<mark_ $stem>](&self) -> bool {
                    self.word.mark_work($Name::$B)
                }

                #[doc = concat!("Marks `", stringify!($B), "` by an RMW, marked or not. Returns ",
                    "whether this call set it.")]
                ///
                /// # Ordering
                /// One RMW with `AcqRel`, also when nothing changes, which orders it against every
                /// take (Linux 415d83249709 on operations that fail). As sound as the other form.
                #[inline(always)]
                pub fn [<mark_ $stem _always>](&self) -> bool {
                    self.word.mark_work_always($Name::$B)
                }

                #[doc = concat!("Takes `", stringify!($B), "`: clears it and returns whether it ",
                    "was set. What the markers wrote before is visible afterwards.")]
                ///
                /// # Ordering
                /// One RMW with `AcqRel`, then a full barrier, also when nothing changes: it pairs
                /// with the marker's (Linux 1be62dc190eb).
                #[inline(always)]
                pub fn [<take_ $stem>](&self) -> bool {
                    !self.word.take_work($Name::$B).is_empty()
                }
            }
        }
    };
}
