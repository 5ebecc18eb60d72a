//! `NO_PROXY`: hosts that are reached without a proxy, read as curl does.
//!
//! Entries are separated by commas or blanks. A lone `*` matches all hosts. A name matches
//! itself and its subdomains, with or without a leading dot. An IP address matches itself in
//! any notation, and a network such as `10.0.0.0/8` or `fd00::/8` the addresses in it. Beyond
//! curl, an entry may end with a port. A name is never looked up to compare it with an IP
//! address.

use std::net::{IpAddr, Ipv6Addr};

use base::address::Address;

/// Whether an entry of the list matches this address.
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
        Ok(host) => is_in_network(host.to_canonical(), entry),
        Err(_) => {
            let entry = entry.trim_start_matches('.').trim_end_matches('.');
            let entry = entry.to_ascii_lowercase();
            // `xexample.com` is not a subdomain of `example.com`.
            let above = host.strip_suffix(&entry);
            !entry.is_empty() && above.is_some_and(|above| above.is_empty() || above.ends_with('.'))
        }
    }
}

/// Whether the address is equal to this entry or in this network.
fn is_in_network(host: IpAddr, entry: &str) -> bool {
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
    // A shift by 128 bits is not defined; a network of length 0 contains all addresses.
    length <= bits && (host ^ base).checked_shr(bits - length).unwrap_or(0) == 0
}

/// Splits an entry into host and port. The colons of an IPv6 address do not count.
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
    fn entries_match_hosts_and_networks() {
        let table: &[(&str, &[&str], &[&str])] = &[
            ("*", &["a.example", "10.1.2.3", "[fd00::1]"], &[]),
            (" * ", &["a.example"], &[]),
            // `*` counts only alone.
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
            // An IP address has no subdomains.
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
