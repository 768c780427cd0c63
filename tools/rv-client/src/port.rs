// SPDX-License-Identifier: GPL-2.0

//! Finding the port to use, by what sysfs says.

use std::fs;
use std::net::IpAddr;
use std::path::{
    Path,
    PathBuf, //
};

use crate::error::{
    Error,
    Result, //
};
use crate::gid::Gid;
use crate::path::{
    rate_code,
    Endpoint,
    LinkLayer, //
};

/// Bytes of headers that the kernel takes off a netdev's MTU to get that of RoCE
/// (`iboe_get_mtu()`).
const ROCE_HEADERS: u32 = 96;

/// What the user said about the port to use.
#[derive(Clone, Debug)]
pub struct PortChoice {
    /// Name of the RDMA device; by default the one that has the address of the connection.
    pub device: Option<String>,
    /// Port of the device.
    pub port: u8,
    /// Entry of the GID table; by default the best RoCE v2 one.
    pub gid_index: Option<u16>,
}

/// The tree under `/sys`.
#[derive(Clone, Debug)]
pub struct Sysfs {
    root: PathBuf,
}

impl Default for Sysfs {
    fn default() -> Self {
        Self::at(Path::new("/sys"))
    }
}

/// An entry of a port's GID table that is in use.
#[derive(Clone, Copy, Debug)]
struct GidEntry {
    index: u16,
    gid: Gid,
    roce_v2: bool,
}

/// How well a GID fits, best first.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Fit {
    /// It is the address of the connection.
    Address,
    /// Another IPv4 address.
    Ipv4,
    /// Another routable address.
    Global,
    /// A link-local address.
    LinkLocal,
}

impl Sysfs {
    /// Uses the tree at `root`.
    pub fn at(root: &Path) -> Self {
        Self { root: root.into() }
    }

    /// Lists the RDMA devices by name.
    pub fn devices(&self) -> Vec<String> {
        names(&self.root.join("class/infiniband"))
    }

    /// Finds the port that `choice` and the local address of the connection to the peer name.
    ///
    /// # Errors
    ///
    /// [`Error::NoDevice`], [`Error::NoDeviceForAddress`], [`Error::NoPort`], [`Error::NoGid`] and
    /// [`Error::EmptyGid`] say what is not there.
    pub fn select(&self, choice: &PortChoice, address: IpAddr) -> Result<Endpoint> {
        match &choice.device {
            Some(name) => self.select_on(name, choice, address),
            None => self.select_any(choice, address),
        }
    }

    /// Uses the named device, with the GID that fits best.
    fn select_on(&self, name: &str, choice: &PortChoice, address: IpAddr) -> Result<Endpoint> {
        let present = self.devices();
        if !present.iter().any(|device| device == name) {
            return Err(Error::NoDevice {
                name: name.into(),
                present,
            });
        }
        let port = self.port(name, choice.port)?;
        let entry = match (choice.gid_index, port.link_layer()?) {
            (Some(index), _) => port.gid(index)?,
            (None, LinkLayer::InfiniBand) => port.gid(0)?,
            (None, LinkLayer::Ethernet) => port.best_gid(address)?.1,
        };
        port.endpoint(entry)
    }

    /// Uses the device that has `address`.
    fn select_any(&self, choice: &PortChoice, address: IpAddr) -> Result<Endpoint> {
        let present = self.devices();
        for name in &present {
            let Ok(port) = self.port(name, choice.port) else {
                continue;
            };
            match port.best_gid(address) {
                Ok((Fit::Address, entry)) => {
                    let index = choice.gid_index.unwrap_or(entry.index);
                    return port.endpoint(port.gid(index)?);
                }
                _ => continue,
            }
        }
        Err(Error::NoDeviceForAddress {
            address: address.to_string(),
            present,
        })
    }

    /// Returns a port that exists.
    fn port(&self, device: &str, number: u8) -> Result<Port<'_>> {
        let place = format!("class/infiniband/{device}/ports/{number}");
        let port = Port {
            sysfs: self,
            device: device.into(),
            number,
            folder: self.root.join(place),
        };
        if port.folder.is_dir() {
            return Ok(port);
        }
        Err(Error::NoPort {
            device: device.into(),
            port: number,
        })
    }
}

/// The folder of a port.
struct Port<'a> {
    sysfs: &'a Sysfs,
    device: String,
    number: u8,
    folder: PathBuf,
}

impl Port<'_> {
    /// Collects what a peer and the module need to know.
    fn endpoint(&self, entry: GidEntry) -> Result<Endpoint> {
        let link_layer = self.link_layer()?;
        let mtu = match link_layer {
            LinkLayer::Ethernet => self.netdev_mtu(entry.index).map_or(3, roce_mtu_code),
            // Not in sysfs; 2048 works on every link, as all links have at least that.
            LinkLayer::InfiniBand => 4,
        };
        Ok(Endpoint {
            device: self.device.clone(),
            port: self.number,
            link_layer,
            gid_index: entry.index,
            gid: entry.gid,
            lid: self.number_in("lid")?,
            rate: rate_code(self.rate_tenths()?),
            mtu,
            pkey: self.number_in("pkeys/0")?,
        })
    }

    fn link_layer(&self) -> Result<LinkLayer> {
        match self.text("link_layer")?.as_str() {
            "Ethernet" => Ok(LinkLayer::Ethernet),
            "InfiniBand" => Ok(LinkLayer::InfiniBand),
            other => Err(self.error("link_layer", format!("`{other}` is not supported"))),
        }
    }

    /// Returns the entry at an index that the user gave.
    fn gid(&self, index: u16) -> Result<GidEntry> {
        let empty = || Error::EmptyGid {
            device: self.device.clone(),
            port: self.number,
            index,
        };
        self.entry(index).ok_or_else(empty)
    }

    /// Returns the RoCE v2 entry that fits best to the address of the connection.
    fn best_gid(&self, address: IpAddr) -> Result<(Fit, GidEntry)> {
        let mut indices: Vec<u16> = names(&self.folder.join("gids"))
            .iter()
            .filter_map(|name| name.parse().ok())
            .collect();
        indices.sort_unstable();
        let mut best: Option<(Fit, GidEntry)> = None;
        // A table may have a thousand entries: stop at the first that cannot be beaten.
        for entry in indices.into_iter().filter_map(|index| self.entry(index)) {
            let fit = fit(entry.gid, address);
            if entry.roce_v2 && best.is_none_or(|(other, _)| fit < other) {
                best = Some((fit, entry));
            }
            if best.is_some_and(|(fit, _)| fit == Fit::Address) {
                break;
            }
        }
        best.ok_or_else(|| Error::NoGid {
            device: self.device.clone(),
            port: self.number,
        })
    }

    /// Reads an entry, if it is in use.
    fn entry(&self, index: u16) -> Option<GidEntry> {
        let gid: Gid = self.text(&format!("gids/{index}")).ok()?.parse().ok()?;
        if gid.is_zero() {
            return None;
        }
        let kind = self.text(&format!("gid_attrs/types/{index}"));
        Some(GidEntry {
            index,
            gid,
            roce_v2: kind.is_ok_and(|kind| kind == "RoCE v2"),
        })
    }

    /// Reads the MTU of the network interface that carries a GID.
    fn netdev_mtu(&self, gid_index: u16) -> Option<u32> {
        let netdev = self.text(&format!("gid_attrs/ndevs/{gid_index}")).ok()?;
        let file = self.sysfs.root.join("class/net").join(netdev).join("mtu");
        fs::read_to_string(file).ok()?.trim().parse().ok()
    }

    /// Reads the speed, e.g. `2.5 Gb/sec (1X SDR)`, in tenths of Gbit/s.
    fn rate_tenths(&self) -> Result<u32> {
        let text = self.text("rate")?;
        let number = text.split(' ').next().unwrap_or_default();
        let (whole, tenth) = number.split_once('.').unwrap_or((number, "0"));
        let tenths = || {
            let whole: u32 = whole.parse().ok()?;
            let tenth: u32 = tenth.get(..1)?.parse().ok()?;
            whole.checked_mul(10)?.checked_add(tenth)
        };
        tenths().ok_or_else(|| self.error("rate", format!("`{text}` is no speed")))
    }

    /// Reads a 16-bit number in hexadecimal form.
    fn number_in(&self, name: &str) -> Result<u16> {
        let text = self.text(name)?;
        let digits = text.trim_start_matches("0x");
        u16::from_str_radix(digits, 16)
            .map_err(|_| self.error(name, format!("`{text}` is no number")))
    }

    fn text(&self, name: &str) -> Result<String> {
        fs::read_to_string(self.folder.join(name))
            .map(|text| text.trim().to_owned())
            .map_err(|error| self.error(name, error.to_string()))
    }

    fn error(&self, name: &str, reason: String) -> Error {
        Error::Sysfs {
            path: self.folder.join(name).display().to_string(),
            reason,
        }
    }
}

/// Lists the names in a folder in order; none if there is no such folder.
fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect();
    names.sort();
    names
}

/// Tells how well a GID fits to the address of the connection.
fn fit(gid: Gid, address: IpAddr) -> Fit {
    if gid.to_ip() == address.to_canonical() {
        Fit::Address
    } else if gid.to_ipv4().is_some() {
        Fit::Ipv4
    } else if gid.is_link_local() {
        Fit::LinkLocal
    } else {
        Fit::Global
    }
}

/// Returns the code of the largest RoCE packet that fits into frames of a netdev.
fn roce_mtu_code(netdev_mtu: u32) -> u8 {
    match netdev_mtu.saturating_sub(ROCE_HEADERS) {
        4096.. => 5,
        2048.. => 4,
        1024.. => 3,
        512.. => 2,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINK_LOCAL: &str = "fe80:0000:0000:0000:5054:00ff:fe12:3456";
    const IPV4: &str = "0000:0000:0000:0000:0000:ffff:0a09:0001";
    const OTHER_IPV4: &str = "0000:0000:0000:0000:0000:ffff:c0a8:0001";
    const IPV6: &str = "2001:0db8:0000:0000:0000:0000:0000:0001";
    const EMPTY: &str = "0000:0000:0000:0000:0000:0000:0000:0000";

    /// A sysfs tree in a folder that is removed again.
    struct Tree {
        folder: tempfile::TempDir,
    }

    impl Tree {
        fn new() -> Self {
            Self {
                folder: tempfile::tempdir().unwrap(),
            }
        }

        fn put(&self, path: &str, text: &str) {
            let file = self.folder.path().join(path);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, format!("{text}\n")).unwrap();
        }

        /// Adds a device with the GIDs given as type and value.
        fn device(self, name: &str, link: &str, gids: &[(&str, &str)]) -> Self {
            let port = format!("class/infiniband/{name}/ports/1");
            self.put(&format!("{port}/link_layer"), link);
            self.put(&format!("{port}/lid"), "0x12");
            self.put(&format!("{port}/rate"), "2.5 Gb/sec (1X SDR)");
            self.put(&format!("{port}/pkeys/0"), "0xffff");
            self.put("class/net/eth0/mtu", "4200");
            for (index, (kind, gid)) in gids.iter().enumerate() {
                self.put(&format!("{port}/gids/{index}"), gid);
                self.put(&format!("{port}/gid_attrs/types/{index}"), kind);
                self.put(&format!("{port}/gid_attrs/ndevs/{index}"), "eth0");
            }
            self
        }

        fn select(
            &self,
            device: Option<&str>,
            gid_index: Option<u16>,
            address: &str,
        ) -> Result<Endpoint> {
            let choice = PortChoice {
                device: device.map(String::from),
                port: 1,
                gid_index,
            };
            Sysfs::at(self.folder.path()).select(&choice, address.parse().unwrap())
        }
    }

    fn rxe() -> Tree {
        let gids = [
            ("RoCE v2", LINK_LOCAL),
            ("IB/RoCE v1", IPV4),
            ("RoCE v2", OTHER_IPV4),
            ("RoCE v2", IPV4),
            ("RoCE v2", IPV6),
            ("RoCE v2", EMPTY),
        ];
        Tree::new().device("rxe0", "Ethernet", &gids)
    }

    #[test]
    fn device_of_the_connection() {
        let endpoint = rxe().select(None, None, "10.9.0.1").unwrap();
        assert_eq!(endpoint.device, "rxe0");
        assert_eq!(endpoint.gid_index, 3);
        assert_eq!(endpoint.gid.to_string(), IPV4);
        assert_eq!((endpoint.mtu, endpoint.rate), (5, 2));
        assert_eq!((endpoint.pkey, endpoint.lid), (0xffff, 0x12));
        assert_eq!(endpoint.number(), 0x0a09_0001);
    }

    #[test]
    fn ipv6_and_mapped_addresses() {
        let tree = rxe();
        assert_eq!(tree.select(None, None, "2001:db8::1").unwrap().gid_index, 4);
        let mapped = tree.select(None, None, "::ffff:10.9.0.1").unwrap();
        assert_eq!(mapped.gid_index, 3);
    }

    #[test]
    fn named_device_prefers_ipv4() {
        let tree = rxe();
        let endpoint = tree.select(Some("rxe0"), None, "172.16.0.1").unwrap();
        assert_eq!(endpoint.gid_index, 2);
        let only = [("RoCE v2", LINK_LOCAL)];
        let tree = Tree::new().device("rxe0", "Ethernet", &only);
        let endpoint = tree.select(Some("rxe0"), None, "172.16.0.1").unwrap();
        assert_eq!(endpoint.gid_index, 0);
    }

    #[test]
    fn gid_index_of_the_user() {
        let tree = rxe();
        let endpoint = tree.select(Some("rxe0"), Some(4), "10.9.0.1").unwrap();
        assert_eq!(endpoint.gid.to_string(), IPV6);
        for index in [5, 77] {
            let error = tree
                .select(Some("rxe0"), Some(index), "10.9.0.1")
                .unwrap_err();
            assert!(matches!(error, Error::EmptyGid { .. }), "{error}");
        }
    }

    #[test]
    fn what_is_missing_is_named() {
        let error = rxe().select(Some("rxe9"), None, "10.9.0.1").unwrap_err();
        assert!(error.to_string().contains("present: rxe0"), "{error}");
        let error = rxe().select(None, None, "172.16.0.1").unwrap_err();
        assert!(error.to_string().contains("172.16.0.1"), "{error}");
        let error = Tree::new().select(None, None, "10.9.0.1").unwrap_err();
        assert!(error.to_string().contains("present: none"), "{error}");
        let tree = Tree::new().device("rxe0", "Ethernet", &[("IB/RoCE v1", IPV4)]);
        let error = tree.select(Some("rxe0"), None, "10.9.0.1").unwrap_err();
        assert!(matches!(error, Error::NoGid { .. }), "{error}");
    }

    #[test]
    fn infiniband_uses_the_first_gid() {
        let gids = [("IB/RoCE v1", "fe80:0000:0000:0000:0002:c903:0012:3456")];
        let tree = Tree::new().device("mlx4_0", "InfiniBand", &gids);
        let endpoint = tree.select(Some("mlx4_0"), None, "10.9.0.1").unwrap();
        assert_eq!(endpoint.link_layer, LinkLayer::InfiniBand);
        assert_eq!(endpoint.number(), 0x12);
    }

    #[test]
    fn mtu_codes() {
        for (netdev, code) in [(4200, 5), (4191, 4), (1500, 3), (1000, 2), (68, 1)] {
            assert_eq!(roce_mtu_code(netdev), code, "{netdev}");
        }
    }
}
