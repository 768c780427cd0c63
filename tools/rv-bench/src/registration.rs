// SPDX-License-Identifier: GPL-2.0

//! What registration costs: each call of rv beside that of libibverbs, in turns.

use std::thread;
use std::time::Duration;

use rv_client::{
    Access,
    Attachment,
    Buffer, //
};
use serde::Serialize;

use crate::clock::{
    Clock,
    Samples, //
};
use crate::verbs::Pd;

/// Calls of a kind that come right after one another.
const BATCH: usize = 32;
/// Rest after memory was unmapped: what rv does in the background then is not to be measured.
const REST: Duration = Duration::from_millis(2);

/// Times of one size.
#[derive(Debug, Default)]
pub(crate) struct Times {
    floor: Samples,
    miss: Samples,
    hit: Samples,
    hit_idle: Samples,
    dereg: Samples,
    dereg_last: Samples,
    ibv_reg: Samples,
    ibv_dereg: Samples,
}

/// Medians of one size, in microseconds.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Costs {
    /// Bytes of the range.
    pub(crate) size: usize,
    /// An ioctl that rv does not know.
    pub(crate) floor: f64,
    /// `REG_MEM` of fresh memory.
    pub(crate) miss: f64,
    /// `REG_MEM` of memory that is registered and in use.
    pub(crate) hit: f64,
    /// `REG_MEM` of memory that is registered and idle.
    pub(crate) hit_idle: f64,
    /// `DEREG_MEM` that leaves other references.
    pub(crate) dereg: f64,
    /// `DEREG_MEM` of the last reference.
    pub(crate) dereg_last: f64,
    /// `ibv_reg_mr` of fresh memory.
    pub(crate) ibv_reg: f64,
    /// `ibv_dereg_mr`.
    pub(crate) ibv_dereg: f64,
}

impl Times {
    /// Measures everything once.
    pub(crate) fn round(
        &mut self,
        clock: Clock,
        attachment: &Attachment,
        pd: &Pd,
        size: usize,
    ) -> Result<(), Box<dyn std::error::Error>> {
        let ((), floor) = clock.time(|| (0..BATCH).for_each(|_| attachment.unknown_ioctl()));
        // CAST: Exact, as the batch is small.
        let batch = BATCH as f64;
        self.floor.add(floor / batch);
        self.rv(clock, attachment, size, batch)?;
        thread::sleep(REST);

        let buffer = Buffer::new(size)?;
        let (mr, time) = clock.time(|| pd.register(&buffer));
        self.ibv_reg.add(time);
        let mr = mr?;
        let ((), time) = clock.time(|| drop(mr));
        self.ibv_dereg.add(time);
        drop(buffer);
        thread::sleep(REST);
        Ok(())
    }

    /// Measures the calls of rv on fresh memory.
    fn rv(
        &mut self,
        clock: Clock,
        attachment: &Attachment,
        size: usize,
        batch: f64,
    ) -> rv_client::Result<()> {
        let buffer = Buffer::new(size)?;
        let register = || attachment.register(&buffer, 0..size, Access::Target);

        let (first, time) = clock.time(register);
        self.miss.add(time);
        let first = first?;

        let mut more = Vec::with_capacity(BATCH);
        let (result, time) = clock.time(|| {
            more.extend((0..BATCH).map_while(|_| register().ok()));
            more.len()
        });
        self.hit.add(time / batch);
        if result < BATCH {
            // Says why.
            register()?;
        }
        let (result, time) = clock.time(|| more.into_iter().try_for_each(|mr| mr.deregister()));
        self.dereg.add(time / batch);
        result?;

        let (result, time) = clock.time(|| first.deregister());
        self.dereg_last.add(time);
        result?;
        let (again, time) = clock.time(register);
        self.hit_idle.add(time);
        again?.deregister()
    }

    /// Returns the medians.
    pub(crate) fn costs(&self, size: usize) -> Costs {
        let median = |samples: &Samples| samples.median() / 1e3;
        Costs {
            size,
            floor: median(&self.floor),
            miss: median(&self.miss),
            hit: median(&self.hit),
            hit_idle: median(&self.hit_idle),
            dereg: median(&self.dereg),
            dereg_last: median(&self.dereg_last),
            ibv_reg: median(&self.ibv_reg),
            ibv_dereg: median(&self.ibv_dereg),
        }
    }
}
