use std::collections::HashMap;

use proptest::prelude::*;

use super::*;

fn params(text: &str, regions: &[(u64, u64)]) -> Params {
    let text = format!("[j]\nsize=1m\n{text}\n");
    let plan = cairn_fio::parse_job_text("test", &text).unwrap();
    let job = &plan.jobs[0];
    Params {
        access: job.access.clone(),
        norandommap: job.random.norandommap,
        distribution: job.random.distribution.clone(),
        stride: job.random.sequence_stride,
        regions: regions
            .iter()
            .map(|(start, len)| Region {
                start: *start,
                len: *len,
            })
            .collect(),
        service: Service::RoundRobin(1),
        total: Some(regions.iter().map(|(_, len)| len).sum()),
        number_ios: None,
        seed: 7,
    }
}

fn all(params: Params) -> Vec<Io> {
    let mut generator = Generator::new(params);
    let mut list = Vec::new();
    while let Some(io) = generator.next() {
        list.push(io);
        assert!(list.len() < 1_000_000, "does not end");
    }
    list
}

fn offsets(list: &[Io]) -> Vec<u64> {
    list.iter().map(|io| io.offset).collect()
}

#[test]
fn sequential_goes_up_and_from_the_start_again() {
    let mut p = params("rw=write\nbs=4k", &[(8192, 16384)]);
    p.total = Some(24576);
    let list = all(p);
    assert_eq!(offsets(&list), [8192, 12288, 16384, 20480, 8192, 12288]);
    assert!(list.iter().all(|io| io.dir == WRITE && io.len == 4096));
}

#[test]
fn a_random_map_covers_each_block_once_in_each_pass() {
    let mut p = params("rw=randwrite\nbs=4k", &[(0, 1 << 20)]);
    p.total = Some(3 << 20);
    let list = all(p);
    assert_eq!(list.len(), 768);
    let mut passes = Vec::new();
    for pass in list.chunks(256) {
        let mut sorted = offsets(pass);
        passes.push(sorted.clone());
        sorted.sort_unstable();
        let want: Vec<u64> = (0..256).map(|b| b * 4096).collect();
        assert_eq!(sorted, want);
    }
    assert_ne!(passes[0], passes[1], "each pass has an order of its own");
}

#[test]
fn without_a_map_blocks_repeat() {
    let list = all(params("rw=randread\nbs=4k\nnorandommap", &[(0, 1 << 20)]));
    assert_eq!(list.len(), 256);
    let mut seen = HashMap::new();
    for io in &list {
        assert!(io.offset < 1 << 20 && io.offset % 4096 == 0 && io.dir == READ);
        *seen.entry(io.offset).or_insert(0) += 1;
    }
    assert!(seen.values().any(|n| *n > 1) && seen.len() > 100);
}

#[test]
fn a_mix_has_about_the_share_it_was_asked_for() {
    let mut p = params(
        "rw=randrw\nrwmixread=70\nbs=4k\nnorandommap",
        &[(0, 1 << 20)],
    );
    p.total = Some(4096 * 10_000);
    let list = all(p);
    let reads = list.iter().filter(|io| io.dir == READ).count();
    assert!((6800..=7200).contains(&reads), "{reads}");
    assert_eq!(list.len(), 10_000);
}

#[test]
fn a_mix_covers_each_block_once_by_either_direction() {
    let list = all(params("rw=randrw\nbs=4k", &[(0, 1 << 20)]));
    let mut sorted = offsets(&list);
    sorted.sort_unstable();
    sorted.dedup();
    assert_eq!(sorted.len(), 256);
}

#[test]
fn steps_of_random_and_sequential_modes() {
    let list = all(params("rw=randread:4\nbs=4k", &[(0, 1 << 20)]));
    let follows = list
        .windows(2)
        .filter(|w| w[1].offset == w[0].offset + w[0].len)
        .count();
    assert!(follows >= 180, "{follows} of 256 follow");
    let list = all(params(
        "rw=randread:4\nrw_sequencer=identical\nbs=4k",
        &[(0, 1 << 20)],
    ));
    assert!(
        list.chunks(4)
            .all(|c| c.iter().all(|io| io.offset == c[0].offset))
    );
    let list = all(params("rw=write:4k\nbs=4k", &[(0, 65536)]));
    assert_eq!(offsets(&list)[..4], [0, 8192, 16384, 24576]);
    let list = all(params("rw=read:-8k\nbs=4k", &[(0, 16384)]));
    assert_eq!(offsets(&list)[..4], [12288, 8192, 4096, 0]);
}

#[test]
fn trimwrite_writes_what_it_trimmed() {
    let list = all(params("rw=randtrimwrite\nbs=4k", &[(0, 65536)]));
    assert_eq!(list.len(), 32);
    for pair in list.chunks(2) {
        assert_eq!((pair[0].dir, pair[1].dir), (TRIM, WRITE));
        assert_eq!(pair[0].offset, pair[1].offset);
    }
}

#[test]
fn several_files_take_turns_and_each_gets_its_share() {
    let list = all(params(
        "rw=write\nbs=4k",
        &[(0, 16384), (0, 8192), (4096, 16384)],
    ));
    let order: Vec<_> = list.iter().map(|io| io.region).collect();
    assert_eq!(order, [0, 1, 2, 0, 1, 2, 0, 2, 0, 2]);
    let mut p = params("rw=write\nbs=4k", &[(0, 8192), (0, 8192)]);
    p.service = Service::Sequential;
    let order: Vec<_> = all(p).iter().map(|io| io.region).collect();
    assert_eq!(order, [0, 0, 1, 1]);
    let mut p = params("rw=write\nbs=4k", &[(0, 16384), (0, 16384)]);
    p.service = Service::RoundRobin(2);
    let order: Vec<_> = all(p).iter().map(|io| io.region).collect();
    assert_eq!(order, [0, 0, 1, 1, 0, 0, 1, 1]);
}

#[test]
fn counts_stop_earlier() {
    let mut p = params("rw=randwrite\nbs=4k", &[(0, 1 << 20)]);
    p.number_ios = Some(10);
    assert_eq!(all(p).len(), 10);
    let mut p = params("rw=write\nbs=8k", &[(0, 1 << 20)]);
    p.total = Some(16384);
    assert_eq!(all(p).len(), 2);
}

#[test]
fn a_job_without_end_goes_on() {
    let mut p = params("rw=randwrite\nbs=4k", &[(0, 8192)]);
    p.total = None;
    let mut generator = Generator::new(p);
    assert!((0..1000).all(|_| generator.next().is_some()));
}

#[test]
fn shares_of_sizes() {
    let mut p = params(
        "rw=randwrite\nbssplit=4k/75:16k/25\nnorandommap",
        &[(0, 1 << 24)],
    );
    p.number_ios = Some(8000);
    p.total = None;
    let list = all(p);
    let small = list.iter().filter(|io| io.len == 4096).count();
    assert!((5700..=6300).contains(&small), "{small}");
    // Only the end of the region cuts an I/O short.
    let whole = |io: &Io| io.len == 4096 || io.len == 16384;
    assert!(
        list.iter()
            .all(|io| whole(io) || io.offset + io.len == 1 << 24)
    );
}

proptest! {
    #[test]
    fn mixed_lengths_cover_each_unit_once(blocks in 1_u64..400, seed: u64, most in 1_u64..9) {
        let text = format!("rw=randwrite\nbsrange=4k-{}k", most * 4);
        let mut p = params(&text, &[(12288, blocks * 4096)]);
        p.seed = seed;
        let mut seen = vec![false; usize::try_from(blocks).unwrap()];
        for io in all(p) {
            prop_assert!(io.len >= 4096 && io.len <= most * 4096 && io.len % 4096 == 0);
            for unit in 0..io.len / 4096 {
                let at = usize::try_from((io.offset - 12288) / 4096 + unit).unwrap();
                prop_assert!(!seen[at]);
                seen[at] = true;
            }
        }
        prop_assert!(seen.iter().all(|s| *s));
    }

    #[test]
    fn every_io_stays_in_its_region(
        rw in prop::sample::select(vec!["read", "randwrite", "randrw", "rw", "randread:3", "write:8k", "randtrim"]),
        bs in prop::sample::select(vec!["bs=4k", "bs=512", "bsrange=1k-8k", "bssplit=512/50:4k/50", "bs=4k,8k,16k"]),
        map in any::<bool>(),
        start in 0_u64..5,
        len in 1_u64..300,
        seed: u64,
    ) {
        let map = if map { "" } else { "norandommap" };
        let start = start * 4096;
        let len = len * 16384;
        let mut p = params(&format!("rw={rw}\n{bs}\n{map}"), &[(start, len)]);
        p.seed = seed;
        p.number_ios = Some(3000);
        let again = all(p.clone());
        let list = all(p);
        prop_assert_eq!(&list, &again, "the same seed, the same operations");
        prop_assert!(!list.is_empty());
        for io in list {
            prop_assert!(io.len > 0);
            prop_assert!(io.offset >= start && io.offset + io.len <= start + len, "{:?}", io);
        }
    }
}

#[test]
fn a_region_below_one_block_ends_at_once() {
    let mut p = params("rw=randwrite\nbs=4k", &[(0, 100)]);
    p.total = None;
    assert_eq!(all(p), []);
}

#[test]
fn aligned_places_are_multiples_and_inside() {
    let mut p = params("rw=randwrite\nbs=4k\nba=16k", &[(8192, 1 << 20)]);
    p.total = Some(64 * 4096);
    let list = all(p);
    let mut sorted = offsets(&list);
    sorted.sort_unstable();
    let want: Vec<u64> = (0..64).map(|i| 8192 + i * 16384).collect();
    assert_eq!(sorted, want, "each place once");
    for more in ["ba=512", "ba=64k\nnorandommap"] {
        let list = all(params(
            &format!("rw=randread\nbs=4k\n{more}"),
            &[(0, 1 << 20)],
        ));
        let step = if more == "ba=512" { 512 } else { 65536 };
        assert!(
            list.iter()
                .all(|io| io.offset % step == 0 && io.offset + io.len <= 1 << 20)
        );
        assert!(
            list.iter().all(|io| io.len == 4096) && list.len() == 256,
            "{more}"
        );
    }
}

#[test]
fn as_much_is_random_as_was_asked_for() {
    for (percent, want) in [(0, 0.0), (30, 0.3), (100, 1.0)] {
        let text = format!("rw=randwrite\nbs=4k\nnorandommap\npercentage_random={percent}");
        let list = all(params(&text, &[(0, 64 << 20)]));
        let jumps = list
            .windows(2)
            .filter(|w| w[0].offset + w[0].len != w[1].offset);
        let share = jumps.count() as f64 / (list.len() - 1) as f64;
        assert!((share - want).abs() < 0.02, "{percent}: {share}");
    }
}

#[test]
fn listed_blocks_come_in_the_order_of_the_list() {
    let text = "rw=randread\nbs=4k\nrandom_distribution=sequence:2,0,1";
    let mut p = params(text, &[(8192, 48 << 10)]);
    p.total = Some(24 << 10);
    let block = |list: &[Io]| -> Vec<u64> {
        let at = offsets(list);
        at.iter().map(|o| (o - 8192) / 4096).collect()
    };
    assert_eq!(block(&all(p.clone())), [2, 0, 1, 2, 0, 1]);
    p.stride = true;
    assert_eq!(block(&all(p)), [2, 0, 1, 5, 3, 4]);
}

#[test]
fn files_are_drawn_by_their_rank() {
    // Of 8000 I/Os on 8 files fio 3.33 did 91, 74 and 39 % on the busiest; its other files had a few each.
    let regions: Vec<_> = (0..8).map(|_| (0, 64 << 20)).collect();
    for (kind, least, most) in [
        (Distribution::Zipf(shape(1.2)), 0.89, 0.93),
        (Distribution::Pareto(shape(0.2)), 0.72, 0.77),
        (Distribution::Normal(shape(20.0)), 0.36, 0.42),
    ] {
        let mut p = params("rw=randread\nbs=4k\nnorandommap", &regions);
        p.service = Service::Drawn(kind.clone());
        p.number_ios = Some(8000);
        let mut counts = [0_u32; 8];
        for io in all(p) {
            counts[io.region] += 1;
        }
        let first = f64::from(*counts.iter().max().unwrap()) / 8000.0;
        assert!((least..most).contains(&first), "{kind:?}: {counts:?}");
        let others = counts.iter().filter(|n| **n > 0).count();
        assert!(others >= 6, "{kind:?}: {counts:?}");
    }
}

fn shape(parameter: f64) -> cairn_fio::job::ShapedDistribution {
    cairn_fio::job::ShapedDistribution {
        parameter,
        center: None,
    }
}
