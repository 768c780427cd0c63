// SPDX-License-Identifier: GPL-2.0

//! The kernel's interval tree, of reference-counted nodes.
//!
//! A node is part of what it carries, so putting it in a tree allocates nothing. Locks: none; a
//! tree is data behind a lock of its user.
//!
//! C header: [`include/linux/interval_tree.h`](srctree/include/linux/interval_tree.h)

use core::{
    cell::UnsafeCell,
    marker::PhantomData,
    ops::Deref,
    ptr::{
        addr_of,
        NonNull, //
    }, //
};
use kernel::{
    bindings,
    prelude::*,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Relaxed,
            Release, //
        },
        Arc,
        ArcBorrow, //
    },
    types::Opaque, //
};
use rdma_sys as sys;

/// The identity of the next tree. Zero means no tree.
static NEXT_ID: Atomic<u64> = Atomic::new(1);

/// An interval, and what belongs to it.
///
/// # Invariants
///
/// `owner` is the identity of the tree that `raw` is linked into, and which owns a reference to the
/// node; or zero.
#[pin_data]
#[repr(C)]
pub struct Node<T> {
    // At offset 0: a pointer to it is a pointer to the node.
    #[pin]
    raw: Opaque<sys::interval_tree_node>,
    owner: Atomic<u64>,
    #[pin]
    value: T,
}

// SAFETY: `raw` is only written through an exclusive reference to the tree that it is in.
unsafe impl<T: Send> Send for Node<T> {}
// SAFETY: As above.
unsafe impl<T: Sync> Sync for Node<T> {}

impl<T> Node<T> {
    /// Creates a node for the addresses from `first` to `last`, both included, in no tree.
    pub fn new<E>(first: u64, last: u64, value: impl PinInit<T, E>) -> impl PinInit<Self, Error>
    where
        Error: From<E>,
    {
        let raw = sys::interval_tree_node {
            // CAST: Addresses have 64 bits on every machine with user-space RDMA.
            start: first as c_ulong,
            // CAST: As above.
            last: last as c_ulong,
            ..pin_init::zeroed()
        };
        // INVARIANT: In no tree.
        try_pin_init!(Self {
            raw <- Opaque::ffi_init(|slot: *mut sys::interval_tree_node| {
                // SAFETY: `slot` is memory for the node.
                unsafe { slot.write(raw) }
            }),
            owner: Atomic::new(0),
            value <- value,
        }? Error)
    }
}

impl<T> Deref for Node<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.value
    }
}

/// A tree of intervals, which may overlap and be equal.
///
/// # Invariants
///
/// `root` links exactly the nodes whose `owner` is `id`; each was the pointer of an `Arc` that the
/// tree owns. Only who has the tree exclusively sets a node's `owner` to `id`, or from `id` to
/// something else.
pub struct Tree<T> {
    id: u64,
    root: UnsafeCell<bindings::rb_root_cached>,
    _nodes: PhantomData<Arc<Node<T>>>,
}

// SAFETY: The tree owns references to its nodes, which may be sent.
unsafe impl<T: Send + Sync> Send for Tree<T> {}
// SAFETY: Shared references only read the links, and lend out nodes, which may be shared.
unsafe impl<T: Send + Sync> Sync for Tree<T> {}

impl<T> Tree<T> {
    /// Creates an empty tree.
    #[expect(clippy::new_without_default, reason = "every tree has an identity")]
    pub fn new() -> Self {
        // INVARIANT: No node has this identity yet.
        Self {
            id: NEXT_ID.fetch_add(1, Relaxed),
            root: UnsafeCell::new(pin_init::zeroed()),
            _nodes: PhantomData,
        }
    }

    /// Puts a node in the tree.
    ///
    /// # Errors
    ///
    /// Gives the node back if it is in a tree.
    pub fn insert(&mut self, node: Arc<Node<T>>) -> Result<(), Arc<Node<T>>> {
        // ORDERING: Acquire, so that what `remove` of another tree did to the node is over.
        if node.owner.cmpxchg(0, self.id, Acquire).is_err() {
            return Err(node);
        }
        let node = Arc::into_raw(node);
        // INVARIANT: The tree now owns the reference.
        // SAFETY: `owner` was won above, so the node is in no tree; the pointer is valid as long as
        // the tree owns the reference; the tree is exclusively ours.
        unsafe {
            sys::interval_tree_insert(Opaque::cast_into(addr_of!((*node).raw)), self.root.get())
        };
        Ok(())
    }

    /// Returns whether a node is in this tree.
    #[inline]
    pub fn contains(&self, node: &Node<T>) -> bool {
        // ORDERING: Relaxed, since no change from or to our identity can be under way.
        node.owner.load(Relaxed) == self.id
    }

    /// Takes a node out of the tree, and returns the tree's reference. `None` if it is not in it.
    pub fn remove(&mut self, node: &Arc<Node<T>>) -> Option<Arc<Node<T>>> {
        if !self.contains(node) {
            return None;
        }
        let node = Arc::as_ptr(node);
        // SAFETY: The node is in this tree by the type invariant, which is exclusively ours.
        unsafe {
            sys::interval_tree_remove(Opaque::cast_into(addr_of!((*node).raw)), self.root.get())
        };
        // SAFETY: As above: the tree's reference keeps the node.
        let owner = unsafe { &(*node).owner };
        // INVARIANT: Unlinked above.
        // ORDERING: Release, pairs with `insert`.
        owner.store(0, Release);
        // SAFETY: By the type invariant this is the pointer of an `Arc` that the tree owned.
        Some(unsafe { Arc::from_raw(node) })
    }

    /// Walks over the nodes that have an address between `first` and `last`, both included, the
    /// lowest start first.
    #[inline]
    pub fn overlapping(&self, first: u64, last: u64) -> Overlapping<'_, T> {
        Overlapping {
            tree: self,
            position: Position::Start,
            // CAST: Addresses have 64 bits on every machine with user-space RDMA.
            first: first as c_ulong,
            // CAST: As above.
            last: last as c_ulong,
        }
    }

    /// The node with the lowest start.
    pub fn first(&self) -> Option<ArcBorrow<'_, Node<T>>> {
        self.overlapping(0, u64::MAX).next()
    }
}

impl<T> Drop for Tree<T> {
    fn drop(&mut self) {
        while let Some(node) = self.first().map(Arc::from) {
            self.remove(&node);
        }
    }
}

/// How far a walk has come.
enum Position {
    Start,
    At(NonNull<sys::interval_tree_node>),
    End,
}

/// A walk over the nodes of a tree that overlap an interval.
///
/// # Invariants
///
/// A node in `position` is in `tree`.
pub struct Overlapping<'a, T> {
    tree: &'a Tree<T>,
    position: Position,
    first: c_ulong,
    last: c_ulong,
}

impl<'a, T> Iterator for Overlapping<'a, T> {
    type Item = ArcBorrow<'a, Node<T>>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let node = match self.position {
            // SAFETY: The tree does not change while it is borrowed, and the search writes nothing.
            Position::Start => unsafe {
                sys::interval_tree_iter_first(self.tree.root.get(), self.first, self.last)
            },
            // SAFETY: As above, and the node is in the tree by the type invariant.
            Position::At(node) => unsafe {
                sys::interval_tree_iter_next(node.as_ptr(), self.first, self.last)
            },
            Position::End => return None,
        };
        let Some(node) = NonNull::new(node) else {
            self.position = Position::End;
            return None;
        };
        // INVARIANT: Found in the tree.
        self.position = Position::At(node);
        // SAFETY: The node is in the tree, so by the tree's invariant it points to the first field
        // of what an `Arc` points to which the tree owns, and does for as long as it is borrowed.
        Some(unsafe { ArcBorrow::from_raw(node.as_ptr().cast::<Node<T>>()) })
    }
}
