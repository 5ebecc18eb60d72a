//! `NO_PROXY`: what is reached without a proxy, as curl reads it.
//!
//! Entries are separated by commas or blanks. A lone `*` covers everything. A
//! name covers itself and the names below it, with or without a dot in front;
//! an address covers itself, however it is spelled, and a block such as
//! `10.0.0.0/8` or `fd00::/8` the addresses in it. Beyond curl, an entry may
//! end with a port. A name is never looked up to compare it with an address.

use std::net::{IpAddr, Ipv6Addr};

use crate::address::Address;

/// Whether the list excepts this address.
pub(super) fn covers(list: &str, address: &Address) -> bool {
    if list.trim() == "*" {
        return true;
    }
    let host = address.host().trim_end_matches('.').to_ascii_lowercase();
    list.split([',', ' ', '\t', '\n', '\r']).filter(|entry| !entry.is_empty()).any(|entry| {
        let (entry, port) = split_port(entry);
        port.is_none_or(|port| port == address.port()) && covers_host(entry, &host)
    })
}

fn covers_host(entry: &str, host: &str) -> bool {
    let entry = entry.trim_start_matches('[').trim_end_matches(']');
    match host.parse::<IpAddr>() {
        Ok(host) => is_in_block(host.to_canonical(), entry),
        Err(_) => {
            let entry = entry.trim_start_matches('.').trim_end_matches('.');
            let entry = entry.to_ascii_lowercase();
            // `xexample.com` is not below `example.com`.
            let above = host.strip_suffix(&entry);
            !entry.is_empty() && above.is_some_and(|above| above.is_empty() || above.ends_with('.'))
        }
    }
}

/// Whether the address is this one, or in this block.
fn is_in_block(host: IpAddr, entry: &str) -> bool {
    let (base, length) = match entry.split_once('/') {
        Some((base, length)) => match length.parse::<u32>() {
            Ok(length) => (base.trim_end_matches(']'), Some(length)),
            Err(_) => return false,
        },
        None => (entry, None),
    };
    let (host, base, bits) = match (host, base.parse::<IpAddr>().map(|ip| ip.to_canonical())) {
        (IpAddr::V4(host), Ok(IpAddr::V4(base))) => {
            (host.to_bits().into(), u128::from(base.to_bits()), 32)
        }
        (IpAddr::V6(host), Ok(IpAddr::V6(base))) => (host.to_bits(), base.to_bits(), 128),
        _ => return false,
    };
    let length = length.unwrap_or(bits);
    // Shifting by all of 128 bits is no number; a block of length 0 is everything.
    length <= bits && (host ^ base).checked_shr(bits - length).unwrap_or(0) == 0
}

/// An entry and the port at its end. An IPv6 address has its colons for itself.
fn split_port(entry: &str) -> (&str, Option<u16>) {
    let is_address = entry.parse::<Ipv6Addr>().is_ok() || entry.contains('/');
    match entry.rsplit_once(':') {
        Some((host, digits)) if !is_address => match digits.parse() {
            Ok(port) => (host, Some(port)),
            Err(_) => (entry, None),
        },
        _ => (entry, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_list_covers() {
        let table: &[(&str, &[&str], &[&str])] = &[
            ("*", &["a.example", "10.1.2.3", "[fd00::1]"], &[]),
            (" * ", &["a.example"], &[]),
            // Only alone.
            ("*,b.example", &["b.example"], &["a.example"]),
            ("*.b.example", &[], &["a.b.example"]),
            (
                "example.com",
                &["example.com", "EXAMPLE.com.", "a.example.com"],
                &["xexample.com", "example.com.org", "com"],
            ),
            (".Example.COM.", &["example.com", "a.b.example.com"], &["xexample.com"]),
            (
                "one.example, two.example\tthree.example  four.example,,",
                &["one.example", "two.example", "three.example", "four.example"],
                &["five.example"],
            ),
            (",. ,", &[], &["a.example", "10.0.0.1"]),
            ("10.0.0.1", &["10.0.0.1"], &["10.0.0.10", "110.0.0.1"]),
            // An address is not a domain.
            (".0.0.1", &[], &["10.0.0.1"]),
            (
                "10.0.0.0/8,192.168.4.0/23",
                &["10.255.0.1", "192.168.5.9"],
                &["11.0.0.1", "192.168.6.1", "a10.0.0.0"],
            ),
            ("10.1.2.3/8", &["10.9.9.9"], &["11.0.0.1"]),
            ("0.0.0.0/0", &["8.8.8.8"], &["[2001:db8::1]", "a.example"]),
            ("10.0.0.1/32,10.0.0.8/33,10.0.0.9/x", &["10.0.0.1"], &["10.0.0.8", "10.0.0.9"]),
            (
                "fd00::/8 2001:db8:0::1",
                &["[fd12::9]", "[2001:DB8::1]"],
                &["[fe80::1]", "[2001:db8::2]", "10.0.0.1"],
            ),
            ("::/0", &["[2001:db8::1]"], &["10.0.0.1"]),
            ("[fd00::1],[fd01::]/16", &["[fd00::1]", "[fd01::5]"], &["[fd02::1]"]),
            ("10.0.0.0/8", &["[::ffff:10.0.0.1]"], &["[::ffff:11.0.0.1]"]),
            (
                "a.example:8443,[fd00::1]:8443,10.0.0.1:8443",
                &["a.example:8443", "[fd00::1]:8443", "10.0.0.1:8443"],
                &["a.example", "[fd00::1]", "10.0.0.1", "b.example:8443"],
            ),
            ("a.example:443", &["a.example", "a.example:443"], &["a.example:444"]),
            ("a.example", &["a.example:8443"], &[]),
            ("a.example:port", &[], &["a.example"]),
        ];
        for (list, covered, others) in table {
            let is_covered = |host: &str| {
                let address = Address::parse(&format!("https://{host}/v1")).unwrap();
                covers(list, &address)
            };
            for host in *covered {
                assert!(is_covered(host), "{list:?} covers {host}");
            }
            for host in *others {
                assert!(!is_covered(host), "{list:?} does not cover {host}");
            }
        }
    }
}
