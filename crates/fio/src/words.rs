//! Enumerations whose members have a spelling in job files.
//!
//! Kept in one macro so that the list a wrong word is answered with, the parser and the printer cannot
//! drift apart.

/// Declares an enum with the words fio spells it with; the first word of a member is its canonical one.
macro_rules! words {
    (
        $(#[$meta:meta])*
        pub enum $name:ident {
            $( $(#[$vmeta:meta])* $variant:ident = $first:literal $(| $more:literal)* ),+ $(,)?
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $name { $( $(#[$vmeta])* $variant ),+ }

        impl $name {
            /// Every spelling that is accepted.
            pub const WORDS: &'static [&'static str] = &[ $( $first $(, $more)* ),+ ];

            /// The canonical spelling.
            pub const fn word(self) -> &'static str {
                match self { $( Self::$variant => $first ),+ }
            }

            /// The member spelt `word`, if there is one.
            pub fn from_word(word: &str) -> Option<Self> {
                match word { $( $first $(| $more)* => Some(Self::$variant), )+ _ => None }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.word())
            }
        }
    };
}
pub(crate) use words;
