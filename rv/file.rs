// SPDX-License-Identifier: GPL-2.0

//! Open files of `/dev/rv`: their states and the table of ioctls.
//!
//! A file is attached once, to one port of one device, and detached once: when it is closed, or
//! when the device goes. `state` is behind a spin lock that is held for a look at it, no longer; every
//! ioctl works on its own reference to the [`Attachment`], so none waits for another, and detaching
//! waits for none.
//!
//! Lock order: a device's `files`, then `state`, then a lock of the attachment's cache or ring, which
//! spin, too.

#[cfg(CONFIG_COMPAT)]
use crate::compat;
use crate::{
    abi::{
        self,
        Revision, //
    },
    attach::{
        user_mr_enabled,
        Attachment,
        Request,
        Row, //
    },
    ring::Ring,
    trace, //
};
use kernel::{
    fs,
    miscdevice::{
        MiscDevice,
        MiscDeviceRegistration, //
    },
    mm::virt::VmaNew,
    new_spinlock,
    prelude::*,
    sync::{
        Arc,
        ArcBorrow,
        SpinLock, //
    },
    time::{
        Instant,
        Monotonic, //
    },
    uaccess::UserPtr, //
};

/// Whether a file is attached.
enum Phase {
    Unattached,
    Attaching,
    Attached(Arc<Attachment>),
    WasAttached,
}

struct State {
    /// The caller's revision of the ABI, by its last CAPABILITY or QUERY.
    revision: Option<Revision>,
    phase: Phase,
    /// Stays mappable after the device has gone.
    ring: Option<Arc<Ring>>,
}

/// An open file of `/dev/rv`.
#[pin_data]
pub(crate) struct File {
    #[pin]
    state: SpinLock<State>,
}

impl File {
    /// The attachment.
    ///
    /// # Errors
    ///
    /// `ENXIO` if there was one, `EINVAL` if there is none yet.
    fn attachment(&self) -> Result<Arc<Attachment>> {
        match &self.state.lock().phase {
            Phase::Attached(attachment) => Ok(attachment.clone()),
            Phase::WasAttached => Err(ENXIO),
            Phase::Unattached | Phase::Attaching => Err(EINVAL),
        }
    }

    /// What there is to show of the attachment, if there is one.
    pub(crate) fn row(&self) -> Option<Row> {
        match &self.state.lock().phase {
            Phase::Attached(attachment) => Some(attachment.row()),
            _ => None,
        }
    }

    /// Ends the attachment for good. Does nothing if there is none.
    ///
    /// # Context
    ///
    /// Sleeps.
    pub(crate) fn detach(&self) {
        let phase = {
            let mut state = self.state.lock();
            match state.phase {
                // The ATTACH under way finds out by itself.
                Phase::Unattached | Phase::Attaching => return,
                _ => core::mem::replace(&mut state.phase, Phase::WasAttached),
            }
        };
        if let Phase::Attached(attachment) = phase {
            attachment.trace_detach();
            attachment.device().detach(self);
            attachment.close();
        }
    }

    fn capability(&self, arg: UserPtr) -> Result<isize> {
        let mut params: abi::rv_capability_params = abi::read(arg)?;
        let revision = Revision {
            major: params.major_rev,
            minor: params.minor_rev,
        };
        if revision <= Revision::R1_2 {
            return Err(EINVAL);
        }
        self.state.lock().revision = Some(revision);
        params.major_rev = Revision::CURRENT.major;
        params.minor_rev = Revision::CURRENT.minor;
        params.capability = capabilities();
        abi::write(arg, &params)?;
        Ok(0)
    }

    fn query(&self, arg: UserPtr) -> Result<isize> {
        self.state.lock().revision = Some(Revision::R1_2);
        let params = abi::rv_capability_params {
            major_rev: Revision::CURRENT.major,
            minor_rev: Revision::CURRENT.minor,
            capability: capabilities(),
            ..Default::default()
        };
        abi::write(arg, &params)?;
        Ok(0)
    }

    /// ATTACH; `read` fetches its input in the form the caller has.
    fn attach(
        self: ArcBorrow<'_, Self>,
        arg: UserPtr,
        read: impl FnOnce() -> Result<abi::rv_attach_params_in>,
    ) -> Result<isize> {
        let revision = self.state.lock().revision.ok_or(EINVAL)?;
        let request = Request::new(&read()?)?;
        {
            let mut state = self.state.lock();
            match state.phase {
                Phase::Unattached => state.phase = Phase::Attaching,
                _ => return Err(EBUSY),
            }
        }
        let outcome = self.build(&request, revision, arg);
        if outcome.is_err() {
            let mut state = self.state.lock();
            if matches!(state.phase, Phase::Attaching) {
                state.phase = Phase::Unattached;
            }
        }
        request.trace(&outcome);
        outcome.map(|_| 0)
    }

    /// Makes the attachment and tells the caller; undoes it if that is not possible. Returns the
    /// caller's index.
    fn build(
        self: ArcBorrow<'_, Self>,
        request: &Request,
        revision: Revision,
        arg: UserPtr,
    ) -> Result<u16> {
        let attachment = Attachment::new(request)?;
        let undo = |e: Error| {
            attachment.close();
            e
        };
        abi::write(arg, &attachment.answer(revision)).map_err(undo)?;
        {
            let mut state = self.state.lock();
            state.ring = attachment.ring().cloned();
            state.phase = Phase::Attached(attachment.clone());
        }
        // From here on the device's removal finds the file.
        let known = attachment.device().attach(self.into());
        if known.is_err() {
            let mut state = self.state.lock();
            state.ring = None;
            state.phase = Phase::Unattached;
        }
        known.map_err(undo)?;
        Ok(attachment.index())
    }

    /// REG_MEM; `params` is its input in the form the caller has.
    fn reg_mem(&self, arg: UserPtr, params: abi::rv_mem_params_in) -> Result<isize> {
        if params.access & abi::IBV_ACCESS_KERNEL == 0 && !user_mr_enabled() {
            return Err(EINVAL);
        }
        let attachment = self.attachment()?;
        let out = attachment.reg_mem(&params)?;
        if let Err(e) = abi::write(arg, &out) {
            attachment.undo_reg_mem(&params, &out);
            return Err(e);
        }
        Ok(0)
    }

    fn get_cache_stats(&self, arg: UserPtr) -> Result<isize> {
        let stats = match self.attachment() {
            Ok(attachment) => attachment.cache_stats(),
            Err(_) => Default::default(),
        };
        abi::write(arg, &stats)?;
        Ok(0)
    }

    fn get_event_stats(&self, arg: UserPtr) -> Result<isize> {
        let stats = match self.attachment() {
            Ok(attachment) => attachment.event_stats(),
            Err(_) => Default::default(),
        };
        abi::write(arg, &stats)?;
        Ok(0)
    }

    fn conn_connected(&self, arg: UserPtr) -> Result<isize> {
        let params: abi::rv_conn_connected_params_in = abi::read(arg)?;
        // Once detached, a file has no handles.
        let attachment = self.attachment().map_err(|_| EINVAL)?;
        Ok(isize::from(attachment.is_connected(params.handle)?))
    }

    /// An ioctl that reads `I`, works on the attachment and writes `O`.
    fn exchange<I, O>(
        &self,
        arg: UserPtr,
        work: impl FnOnce(&Attachment, &I) -> Result<O>,
    ) -> Result<isize>
    where
        I: kernel::transmute::FromBytes,
        O: kernel::transmute::AsBytes,
    {
        let input = abi::read(arg)?;
        let attachment = self.attachment()?;
        abi::write(arg, &work(&attachment, &input)?)?;
        Ok(0)
    }

    /// An ioctl that reads `I` and works on the attachment.
    fn take<I: kernel::transmute::FromBytes>(
        &self,
        arg: UserPtr,
        work: impl FnOnce(&Attachment, &I) -> Result,
    ) -> Result<isize> {
        let input = abi::read(arg)?;
        let attachment = self.attachment()?;
        work(&attachment, &input)?;
        Ok(0)
    }

    /// POST. A receipt that cannot be written is no reason to fail: the write is on its way.
    fn post(&self, arg: UserPtr) -> Result<isize> {
        let params = abi::read(arg)?;
        let out = self.attachment()?.post(&params)?;
        let _ = abi::write(arg, &out);
        Ok(0)
    }

    /// CONN_CREATE. A connection whose handle cannot be told is given back.
    fn conn_create(&self, arg: UserPtr) -> Result<isize> {
        let params = abi::read(arg)?;
        let attachment = self.attachment()?;
        let out = attachment.conn_create(&params)?;
        if let Err(e) = abi::write(arg, &out) {
            attachment.put_handle(out.handle);
            return Err(e);
        }
        Ok(0)
    }
}

/// What the module can do beyond the straight path.
fn capabilities() -> u64 {
    let user_mr = match user_mr_enabled() {
        true => abi::RV_CAP_USER_MR,
        false => 0,
    };
    u64::from(abi::RV_CAP_EVICT | user_mr)
}

/// Carries an ioctl out, with trace events before and after.
#[inline]
fn traced(cmd: u32, work: impl FnOnce() -> Result<isize>) -> Result<isize> {
    trace::ioctl_enter(cmd);
    let began = trace::ioctl_exit_enabled().then(Instant::<Monotonic>::now);
    let outcome = work();
    trace::ioctl_exit(cmd, &outcome, began);
    outcome
}

#[vtable]
impl MiscDevice for File {
    type Ptr = Arc<Self>;

    fn open(_file: &fs::File, _misc: &MiscDeviceRegistration<Self>) -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                state <- new_spinlock!(State {
                    revision: None,
                    phase: Phase::Unattached,
                    ring: None,
                }),
            }),
            GFP_KERNEL,
        )
    }

    fn release(this: Arc<Self>, _file: &fs::File) {
        this.detach();
    }

    fn mmap(this: ArcBorrow<'_, Self>, _file: &fs::File, vma: &VmaNew) -> Result {
        let ring = this.state.lock().ring.clone().ok_or(EINVAL)?;
        ring.map(vma)
    }

    fn ioctl(this: ArcBorrow<'_, Self>, _file: &fs::File, cmd: u32, arg: usize) -> Result<isize> {
        let arg = UserPtr::from_addr(arg);
        traced(cmd, || match cmd {
            abi::RV_CMD_CAPABILITY => this.capability(arg),
            abi::RV_CMD_QUERY_R2 => this.query(arg),
            abi::RV_CMD_ATTACH => this.attach(arg, || abi::read(arg)),
            abi::RV_CMD_ATTACH_R5 => this.attach(arg, || {
                Ok(abi::read::<abi::rv_attach_params_in_r5>(arg)?.into())
            }),
            abi::RV_CMD_REG_MEM => this.reg_mem(arg, abi::read(arg)?),
            abi::RV_CMD_REG_MEM_R4 => {
                this.reg_mem(arg, abi::read::<abi::rv_mem_params_in_r4>(arg)?.into())
            }
            abi::RV_CMD_REG_MEM_R1 => {
                this.reg_mem(arg, abi::read::<abi::rv_mem_params_in_r1>(arg)?.into())
            }
            abi::RV_CMD_DEREG_MEM => this.take(arg, Attachment::dereg_mem),
            abi::RV_CMD_EVICT => this.exchange(arg, Attachment::evict),
            abi::RV_CMD_GET_CACHE_STATS => this.get_cache_stats(arg),
            abi::RV_CMD_CONN_CREATE => this.conn_create(arg),
            abi::RV_CMD_CONN_CONNECT => this.take(arg, Attachment::conn_connect),
            abi::RV_CMD_CONN_CONNECTED => this.conn_connected(arg),
            abi::RV_CMD_POST_RDMA_WR_IMMED => this.post(arg),
            abi::RV_CMD_CONN_GET_STATS => this.exchange(arg, Attachment::conn_stats),
            abi::RV_CMD_GET_EVENT_STATS => this.get_event_stats(arg),
            abi::RV_CMD_CONN_GET_CONN_COUNT => this.exchange(arg, Attachment::conn_count),
            // Not ENOTTY: clients find out by EINVAL what a module does not have.
            _ => Err(EINVAL),
        })
    }

    /// Only the three forms of REG_MEM are not what they are for 64-bit callers.
    #[cfg(CONFIG_COMPAT)]
    fn compat_ioctl(
        this: ArcBorrow<'_, Self>,
        file: &fs::File,
        cmd: u32,
        arg: usize,
    ) -> Result<isize> {
        // CAST: 32-bit pointers have no more bits.
        let address = arg as u32 as usize;
        let arg = UserPtr::from_addr(address);
        match cmd {
            compat::REG_MEM => traced(cmd, || {
                this.reg_mem(arg, abi::read::<compat::MemParams>(arg)?.into())
            }),
            compat::REG_MEM_R4 => traced(cmd, || {
                this.reg_mem(arg, abi::read::<compat::MemParamsR4>(arg)?.into())
            }),
            compat::REG_MEM_R1 => traced(cmd, || {
                this.reg_mem(arg, abi::read::<compat::MemParamsR1>(arg)?.into())
            }),
            abi::RV_CMD_REG_MEM => traced(cmd, || Err(EINVAL)),
            _ => Self::ioctl(this, file, cmd, address),
        }
    }
}
