// SPDX-License-Identifier: GPL-2.0

//! RDMA devices, as rv uses them: by name, with their jobs, listeners and attached files.
//!
//! Everything on a device hangs from an attached file, so taking the device away is detaching its
//! files: see [`RvClient::remove`].
//!
//! Lock order: `REGISTRY`, then a device's `name`; a device's `files`, then what file.rs says; a device's `jobs`, then
//! what job.rs says; a device's `listeners` alone.

use crate::{
    attach::Row,
    file::File,
    job::{
        copy,
        Job, //
    },
    listener::Listeners,
    trace, //
};
use kernel::{
    new_mutex,
    prelude::*,
    sync::{
        global_lock,
        Arc,
        Mutex, //
    }, //
};
use rdma::{
    client::{
        Client,
        Slot, //
    },
    device::Device,
    workqueue::WorkqueueRef, //
};

/// What ATTACH looks devices up in, and what new devices need.
struct Registry {
    devices: KVec<Arc<RvDevice>>,
    workqueue: Option<WorkqueueRef>,
}

global_lock! {
    // SAFETY: Initialised in `init` before first use.
    unsafe(uninit) static REGISTRY: Mutex<Registry> = Registry {
        devices: KVec::new(),
        workqueue: None,
    };
}

/// Prepares the registry. Work for devices will go to `workqueue`.
///
/// # Safety
///
/// To be called once, before anything else in this file.
pub(crate) unsafe fn init(workqueue: WorkqueueRef) {
    // SAFETY: Called once by the caller's promise.
    unsafe { REGISTRY.init() };
    REGISTRY.lock().workqueue = Some(workqueue);
}

/// Lets go of the work queue, when no device is left.
pub(crate) fn exit() {
    let workqueue = REGISTRY.lock().workqueue.take();
    drop(workqueue);
}

/// The name of a device, with its NUL and zeros behind.
pub(crate) type Name = [u8; Device::NAME_LEN];

/// Attached files, and whether there may be more.
struct Files {
    attached: KVec<Arc<File>>,
    /// The device is going.
    removed: bool,
}

/// A device that rv was told of.
#[pin_data]
pub(crate) struct RvDevice {
    device: Device,
    workqueue: WorkqueueRef,
    #[pin]
    name: Mutex<Name>,
    #[pin]
    files: Mutex<Files>,
    #[pin]
    pub(crate) jobs: Mutex<KVec<Arc<Job>>>,
    #[pin]
    pub(crate) listeners: Mutex<Listeners>,
}

impl RvDevice {
    fn new(device: &Device) -> Result<Arc<Self>> {
        let workqueue = REGISTRY.lock().workqueue.clone().ok_or(ENODEV)?;
        let mut name = [0; Device::NAME_LEN];
        device.copy_name(&mut name);
        Arc::pin_init(
            pin_init!(Self {
                device: device.clone(),
                workqueue,
                name <- new_mutex!(name),
                files <- new_mutex!(Files {
                    attached: KVec::new(),
                    removed: false,
                }),
                jobs <- new_mutex!(KVec::new()),
                listeners <- new_mutex!(Listeners::new()),
            }),
            GFP_KERNEL,
        )
    }

    /// Finds the device of this name that the caller's network namespace may use.
    ///
    /// # Errors
    ///
    /// `ENODEV`.
    pub(crate) fn find(name: &Name) -> Result<Arc<Self>> {
        let registry = REGISTRY.lock();
        let device = registry
            .devices
            .iter()
            .find(|device| *device.name.lock() == *name)
            .ok_or(ENODEV)?;
        if !device.device.accessible() {
            return Err(ENODEV);
        }
        Ok(device.clone())
    }

    /// The devices there are.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn all() -> Result<KVec<Arc<Self>>> {
        copy(&REGISTRY.lock().devices)
    }

    /// The number of services that are listened for.
    pub(crate) fn service_count(&self) -> usize {
        self.listeners.lock().len()
    }

    pub(crate) fn file_count(&self) -> usize {
        self.files.lock().attached.len()
    }

    /// What there is to show of the attached files. No reference is taken: that would let a closed
    /// file's membership outlive it.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn file_rows(&self) -> Result<KVVec<Row>> {
        let files = self.files.lock();
        let mut rows = KVVec::with_capacity(files.attached.len(), GFP_KERNEL)?;
        for row in files.attached.iter().filter_map(|file| file.row()) {
            rows.push(row, GFP_KERNEL)?;
        }
        Ok(rows)
    }

    /// The name it has now.
    pub(crate) fn name(&self) -> Name {
        *self.name.lock()
    }

    /// The device itself.
    pub(crate) fn rdma(&self) -> &Device {
        &self.device
    }

    /// Where work on the device goes.
    pub(crate) fn workqueue(&self) -> &WorkqueueRef {
        &self.workqueue
    }

    /// Notes that a file is attached, for the day the device goes.
    ///
    /// # Errors
    ///
    /// `ENODEV` if that day is today, `ENOMEM`.
    pub(crate) fn attach(&self, file: Arc<File>) -> Result {
        let mut files = self.files.lock();
        if files.removed {
            return Err(ENODEV);
        }
        Ok(files.attached.push(file, GFP_KERNEL)?)
    }

    /// Forgets an attached file.
    pub(crate) fn detach(&self, file: &File) {
        let forgotten = {
            let mut files = self.files.lock();
            let at = files
                .attached
                .iter()
                .position(|attached| core::ptr::eq(&**attached, file));
            at.and_then(|at| files.attached.remove(at).ok())
        };
        drop(forgotten);
    }
}

/// rv as a client of the RDMA core.
pub(crate) struct RvClient;

static SLOT: Slot<RvClient> = Slot::new();

impl Client for RvClient {
    const NAME: &'static CStr = c"rv";

    type Data = RvDevice;

    fn slot() -> &'static Slot<Self> {
        &SLOT
    }

    fn add(device: &Device) -> Result<Arc<RvDevice>> {
        let device = RvDevice::new(device)?;
        REGISTRY.lock().devices.push(device.clone(), GFP_KERNEL)?;
        trace::device_add(&device.name());
        Ok(device)
    }

    /// Takes a device away from those who use it:
    ///
    /// 1. no ATTACH finds it any more, and one under way fails when it comes to its end;
    /// 2. every attached file is detached, as on close: its process gets ENXIO from now on;
    /// 3. what is left (connections being taken down, ioctls under way) ends in bounded time, and
    ///    with it the last reference to the device, for which the caller waits.
    fn remove(device: &RvDevice) {
        trace::device_remove(&device.name());
        let gone = {
            let mut registry = REGISTRY.lock();
            let at = registry
                .devices
                .iter()
                .position(|known| core::ptr::eq(&**known, device));
            at.and_then(|at| registry.devices.remove(at).ok())
        };
        drop(gone);
        let attached = {
            let mut files = device.files.lock();
            files.removed = true;
            core::mem::replace(&mut files.attached, KVec::new())
        };
        for file in &attached {
            file.detach();
        }
    }

    fn renamed(device: &Device, data: &RvDevice) {
        let mut name = [0; Device::NAME_LEN];
        device.copy_name(&mut name);
        *data.name.lock() = name;
    }
}
