//! The I/O engines by name, and the options that belong to one of them.

use crate::words::words;

words! {
    /// `ioengine=`: every name fio 3.33 or its published jobs use.
    pub enum IoEngine {
        /// Linux native asynchronous I/O.
        Libaio = "libaio",
        /// `io_uring`.
        IoUring = "io_uring",
        /// `io_uring` passthrough.
        IoUringCmd = "io_uring_cmd",
        /// POSIX asynchronous I/O.
        PosixAio = "posixaio",
        /// libblkio.
        Libblkio = "libblkio",
        /// SPDK NVMe.
        Spdk = "spdk",
        /// SPDK bdev.
        SpdkBdev = "spdk_bdev",
        /// xNVMe.
        Xnvme = "xnvme",
        /// Windows asynchronous I/O.
        WindowsAio = "windowsaio",
        /// SCSI generic.
        Sg = "sg",
        /// Memory technology devices.
        Mtd = "mtd",
        /// seek and read or write.
        Sync = "sync",
        /// pread and pwrite.
        Psync = "psync",
        /// readv and writev, neighbours merged.
        Vsync = "vsync",
        /// preadv and pwritev.
        Pvsync = "pvsync",
        /// preadv2 and pwritev2.
        Pvsync2 = "pvsync2",
        /// Mapped file.
        Mmap = "mmap",
        /// Mapped DAX device.
        DevDax = "dev-dax",
        /// libpmem.
        Libpmem = "libpmem",
        /// pmemblk.
        Pmemblk = "pmemblk",
        /// Touches no device.
        Null = "null",
        /// Burns CPU.
        CpuIo = "cpuio",
        /// Creates files.
        FileCreate = "filecreate",
        /// Looks files up.
        FileStat = "filestat",
        /// Deletes files.
        FileDelete = "filedelete",
        /// Creates directories.
        DirCreate = "dircreate",
        /// Looks directories up.
        DirStat = "dirstat",
        /// Deletes directories.
        DirDelete = "dirdelete",
        /// fallocate as the I/O.
        Falloc = "falloc",
        /// ftruncate as the I/O.
        Ftruncate = "ftruncate",
        /// Network block device client.
        Nbd = "nbd",
        /// Sockets.
        Net = "net",
        /// Sockets by splice.
        NetSplice = "netsplice",
        /// splice.
        Splice = "splice",
        /// RDMA.
        Rdma = "rdma",
        /// Ceph objects.
        Rados = "rados",
        /// Ceph block device.
        Rbd = "rbd",
        /// HTTP and S3.
        Http = "http",
        /// Gluster.
        Gfapi = "gfapi",
        /// Gluster, asynchronous.
        GfapiAsync = "gfapi_async",
        /// Hadoop.
        Libhdfs = "libhdfs",
        /// NFS client library.
        Nfs = "nfs",
        /// Direct file system.
        Dfs = "dfs",
        /// Runs commands.
        Exec = "exec",
        /// ext4 defragmentation.
        E4defrag = "e4defrag",
        /// CUDA.
        LibCufile = "libcufile",
        /// libiscsi.
        Libiscsi = "libiscsi",
        /// Shared object given by path.
        External = "external",
    }
}

/// How an engine is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EngineClass {
    /// A queue of I/Os in flight.
    Queue,
    /// One call at a time.
    Call,
    /// A mapping of the device.
    Mapped,
    /// Nothing is touched.
    Null,
    /// No I/O at all.
    Cpu,
    /// Operations on names and files.
    Metadata,
    /// NBD client.
    Nbd,
    /// Needs something outside a storage stack.
    Outside,
}

impl IoEngine {
    /// How this engine is run.
    pub const fn class(self) -> EngineClass {
        match self {
            Self::Libaio
            | Self::IoUring
            | Self::IoUringCmd
            | Self::PosixAio
            | Self::Libblkio
            | Self::Spdk
            | Self::SpdkBdev
            | Self::Xnvme
            | Self::WindowsAio
            | Self::Sg
            | Self::Mtd => EngineClass::Queue,
            Self::Sync | Self::Psync | Self::Vsync | Self::Pvsync | Self::Pvsync2 => {
                EngineClass::Call
            }
            Self::Mmap | Self::DevDax | Self::Libpmem | Self::Pmemblk => EngineClass::Mapped,
            Self::Null => EngineClass::Null,
            Self::CpuIo => EngineClass::Cpu,
            Self::FileCreate
            | Self::FileStat
            | Self::FileDelete
            | Self::DirCreate
            | Self::DirStat
            | Self::DirDelete
            | Self::Falloc
            | Self::Ftruncate => EngineClass::Metadata,
            Self::Nbd => EngineClass::Nbd,
            Self::Net
            | Self::NetSplice
            | Self::Splice
            | Self::Rdma
            | Self::Rados
            | Self::Rbd
            | Self::Http
            | Self::Gfapi
            | Self::GfapiAsync
            | Self::Libhdfs
            | Self::Nfs
            | Self::Dfs
            | Self::Exec
            | Self::E4defrag
            | Self::LibCufile
            | Self::Libiscsi
            | Self::External => EngineClass::Outside,
        }
    }

    /// Whether `iodepth` above 1 means anything to it.
    pub const fn is_async(self) -> bool {
        matches!(
            self.class(),
            EngineClass::Queue | EngineClass::Nbd | EngineClass::Null
        )
    }

    /// Whether fio itself would treat the engine's target as a device rather than a file.
    pub const fn is_device_engine(self) -> bool {
        matches!(
            self,
            Self::IoUringCmd
                | Self::Libblkio
                | Self::Spdk
                | Self::SpdkBdev
                | Self::Xnvme
                | Self::Sg
                | Self::Mtd
                | Self::DevDax
                | Self::Nbd
        )
    }
}

/// cpuio's load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CpuLoad {
    /// `cpuload=`: percent of a CPU.
    pub load_percent: u8,
    /// `cpuchunks=` (default 50000): length of a burn cycle in microseconds.
    pub chunk_us: u64,
    /// `exit_on_io_done=`: end when the other jobs have ended.
    pub exit_on_io_done: bool,
}

/// Options that belong to one engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineOptions {
    /// cpuio.
    pub cpu: CpuLoad,
    /// nbd: `uri=`.
    pub uri: Option<String>,
}

impl Default for EngineOptions {
    fn default() -> Self {
        Self {
            cpu: CpuLoad {
                load_percent: 0,
                chunk_us: 50_000,
                exit_on_io_done: false,
            },
            uri: None,
        }
    }
}
