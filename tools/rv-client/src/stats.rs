// SPDX-License-Identifier: GPL-2.0

//! Counters, as rv keeps them.

use serde::{
    Deserialize,
    Serialize, //
};

use crate::abi;

/// Makes a struct of counters from the fields of an ABI struct.
macro_rules! counters {
    (
        $(#[$meta:meta])*
        $name:ident from $raw:ident { $($(#[$field_meta:meta])* $field:ident: $type:ty,)* }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
        #[serde(default)]
        pub struct $name {
            $($(#[$field_meta])* pub $field: $type,)*
        }

        impl From<abi::$raw> for $name {
            fn from(raw: abi::$raw) -> Self {
                Self { $($field: raw.$field,)* }
            }
        }
    };
}

counters! {
    /// Counters of the MR cache of an attachment.
    CacheStats from rv_cache_stats_params_out {
        /// Bytes of all entries.
        cache_size: u64,
        /// The most there ever were.
        max_cache_size: u64,
        /// The limit in MiB.
        limit_cache_size: u32,
        /// Entries.
        count: u32,
        /// The most there ever were.
        max_count: u32,
        /// Entries in use.
        inuse: u32,
        /// The most there ever were.
        max_inuse: u32,
        /// Bytes of the entries in use.
        inuse_bytes: u64,
        /// The most there ever were.
        max_inuse_bytes: u64,
        /// Highest reference count of any entry.
        max_refcount: u32,
        /// Registrations answered from the cache.
        hit: u64,
        /// Registrations that were made.
        miss: u64,
        /// Registrations refused since the limit was reached.
        full: u64,
        /// Registrations that failed.
        failed: u64,
        /// Entries removed since the memory was unmapped.
        remove: u64,
        /// Entries removed for room, on request, or at last use.
        evict: u64,
    }
}

counters! {
    /// Counters of the event ring of an attachment.
    EventStats from rv_event_stats_params_out {
        /// Good completions of our writes.
        send_write_cqe: u64,
        /// Bad completions of our writes.
        send_write_cqe_fail: u64,
        /// Bytes of the good ones.
        send_write_bytes: u64,
        /// Writes that arrived for us.
        recv_write_cqe: u64,
        /// Receives that failed.
        recv_write_cqe_fail: u64,
        /// Bytes that arrived for us.
        recv_write_bytes: u64,
    }
}

counters! {
    /// Counters of a connection, which all processes of the job share; times in microseconds.
    ConnStats from rv_conn_get_stats_params_out {
        /// `RV_CONN_STAT_FLAG_*`: server, client, was connected.
        flags: u8,
        /// Queue pairs that were summed up.
        num_conn: u32,
        /// Connection requests that were not answered.
        req_error: u32,
        /// Connection requests received.
        req_recv: u32,
        /// Replies that were not answered.
        rep_error: u32,
        /// Replies received.
        rep_recv: u32,
        /// Ready-to-use messages received.
        rtu_recv: u32,
        /// Connections known to be up from their first packet.
        established: u32,
        /// Disconnect requests that were not answered.
        dreq_error: u32,
        /// Disconnect requests received.
        dreq_recv: u32,
        /// Disconnect replies received.
        drep_recv: u32,
        /// Rejections received.
        rej_recv: u32,
        /// Connection manager events that were not expected.
        unexp_event: u32,
        /// Connection requests sent.
        req_sent: u32,
        /// Replies sent.
        rep_sent: u32,
        /// Ready-to-use messages sent.
        rtu_sent: u32,
        /// Rejections sent.
        rej_sent: u32,
        /// Disconnect requests sent.
        dreq_sent: u32,
        /// Disconnect replies sent.
        drep_sent: u32,
        /// How long the server waited for the first request.
        wait_time: u64,
        /// How long the address resolution took.
        resolve_time: u64,
        /// How long the connection manager took.
        connect_time: u64,
        /// How long the connection has been up.
        connected_time: u64,
        /// Completed recoveries.
        conn_recovery: u32,
        /// Writes posted.
        post_write: u64,
        /// Writes that could not be posted.
        post_write_fail: u64,
        /// Bytes posted.
        post_write_bytes: u64,
        /// Writes under way.
        outstand_send_write: u32,
        /// Good completions of writes.
        send_write_cqe: u64,
        /// Bad completions of writes.
        send_write_cqe_fail: u64,
        /// Writes received.
        recv_write_cqe: u64,
        /// Bytes received.
        recv_write_bytes: u64,
        /// Receives that failed.
        recv_cqe_fail: u64,
    }
}
