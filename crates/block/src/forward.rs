//! The macro by which a layer passes methods on to the device below.

/// Forwards methods of [`BlockDevice`](crate::BlockDevice) to a field, inside a layer's `impl`.
///
/// Three forms:
/// - `forward!(transparent below)`: everything but `describe` and `stats`, which are a layer's own;
/// - `forward!(content below { discard: .., write_zeroes: .., extents: .., as_mapped: .. })` for a
///   layer that alters what bytes are: the four methods that would then lie must be answered, each
///   by `own` (a method written beside), `refuse`, `data` (one data extent) or `none`;
/// - `forward!(below: read flush ...)`: the methods named, for a layer that takes part in the others.
///
/// A filter that changes data and yet forwards `extents` claims zeros that are none; here it does
/// not compile:
///
/// ```compile_fail
/// use cairn_block::{BlockDevice, Device, Node, forward};
///
/// struct Invert { below: Device }
///
/// impl BlockDevice for Invert {
///     forward!(content below { discard: refuse, write_zeroes: refuse, as_mapped: none });
///     fn describe(&self) -> Node { Node::new("invert") }
/// }
/// ```
#[macro_export]
macro_rules! forward {
    (transparent $below:ident) => {
        $crate::forward!($below: info caps read write flush discard write_zeroes extents cache
            resize snapshot as_mapped children);
    };
    (content $below:ident {
        discard: $discard:ident, write_zeroes: $zeroes:ident, extents: $extents:ident,
        as_mapped: $mapped:ident $(,)?
    }) => {
        $crate::forward!(@answer discard $discard);
        $crate::forward!(@answer write_zeroes $zeroes);
        $crate::forward!(@answer extents $extents);
        $crate::forward!(@answer as_mapped $mapped);
        $crate::forward!($below: info flush cache children);
    };
    // The trait's own default is the answer of the last three.
    (@answer $what:ident own) => {};
    (@answer discard refuse) => {};
    (@answer write_zeroes refuse) => {};
    (@answer extents data) => {};
    (@answer as_mapped none) => {};
    ($below:ident: $($what:ident)+) => { $($crate::forward!(@one $what $below);)+ };

    (@one info $below:ident) => {
        fn info(&self) -> $crate::DeviceInfo {
            self.$below.info()
        }
    };
    (@one caps $below:ident) => {
        fn caps(&self) -> $crate::Caps {
            self.$below.caps()
        }
    };
    (@one read $below:ident) => {
        #[inline]
        fn read_vectored_at(
            &self,
            bufs: &mut [::std::io::IoSliceMut<'_>],
            off: u64,
            flags: $crate::ReqFlags,
        ) -> $crate::Result<()> {
            self.$below.read_vectored_at(bufs, off, flags)
        }
    };
    (@one write $below:ident) => {
        #[inline]
        fn write_vectored_at(
            &self,
            bufs: &[::std::io::IoSlice<'_>],
            off: u64,
            flags: $crate::ReqFlags,
        ) -> $crate::Result<()> {
            self.$below.write_vectored_at(bufs, off, flags)
        }
    };
    (@one flush $below:ident) => {
        fn flush(&self) -> $crate::Result<()> {
            self.$below.flush()
        }
    };
    (@one discard $below:ident) => {
        fn discard(
            &self,
            range: ::std::ops::Range<u64>,
            flags: $crate::ReqFlags,
        ) -> $crate::Result<()> {
            self.$below.discard(range, flags)
        }
    };
    (@one write_zeroes $below:ident) => {
        fn write_zeroes(
            &self,
            range: ::std::ops::Range<u64>,
            flags: $crate::ReqFlags,
        ) -> $crate::Result<()> {
            self.$below.write_zeroes(range, flags)
        }
    };
    (@one extents $below:ident) => {
        fn extents(
            &self,
            range: ::std::ops::Range<u64>,
            each: &mut dyn FnMut($crate::Extent) -> ::std::ops::ControlFlow<()>,
        ) -> $crate::Result<()> {
            self.$below.extents(range, each)
        }
    };
    (@one cache $below:ident) => {
        fn cache(&self, range: ::std::ops::Range<u64>) -> $crate::Result<()> {
            self.$below.cache(range)
        }
    };
    (@one resize $below:ident) => {
        fn resize(&self, new_len: u64) -> $crate::Result<()> {
            self.$below.resize(new_len)
        }
    };
    (@one snapshot $below:ident) => {
        fn snapshot(&self) -> $crate::Result<$crate::Device> {
            self.$below.snapshot()
        }
    };
    (@one as_mapped $below:ident) => {
        fn as_mapped(&self) -> ::std::option::Option<&dyn $crate::MappedRegion> {
            self.$below.as_mapped()
        }
    };
    (@one children $below:ident) => {
        fn children(&self) -> ::std::vec::Vec<$crate::Device> {
            ::std::vec![::std::sync::Arc::clone(&self.$below)]
        }
    };
}
