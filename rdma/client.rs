// SPDX-License-Identifier: GPL-2.0

//! Clients of the RDMA core: who is told of every device that comes and goes.
//!
//! Teardown of one device, in [`Registration`] as in the core: [`Client::remove`] takes back what
//! the client made on the device, then the core's thread waits until the last reference to the
//! [`Device`] is gone, and only then lets the device go.

use crate::{
    device::{
        Device,
        Registered, //
    },
    lease::Owner, //
};
use core::{
    marker::PhantomData,
    ptr::NonNull, //
};
use kernel::{
    error::{
        from_result,
        to_result, //
    },
    prelude::*,
    str::CStrExt,
    sync::{
        atomic::{
            AtomicFlag,
            Full, //
        },
        Arc, //
    },
    types::Opaque, //
};
use rdma_sys as sys;

/// What a client does with devices.
///
/// The core serialises the calls for one device; those for different devices run at the same time.
pub trait Client: Sized + Send + Sync + 'static {
    /// The name under which the core knows the client.
    const NAME: &'static CStr;

    /// What the client keeps for each device.
    type Data: Send + Sync + 'static;

    /// The place of the registration: a `static` of the client's module.
    ///
    /// The core calls a client with nothing but the device, so the way back to the registration is
    /// a static one.
    fn slot() -> &'static Slot<Self>;

    /// A device has come.
    ///
    /// # Context
    ///
    /// May sleep.
    ///
    /// # Errors
    ///
    /// With any error the client does without this device and hears no more of it.
    fn add(device: &Device) -> Result<Arc<Self::Data>>;

    /// A device is going. When this returns, nothing may start on it any more; what still holds a
    /// [`Device`] must let go of it in bounded time.
    ///
    /// # Context
    ///
    /// May sleep.
    fn remove(data: &Self::Data);

    /// A device has a new name ([`Device::copy_name`]).
    ///
    /// # Context
    ///
    /// May sleep.
    fn renamed(_device: &Device, _data: &Self::Data) {}
}

/// The static place of a client's registration.
pub struct Slot<C> {
    client: Opaque<sys::ib_client>,
    taken: AtomicFlag,
    _client: PhantomData<C>,
}

// SAFETY: `client` is written while `taken` is won and the core does not know it yet; after that
// only the core writes it.
unsafe impl<C: Client> Sync for Slot<C> {}

impl<C: Client> Slot<C> {
    /// Creates an empty place.
    #[expect(clippy::new_without_default, reason = "only of use in a static")]
    pub const fn new() -> Self {
        Self {
            client: Opaque::uninit(),
            taken: AtomicFlag::new(false),
            _client: PhantomData,
        }
    }
}

/// What the core keeps for the client, per device.
struct PerDevice<C: Client> {
    data: Arc<C::Data>,
    /// Dropped last: waits until nobody uses the device.
    device: Owner<Registered>,
}

/// A registered client. Dropping it removes the client from every device.
///
/// # Invariants
///
/// The client in `C::slot()` is registered.
pub struct Registration<C: Client>(PhantomData<C>);

impl<C: Client> Registration<C> {
    /// Registers the client: [`Client::add`] is called for every device there is, before this
    /// returns, and for every one that comes.
    ///
    /// # Context
    ///
    /// Sleeps.
    ///
    /// # Errors
    ///
    /// `EBUSY` if the client is registered already, else the core's error.
    pub fn new() -> Result<Self> {
        let slot = C::slot();
        if slot.taken.xchg(true, Full) {
            return Err(EBUSY);
        }
        let client = sys::ib_client {
            name: C::NAME.as_char_ptr(),
            add: Some(Self::add),
            remove: Some(Self::remove),
            rename: Some(Self::rename),
            ..pin_init::zeroed()
        };
        // SAFETY: `taken` was won above, so nobody else uses the place. A static lives until its
        // module is gone, and `Drop` unregisters before that.
        let ret = unsafe {
            slot.client.get().write(client);
            sys::ib_register_client(slot.client.get())
        };
        if let Err(e) = to_result(ret) {
            slot.taken.xchg(false, Full);
            return Err(e);
        }
        // INVARIANT: Registered above.
        Ok(Self(PhantomData))
    }

    /// # Safety
    ///
    /// To be called by the core as `ib_client.add`.
    unsafe extern "C" fn add(raw: *mut sys::ib_device) -> c_int {
        from_result(|| {
            let raw = NonNull::new(raw).ok_or(ENODEV)?;
            let place = KBox::<PerDevice<C>>::new_uninit(GFP_KERNEL)?;
            // SAFETY: The core keeps the device registered until `remove()` has returned, or this
            // function with an error; both drop the owner.
            let device = unsafe { Registered::new(raw) }?;
            let data = C::add(&Device::new(device.lease().ok_or(ENODEV)?))?;
            let per_device = KBox::write(place, PerDevice { data, device });
            // SAFETY: Called from within `add` of this very client, as the core demands.
            unsafe {
                sys::ib_set_client_data(
                    raw.as_ptr(),
                    C::slot().client.get(),
                    KBox::into_raw(per_device).cast(),
                )
            };
            Ok(0)
        })
    }

    /// # Safety
    ///
    /// To be called by the core as `ib_client.remove`.
    unsafe extern "C" fn remove(_raw: *mut sys::ib_device, data: *mut c_void) {
        // SAFETY: `add` set the data to a box and returned success; the core calls `remove` once.
        let per_device = unsafe { KBox::from_raw(data.cast::<PerDevice<C>>()) };
        C::remove(&per_device.data);
        // Drops the data, then waits for those who still use the device.
        drop(per_device);
    }

    /// # Safety
    ///
    /// To be called by the core as `ib_client.rename`.
    unsafe extern "C" fn rename(_raw: *mut sys::ib_device, data: *mut c_void) {
        // SAFETY: `add` set the data to a box, which stays until `remove`; the core serialises
        // the two.
        let per_device = unsafe { &*data.cast::<PerDevice<C>>() };
        if let Some(lease) = per_device.device.lease() {
            C::renamed(&Device::new(lease), &per_device.data);
        }
    }
}

impl<C: Client> Drop for Registration<C> {
    fn drop(&mut self) {
        // SAFETY: Registered by the type invariant.
        unsafe { sys::ib_unregister_client(C::slot().client.get()) };
        C::slot().taken.xchg(false, Full);
    }
}
