// SPDX-License-Identifier: GPL-2.0

//! The ABI as Rust sees it: every ioctl number, size and offset of ABI 1.6.
//!
//! The numbers were measured on what applications were compiled with, and stand here a second time
//! on purpose: a change of the header that changes one of them must fail.

use std::mem::offset_of;

use rv_client::abi;

/// Compares the size of a struct and the offsets of its fields.
macro_rules! layout {
    ($name:ident, $size:literal $(, $field:ident: $offset:literal)* $(,)?) => {
        assert_eq!(size_of::<abi::$name>(), $size, "size of {}", stringify!($name));
        $(
            assert_eq!(
                offset_of!(abi::$name, $field),
                $offset,
                "offset of {}.{}",
                stringify!($name),
                stringify!($field)
            );
        )*
    };
}

#[test]
fn ioctl_numbers() {
    for (name, number, expected) in [
        ("CAPABILITY", abi::RVC_CAPABILITY, 0xC040_1BFC),
        ("QUERY_R2", abi::RVC_QUERY_R2, 0x8040_1BFC),
        ("ATTACH", abi::RVC_ATTACH, 0xC0A0_1BF1),
        ("ATTACH_R5", abi::RVC_ATTACH_R5, 0xC098_1BF1),
        ("REG_MEM", abi::RVC_REG_MEM, 0xC040_1BF3),
        ("REG_MEM_R4", abi::RVC_REG_MEM_R4, 0xC038_1BF3),
        ("REG_MEM_R1", abi::RVC_REG_MEM_R1, 0xC030_1BF3),
        ("DEREG_MEM", abi::RVC_DEREG_MEM, 0x4020_1BF4),
        ("EVICT", abi::RVC_EVICT, 0xC020_1BF6),
        ("GET_CACHE_STATS", abi::RVC_GET_CACHE_STATS, 0x8070_1BF7),
        ("CONN_CREATE", abi::RVC_CONN_CREATE, 0xC030_1BF8),
        ("CONN_CONNECT", abi::RVC_CONN_CONNECT, 0x4048_1BF9),
        ("CONN_CONNECTED", abi::RVC_CONN_CONNECTED, 0x4008_1BFA),
        (
            "POST_RDMA_WR_IMMED",
            abi::RVC_POST_RDMA_WR_IMMED,
            0xC050_1BFB,
        ),
        ("CONN_GET_STATS", abi::RVC_CONN_GET_STATS, 0xC138_1BFD),
        ("GET_EVENT_STATS", abi::RVC_GET_EVENT_STATS, 0x8030_1BFE),
        (
            "CONN_GET_CONN_COUNT",
            abi::RVC_CONN_GET_CONN_COUNT,
            0xC010_1BFF,
        ),
    ] {
        assert_eq!(number, expected, "{name}: {number:#x}");
    }
}

#[test]
fn revision() {
    assert_eq!((abi::RV_ABI_VER_MAJOR, abi::RV_ABI_VER_MINOR), (1, 6));
    assert_eq!(abi::RV_FILE_NAME, b"/dev/rv\0");
}

#[test]
fn capability_and_query() {
    layout!(rv_capability_params, 64, major_rev: 0, minor_rev: 2, pad: 4, capability: 8, resv2: 16);
    layout!(rv_query_params_out, 64, major_rev: 0, minor_rev: 2, pad: 4, capability: 8, resv2: 16);
}

#[test]
fn attach() {
    layout!(
        rv_attach_params_in, 160,
        dev_name: 0, mr_cache_size: 64, rdma_mode: 68, port_num: 69, num_conn: 70, loc_addr: 72,
        index_bits: 76, loc_gid_index: 78, loc_gid: 80, job_key: 96, job_key_len: 112, pad: 116,
        service_id: 120, context: 128, cq_entries: 136, q_depth: 140, reconnect_timeout: 144,
        hb_interval: 148, fr_page_list_len: 152,
    );
    layout!(
        rv_attach_params_in_r5, 152,
        dev_name: 0, mr_cache_size: 64, rdma_mode: 68, port_num: 69, num_conn: 70, loc_addr: 72,
        index_bits: 76, loc_gid_index: 78, loc_gid: 80, job_key: 96, job_key_len: 112, pad: 116,
        service_id: 120, context: 128, cq_entries: 136, q_depth: 140, reconnect_timeout: 144,
        hb_interval: 148,
    );
    layout!(
        rv_attach_params_out, 24,
        rv_index: 0, mr_cache_size: 4, q_depth: 8, reconnect_timeout: 12, max_fmr_size: 16,
    );
    layout!(rv_attach_params, 160);
    layout!(rv_attach_params_r5, 152);
}

#[test]
fn reg_mem() {
    layout!(
        rv_mem_params_in, 64,
        ibv_pd_handle: 0, cmd_fd_int: 4, addr: 8, length: 16, access: 24, pad: 28, ulen: 32,
        udata: 40, pad2: 48, pad3: 56,
    );
    layout!(
        rv_mem_params_in_r4, 56,
        ibv_pd_handle: 0, cmd_fd_int: 4, addr: 8, length: 16, access: 24, pad: 28, ulen: 32,
        udata: 40, pad2: 48,
    );
    layout!(
        rv_mem_params_in_r1, 48,
        ibv_pd_handle: 0, cmd_fd_int: 4, addr: 8, length: 16, access: 24, pad: 28, ulen: 32,
        udata: 40,
    );
    layout!(rv_mem_params_out, 24, mr_handle: 0, iova: 8, lkey: 16, rkey: 20);
    layout!(rv_mem_params, 64);
    layout!(rv_mem_params_r4, 56);
    layout!(rv_mem_params_r1, 48);
    layout!(rv_dereg_params_in, 32, mr_handle: 0, addr: 8, length: 16, access: 24);
}

#[test]
fn evict() {
    layout!(rv_evict_search, 24, addr: 0, length: 8, access: 16);
    layout!(rv_evict_amount, 16, bytes: 0, count: 8);
    layout!(rv_evict_params_in, 32, type_: 0, pad: 1);
    layout!(rv_evict_params_out, 16, bytes: 0, count: 8);
    layout!(rv_evict_params, 32);
}

#[test]
fn cache_stats() {
    layout!(
        rv_cache_stats_params_out, 112,
        cache_size: 0, max_cache_size: 8, limit_cache_size: 16, count: 20, max_count: 24,
        inuse: 28, max_inuse: 32, inuse_bytes: 40, max_inuse_bytes: 48, max_refcount: 56, hit: 64,
        miss: 72, full: 80, failed: 88, remove: 96, evict: 104,
    );
}

#[test]
fn conn_create_and_connect() {
    layout!(
        ib_uverbs_ah_attr, 32,
        grh: 0, dlid: 24, sl: 26, src_path_bits: 27, static_rate: 28, is_global: 29, port_num: 30,
    );
    layout!(
        ib_uverbs_global_route, 24,
        dgid: 0, flow_label: 16, sgid_index: 20, hop_limit: 21, traffic_class: 22,
    );
    layout!(rv_conn_create_params_in, 48, ah: 0, rem_addr: 32, context: 40);
    layout!(rv_conn_create_params_out, 16, handle: 0, conn_handle: 8);
    layout!(rv_conn_create_params, 48);
    layout!(
        ib_user_path_rec, 64,
        dgid: 0, sgid: 16, dlid: 32, slid: 34, raw_traffic: 36, flow_label: 40, reversible: 44,
        mtu: 48, pkey: 52, hop_limit: 54, traffic_class: 55, numb_path: 56, sl: 57,
        mtu_selector: 58, rate_selector: 59, rate: 60, packet_life_time_selector: 61,
        packet_life_time: 62, preference: 63,
    );
    layout!(rv_conn_connect_params_in, 72, handle: 0, path: 8);
    layout!(rv_conn_connected_params_in, 8, handle: 0);
    layout!(rv_conn_get_conn_count_params_in, 16, handle: 0, index: 8);
    layout!(rv_conn_get_conn_count_params_out, 4, count: 0);
    layout!(rv_conn_get_conn_count_params, 16);
}

#[test]
fn conn_stats() {
    layout!(rv_conn_get_stats_params_in, 16, handle: 0, index: 8);
    layout!(
        rv_conn_get_stats_params_out, 312,
        index: 0, flags: 1, num_conn: 4, req_error: 8, req_recv: 12, rep_error: 16, rep_recv: 20,
        rtu_recv: 24, established: 28, dreq_error: 32, dreq_recv: 36, drep_recv: 40, timewait: 44,
        mra_recv: 48, rej_recv: 52, lap_error: 56, lap_recv: 60, apr_recv: 64, unexp_event: 68,
        req_sent: 72, rep_sent: 76, rtu_sent: 80, rej_sent: 84, dreq_sent: 88, drep_sent: 92,
        wait_time: 96, resolve_time: 104, connect_time: 112, connected_time: 120, resolve: 128,
        resolve_fail: 132, conn_recovery: 136, rewait_time: 144, reresolve_time: 152,
        reconnect_time: 160, max_rewait_time: 168, max_reresolve_time: 176,
        max_reconnect_time: 184, reresolve: 192, reresolve_fail: 196, post_write: 200,
        post_write_fail: 208, post_write_bytes: 216, outstand_send_write: 224,
        send_write_cqe: 232, send_write_cqe_fail: 240, recv_write_cqe: 248, recv_write_bytes: 256,
        recv_cqe_fail: 264, post_hb: 272, post_hb_fail: 280, send_hb_cqe: 288,
        send_hb_cqe_fail: 296, recv_hb_cqe: 304,
    );
    layout!(rv_conn_get_stats_params, 312);
}

#[test]
fn event_stats() {
    layout!(
        rv_event_stats_params_out, 48,
        send_write_cqe: 0, send_write_cqe_fail: 8, send_write_bytes: 16, recv_write_cqe: 24,
        recv_write_cqe_fail: 32, recv_write_bytes: 40,
    );
}

#[test]
fn post() {
    layout!(
        rv_post_write_params_in, 80,
        handle: 0, loc_addr: 8, loc_mr_handle: 16, loc_mr_addr: 24, loc_mr_length: 32,
        loc_mr_access: 40, rkey: 44, rem_addr: 48, length: 56, wr_id: 64, immed: 72,
    );
    layout!(rv_post_write_params_out, 8, sconn_index: 0, conn_count: 4);
    layout!(rv_post_write_params, 80);
}

#[test]
fn event_ring() {
    layout!(rv_ring_header, 64, head: 0, tail: 4, overflow_cnt: 8, pad: 16, entries: 64);
    layout!(rv_event, 65, event_type: 0);
    let event = [
        (abi::RVC_EVENT_SIZE, 65),
        (abi::RVC_EVENT_TYPE, 0),
        (abi::RVC_EVENT_STATUS, 1),
        (abi::RVC_EVENT_IMM_DATA, 4),
        (abi::RVC_EVENT_WR_ID, 9),
        (abi::RVC_EVENT_CONN_HANDLE, 17),
        (abi::RVC_EVENT_BYTE_LEN, 25),
        (abi::RVC_RING_ALLOC_LEN_1, 129),
        (abi::RVC_RING_ALLOC_LEN_192, 12_544),
        (abi::RVC_RING_ALLOC_LEN_10000, 650_064),
    ];
    for (place, (value, expected)) in event.into_iter().enumerate() {
        assert_eq!(value, expected, "entry {place}");
    }
    assert_eq!(abi::RV_WC_RDMA_WRITE, 0);
    assert_eq!(abi::RV_WC_RECV_RDMA_WITH_IMM, 1);
}

#[test]
fn access_bits() {
    assert_eq!(abi::RVC_ACCESS_LOCAL_WRITE, 1);
    assert_eq!(abi::RVC_ACCESS_REMOTE_WRITE, 2);
    assert_eq!(abi::RVC_ACCESS_KERNEL, 0x8000_0000);
}
