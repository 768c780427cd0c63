// SPDX-License-Identifier: GPL-2.0

//! How the cache does under load: with threads that use it at the same time, and with much in it.

use std::hint::black_box;
use std::sync::atomic::{
    AtomicBool,
    Ordering, //
};
use std::sync::Barrier;
use std::thread;
use std::time::{
    Duration,
    Instant, //
};

use rv_client::{
    Access,
    Attachment,
    Buffer,
    Result, //
};
use serde::Serialize;

use crate::clock::{
    Clock,
    Samples, //
};

const PAGE: usize = 4096;

/// What threads of one process get done on one file.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Throughput {
    /// Threads that register at the same time.
    pub(crate) threads: u32,
    /// Hits of all of them in a second. Each is a `REG_MEM` and its `DEREG_MEM`.
    pub(crate) hits_per_second: f64,
}

/// Medians with a number of registrations in the cache, in microseconds.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Filled {
    /// Registrations in the cache.
    pub(crate) cached: u32,
    /// `REG_MEM` of one of them.
    pub(crate) hit: f64,
    /// `DEREG_MEM` that leaves another reference.
    pub(crate) dereg: f64,
    /// `REG_MEM` of one more page.
    pub(crate) miss: f64,
}

/// Lets threads hit, each a registration of its own, for some time.
pub(crate) fn throughput(
    attachment: &Attachment,
    threads: u32,
    time: Duration,
) -> Result<Throughput> {
    // CAST: Few.
    let count = threads as usize;
    let buffer = Buffer::new(2 * PAGE * count)?;
    let register = |place: usize| {
        let start = 2 * PAGE * place;
        attachment.register(&buffer, start..start + PAGE, Access::Target)
    };
    let kept = (0..count).map(register).collect::<Result<Vec<_>>>()?;
    let stop = AtomicBool::new(false);
    let barrier = Barrier::new(count + 1);
    let (hits, elapsed) = thread::scope(|scope| {
        let workers: Vec<_> = (0..count)
            .map(|place| {
                let (barrier, stop, register) = (&barrier, &stop, &register);
                scope.spawn(move || {
                    barrier.wait();
                    let mut hits = 0_u64;
                    while !stop.load(Ordering::Relaxed) {
                        register(place)?.deregister()?;
                        hits += 1;
                    }
                    Ok(hits)
                })
            })
            .collect();
        barrier.wait();
        let start = Instant::now();
        thread::sleep(time);
        stop.store(true, Ordering::Relaxed);
        let elapsed = start.elapsed();
        let hits = workers
            .into_iter()
            .map(|worker| worker.join().unwrap_or(Ok(0)))
            .sum::<Result<u64>>();
        (hits, elapsed)
    });
    kept.into_iter().try_for_each(|mr| mr.deregister())?;
    // CAST: Exact up to 2^53.
    let hits_per_second = hits? as f64 / elapsed.as_secs_f64();
    Ok(Throughput {
        threads,
        hits_per_second,
    })
}

/// Measures single calls with `cached` registrations in use.
pub(crate) fn filled(
    attachment: &Attachment,
    clock: Clock,
    cached: u32,
    rounds: u32,
) -> Result<Filled> {
    // CAST: Both fit.
    let (count, rounds) = (cached as usize, rounds as usize);
    let buffer = Buffer::new(2 * PAGE * count)?;
    let fresh = Buffer::new(2 * PAGE * rounds)?;
    let register = |buffer: &Buffer, place: usize| {
        let start = 2 * PAGE * place;
        attachment.register(buffer, start..start + PAGE, Access::Target)
    };
    let kept = (0..count)
        .map(|place| register(&buffer, place))
        .collect::<Result<Vec<_>>>()?;
    let (mut hit, mut dereg, mut miss) = <(Samples, Samples, Samples)>::default();
    for round in 0..rounds {
        // All over the buffer, in no order that is easy to follow.
        let place = round * 7919 % count;
        let (mr, time) = clock.time(|| register(&buffer, place));
        hit.add(time);
        let mr = black_box(mr)?;
        let (result, time) = clock.time(|| mr.deregister());
        dereg.add(time);
        result?;
        let (mr, time) = clock.time(|| register(&fresh, round));
        miss.add(time);
        mr?.deregister()?;
    }
    kept.into_iter().try_for_each(|mr| mr.deregister())?;
    let median = |samples: &Samples| samples.median() / 1e3;
    Ok(Filled {
        cached,
        hit: median(&hit),
        dereg: median(&dereg),
        miss: median(&miss),
    })
}
