//! Many threads at once.

use std::sync::Mutex;

use cairn_ext4::{Error, Ext4, FormatOptions, MountOptions};

use crate::support::{formatted, sound};

/// The names that all threads of a storm together hold in their own directories at most: half of the image's inodes, for
/// links in the shared directory keep some of those that lost their names.
const HELD: usize = 2000;

/// A thread's work in a directory of its own with at most `held` names, and in one that all share.
fn work(fs: &Ext4, me: usize, ops: usize, held: usize, shared: &Mutex<Vec<String>>) -> Vec<String> {
    let mut rng = fastrand::Rng::with_seed(me as u64);
    let own = format!("/t{me}");
    fs.mkdir(&own).unwrap();
    let mut names: Vec<String> = Vec::new();
    for n in 0..ops {
        match rng.u8(..10) {
            0..4 if names.len() < held => {
                let name = format!("{own}/{n}");
                let file = fs.create(&name).unwrap();
                if rng.bool() {
                    fs.write_at(&file, rng.u64(..5000), &[me as u8; 3000])
                        .unwrap();
                }
                fs.close(file).unwrap();
                names.push(name);
            }
            0..6 if !names.is_empty() => {
                let at = rng.usize(..names.len());
                fs.unlink(names.swap_remove(at)).unwrap();
            }
            6 if !names.is_empty() => {
                let at = rng.usize(..names.len());
                let new = format!("{own}/moved{n}");
                fs.rename(&names[at], &new).unwrap();
                names[at] = new;
            }
            7 => {
                // Everybody fights for a few names of one directory.
                let name = format!("/shared/{}", rng.u8(..20));
                let result = match rng.u8(..3) {
                    0 => fs.create(&name).and_then(|f| {
                        fs.write_at(&f, 0, name.as_bytes())?;
                        fs.close(f)
                    }),
                    1 => fs.unlink(&name),
                    _ => fs.rename(&name, format!("/shared/{}", rng.u8(..20))),
                };
                expected(result);
            }
            8 => {
                // Directories that move between two parents, and are removed.
                let (a, b) = (
                    format!("/shared/a/{}", rng.u8(..4)),
                    format!("/shared/b/{}", rng.u8(..4)),
                );
                expected(match rng.u8(..5) {
                    0 => fs.mkdir(&a),
                    1 => fs.rename(&a, &b),
                    2 => fs.rename(&b, &a),
                    3 => fs.rename(&a, format!("{b}/in")),
                    _ => fs.rmdir(&b),
                });
            }
            _ => {
                let name = format!("/shared/link{me}-{n}");
                if let Some(old) = names.first()
                    && fs.link(old, &name).is_ok()
                {
                    shared.lock().unwrap().push(name);
                }
            }
        }
    }
    names
}

fn expected(result: Result<(), Error>) {
    match result {
        Ok(())
        | Err(
            Error::NotFound { .. }
            | Error::Exists { .. }
            | Error::NotEmpty { .. }
            | Error::IsADirectory { .. }
            | Error::NotADirectory { .. }
            | Error::IntoItself { .. },
        ) => {}
        Err(e) => panic!("{e}"),
    }
}

fn storm(threads: usize, ops: usize) {
    let disk = formatted(64 << 20, &FormatOptions::new().block_size(1024));
    let options = MountOptions::new()
        .buffers(2000)
        .dirty_pages(500)
        .counter_slots(threads + 1);
    let fs = Ext4::mount(disk.clone(), &options).unwrap();
    for d in ["/shared", "/shared/a", "/shared/b"] {
        fs.mkdir(d).unwrap();
    }
    let links = Mutex::new(Vec::new());
    let all: Vec<Vec<String>> = std::thread::scope(|s| {
        let threads: Vec<_> = (0..threads)
            .map(|me| {
                let (fs, links) = (&fs, &links);
                s.spawn(move || work(fs, me, ops, HELD / threads, links))
            })
            .collect();
        let syncs = s.spawn(|| {
            for _ in 0..20 {
                fs.sync().unwrap();
                std::thread::yield_now();
            }
        });
        let all = threads.into_iter().map(|t| t.join().unwrap()).collect();
        syncs.join().unwrap();
        all
    });
    fs.unmount().unwrap();
    drop(fs);
    sound(&disk, &format!("{threads} threads"));
    let fs = crate::support::mount(&disk);
    for (me, names) in all.iter().enumerate() {
        let mut found: Vec<String> = fs
            .read_dir(format!("/t{me}"))
            .unwrap()
            .into_iter()
            .filter(|e| e.name != b"." && e.name != b"..")
            .map(|e| format!("/t{me}/{}", String::from_utf8(e.name).unwrap()))
            .collect();
        let mut names = names.clone();
        found.sort();
        names.sort();
        assert_eq!(found, names, "directory of thread {me}");
    }
    for link in links.into_inner().unwrap() {
        fs.stat_path(&link).unwrap();
    }
}

#[test]
fn two_threads() {
    storm(2, 3000);
}

#[test]
fn eight_threads() {
    storm(8, 800);
}

#[test]
fn sixty_four_threads() {
    storm(64, 100);
}

#[test]
#[ignore = "minutes; just soak ext4"]
fn long_storms() {
    for _ in 0..100 {
        storm(4, 20_000);
        storm(64, 1000);
    }
}

/// Moves between directories look at all directories above, removals lock a directory and then the one in it:
/// neither waits for the other for ever.
#[test]
fn moves_end_beside_removals() {
    use std::sync::{Arc, mpsc};
    type Work = fn(&Ext4) -> [Result<(), Error>; 3];
    let disk = formatted(64 << 20, &FormatOptions::new());
    let fs = Arc::new(Ext4::mount(disk.clone(), &MountOptions::new()).unwrap());
    for d in ["/a", "/a/x", "/b"] {
        fs.mkdir(d).unwrap();
    }
    let works: [Work; 4] = [
        |fs| {
            [
                fs.rename("/a/x", "/b/n/y/in"),
                fs.rename("/b/n/y/in", "/a/x"),
                Ok(()),
            ]
        },
        // The new name is that of a directory which the old one lies in.
        |fs| [fs.rename("/b/n/y/z", "/b/n"), Ok(()), Ok(())],
        |fs| [fs.mkdir("/b/n"), fs.mkdir("/b/n/y"), fs.mkdir("/b/n/y/z")],
        |fs| [fs.rmdir("/b/n/y/z"), fs.rmdir("/b/n/y"), fs.rmdir("/b/n")],
    ];
    let (done, ended) = mpsc::channel();
    for work in works {
        let (fs, done) = (Arc::clone(&fs), done.clone());
        std::thread::spawn(move || {
            for _ in 0..10_000 {
                work(&fs).into_iter().for_each(expected);
            }
            drop(fs);
            done.send(()).unwrap();
        });
    }
    for _ in works {
        ended
            .recv_timeout(std::time::Duration::from_mins(1))
            .expect("a thread that ends");
    }
    let fs = Arc::into_inner(fs).unwrap();
    fs.unmount().unwrap();
    sound(&disk, "moved beside removals");
}

#[test]
fn one_file_written_and_read_by_many() {
    let disk = formatted(64 << 20, &FormatOptions::new());
    let fs = Ext4::mount(disk.clone(), &MountOptions::new()).unwrap();
    let file = fs.create("/f").unwrap();
    let blocks = 256_u64;
    fs.allocate(&file, 0, blocks * 4096, false).unwrap();
    std::thread::scope(|s| {
        for me in 0..8_u64 {
            let (fs, file) = (&fs, &file);
            s.spawn(move || {
                let mut rng = fastrand::Rng::with_seed(me);
                for _ in 0..2000 {
                    let block = rng.u64(..blocks / 8) * 8 + me;
                    // A block is of one byte throughout, and its writer's.
                    let data = [me as u8 + 1; 4096];
                    if rng.bool() {
                        fs.write_direct(file, block * 4096, &data, false).unwrap();
                    } else {
                        fs.write_at(file, block * 4096, &data).unwrap();
                    }
                    let mut buf = [0; 4096];
                    assert_eq!(fs.read_at(file, block * 4096, &mut buf).unwrap(), 4096);
                    assert!(buf == data, "block {block}");
                }
            });
        }
    });
    fs.close(file).unwrap();
    fs.unmount().unwrap();
    sound(&disk, "one file");
}

/// Whichever of the last close and the last unlink comes later ends the inode, and one of them does.
#[test]
fn a_close_beside_an_unlink_leaks_no_inode() {
    let disk = formatted(64 << 20, &FormatOptions::new());
    let fs = Ext4::mount(disk.clone(), &MountOptions::new()).unwrap();
    let before = fs.statfs().free_inodes;
    let turn = std::sync::atomic::AtomicU32::new(0);
    let files = Mutex::new(Vec::new());
    let rounds = 3000;
    std::thread::scope(|s| {
        s.spawn(|| {
            for n in 0..rounds {
                files.lock().unwrap().push(fs.create("/f").unwrap());
                turn.store(2 * n + 1, std::sync::atomic::Ordering::Release);
                fs.unlink("/f").unwrap();
                let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
                while turn.load(std::sync::atomic::Ordering::Acquire) != 2 * n + 2 {
                    assert!(std::time::Instant::now() < deadline, "round {n}");
                    std::thread::yield_now();
                }
            }
        });
        for n in 0..rounds {
            let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
            let mut turns = 0_u32;
            while turn.load(std::sync::atomic::Ordering::Acquire) != 2 * n + 1 {
                assert!(std::time::Instant::now() < deadline, "round {n}");
                // The other may wait for this processor.
                turns = turns.wrapping_add(1);
                if turns.is_multiple_of(1000) {
                    std::thread::yield_now();
                }
                std::hint::spin_loop();
            }
            let file = files.lock().unwrap().pop().unwrap();
            fs.close(file).unwrap();
            turn.store(2 * n + 2, std::sync::atomic::Ordering::Release);
        }
    });
    assert_eq!(fs.statfs().free_inodes, before);
    fs.unmount().unwrap();
    sound(&disk, "closed beside an unlink");
}

/// The map of extents goes from an ended inode to the next of its number, but not what was in it.
#[test]
fn a_new_file_has_nothing_of_the_last_one_with_its_number() {
    let disk = formatted(64 << 20, &FormatOptions::new());
    let fs = Ext4::mount(disk.clone(), &MountOptions::new()).unwrap();
    let mut held = Vec::new();
    for round in 0..20_u8 {
        let file = fs.create("/f").unwrap();
        let ino = file.ino();
        assert!(file.map().is_empty());
        fs.write_at(&file, 0, &vec![round + 1; 40_000]).unwrap();
        fs.fsync(&file).unwrap();
        assert!(!file.map().is_empty());
        if round % 3 == 0 {
            held.push(std::sync::Arc::clone(file.map()));
        }
        fs.close(file).unwrap();
        fs.unlink("/f").unwrap();

        let next = fs.create("/g").unwrap();
        assert_eq!(next.ino(), ino);
        assert!(next.map().is_empty());
        // Whoever holds the old map keeps it for himself.
        assert!(
            held.iter()
                .all(|old| !std::sync::Arc::ptr_eq(old, next.map()))
        );
        fs.truncate(&next, 40_000).unwrap();
        let mut bytes = vec![9; 40_000];
        assert_eq!(fs.read_at(&next, 0, &mut bytes).unwrap(), bytes.len());
        assert!(bytes.iter().all(|b| *b == 0));
        fs.close(next).unwrap();
        fs.unlink("/g").unwrap();
    }
    fs.unmount().unwrap();
    sound(&disk, "numbers used again");
}
