//! What `state_bits!` proves of a declaration while it is compiled.
//!
//! The messages name the bits at fault. Formatting is not available to constants, so they are put
//! together byte by byte.

use crate::layout::StateBit;

/// `1 << bit`, or no bit at all when it does not fit; [`check_layout`] then says so by name.
#[macro_export]
#[doc(hidden)]
macro_rules! __one_bit {
    ($T:ident, $bit:expr) => {
        match <$T>::checked_shl(1, $bit) {
            Some(mask) => mask,
            None => 0,
        }
    };
}
pub use crate::__one_bit as bit;

/// Fails the compilation unless every bit fits `width` and no bit or name occurs twice.
///
/// # Panics
/// At compile time, with the names of the bits at fault.
pub const fn check_layout(width: u32, bits: &[StateBit]) {
    let mut rest = bits;
    while let [this, tail @ ..] = rest {
        if this.bit >= width {
            Message::new()
                .text("state bit `")
                .text(this.name)
                .text("`: bit ")
                .number(this.bit)
                .text(" does not fit, the word has ")
                .number(width)
                .text(" bits")
                .raise();
        }
        let mut others = tail;
        while let [other, more @ ..] = others {
            if same(this.name, other.name) {
                Message::new()
                    .text("state bit `")
                    .text(this.name)
                    .text("` is declared twice")
                    .raise();
            }
            if this.bit == other.bit {
                let what = if this.role as u8 == other.role as u8 {
                    " is declared twice: `"
                } else {
                    " is declared twice, and the roles clash: `"
                };
                Message::new()
                    .text("bit ")
                    .number(this.bit)
                    .text(what)
                    .text(this.name)
                    .text("` (")
                    .text(this.role.name())
                    .text(") and `")
                    .text(other.name)
                    .text("` (")
                    .text(other.role.name())
                    .text(")")
                    .raise();
            }
            others = more;
        }
        rest = tail;
    }
}

const fn same(a: &str, b: &str) -> bool {
    let (mut a, mut b) = (a.as_bytes(), b.as_bytes());
    loop {
        match (a, b) {
            ([], []) => return true,
            ([x, more_a @ ..], [y, more_b @ ..]) if *x == *y => {
                a = more_a;
                b = more_b;
            }
            _ => return false,
        }
    }
}

/// A message put together at compile time; what does not fit is cut off.
struct Message {
    bytes: [u8; Message::MAX],
    len: usize,
}

impl Message {
    const MAX: usize = 256;

    const fn new() -> Self {
        Self {
            bytes: [0; Self::MAX],
            len: 0,
        }
    }

    const fn byte(mut self, byte: u8) -> Self {
        if self.len < Self::MAX {
            #[expect(clippy::indexing_slicing, reason = "len < MAX was just checked")]
            {
                self.bytes[self.len] = byte;
            }
            self.len += 1;
        }
        self
    }

    const fn text(mut self, text: &str) -> Self {
        let mut rest = text.as_bytes();
        while let [byte, tail @ ..] = rest {
            self = self.byte(*byte);
            rest = tail;
        }
        self
    }

    const fn number(mut self, n: u32) -> Self {
        let mut unit = 1_u32;
        while n / unit >= 10 {
            unit *= 10;
        }
        while unit > 0 {
            self = self.byte(b'0' + (n / unit % 10) as u8);
            unit /= 10;
        }
        self
    }

    const fn raise(&self) -> ! {
        match core::str::from_utf8(self.bytes.split_at(self.len).0) {
            Ok(text) => panic!("{}", text),
            Err(_) => panic!("state bits with a very long name clash"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Role;

    fn message(bits: &'static [StateBit]) -> String {
        let panic = std::panic::catch_unwind(|| check_layout(8, bits)).unwrap_err();
        panic.downcast_ref::<String>().unwrap().clone()
    }

    #[test]
    fn messages_name_the_bits() {
        const A: StateBit = StateBit::new("A", 1, Role::Hint);
        const B: StateBit = StateBit::new("B", 1, Role::Work);
        const C: StateBit = StateBit::new("C", 1, Role::Hint);
        const FAR: StateBit = StateBit::new("FAR", 108, Role::Hint);
        const A2: StateBit = StateBit::new("A", 2, Role::Hint);
        assert_eq!(
            message(&[A, B]),
            "bit 1 is declared twice, and the roles clash: `A` (hint) and `B` (work)"
        );
        assert_eq!(
            message(&[A, C]),
            "bit 1 is declared twice: `A` (hint) and `C` (hint)"
        );
        assert_eq!(
            message(&[FAR]),
            "state bit `FAR`: bit 108 does not fit, the word has 8 bits"
        );
        assert_eq!(message(&[A, A2]), "state bit `A` is declared twice");
    }
}
