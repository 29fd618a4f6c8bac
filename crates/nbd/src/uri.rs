//! NBD URIs.

/// Percent-encodes what has a meaning in a URI. In a path, a name that begins with a slash keeps it.
pub(crate) fn encode(text: &str, path: bool) -> String {
    let mut out = String::with_capacity(text.len());
    for b in text.bytes() {
        let plain =
            b.is_ascii_alphanumeric() || b"-._~/:@!$'*,".contains(&b) || (path && b == b'=');
        if plain {
            out.push(char::from(b));
        } else {
            let hex = |n: u8| char::from_digit(n.into(), 16).unwrap_or('0');
            out.push('%');
            out.push(hex(b >> 4).to_ascii_uppercase());
            out.push(hex(b & 15).to_ascii_uppercase());
        }
    }
    out
}
