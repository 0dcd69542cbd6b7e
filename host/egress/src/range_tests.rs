use proptest::prelude::*;

use super::*;

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap_or_else(|_| panic!("{text} is no address"))
}

/// The first and the last address of every range, and its neighbours that are
/// public.
#[test]
fn every_range_is_known_from_its_first_address_to_its_last() {
    use Special::*;
    let table: &[(&str, &str, Special)] = &[
        ("0.0.0.0", "0.255.255.255", Unspecified),
        ("10.0.0.0", "10.255.255.255", Private),
        ("100.64.0.0", "100.127.255.255", Shared),
        ("127.0.0.0", "127.255.255.255", Loopback),
        ("169.254.0.0", "169.254.255.255", LinkLocal),
        ("172.16.0.0", "172.31.255.255", Private),
        ("192.0.0.0", "192.0.0.255", Reserved),
        ("192.0.2.0", "192.0.2.255", Documentation),
        ("192.88.99.0", "192.88.99.255", Tunnel),
        ("192.168.0.0", "192.168.255.255", Private),
        ("198.18.0.0", "198.19.255.255", Benchmarking),
        ("198.51.100.0", "198.51.100.255", Documentation),
        ("203.0.113.0", "203.0.113.255", Documentation),
        ("224.0.0.0", "239.255.255.255", Multicast),
        ("240.0.0.0", "255.255.255.254", Reserved),
        ("255.255.255.255", "255.255.255.255", Broadcast),
        ("169.254.169.254", "169.254.169.254", Metadata),
        ("169.254.170.2", "169.254.170.2", Metadata),
        ("169.254.170.23", "169.254.170.23", Metadata),
        ("169.254.42.42", "169.254.42.42", Metadata),
        ("100.100.100.200", "100.100.100.200", Metadata),
        ("192.0.0.192", "192.0.0.192", Metadata),
        ("168.63.129.16", "168.63.129.16", Metadata),
        ("::", "::", Unspecified),
        ("::1", "::1", Loopback),
        ("::2", "::ffff:ffff", Reserved),
        ("::7f00:1", "::a00:1", Reserved),
        ("64:ff9b:1::", "64:ff9b:1:ffff:ffff:ffff:ffff:ffff", Tunnel),
        ("100::", "100::ffff:ffff:ffff:ffff", Reserved),
        ("2001::", "2001:0:ffff:ffff:ffff:ffff:ffff:ffff", Tunnel),
        ("2001:2::", "2001:2:0:ffff:ffff:ffff:ffff:ffff", Benchmarking),
        ("2001:10::", "2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff", Reserved),
        ("2001:db8::", "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff", Documentation),
        ("2002::", "2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff", Tunnel),
        ("3fff::", "3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff", Documentation),
        ("4000::", "fbff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", Reserved),
        ("5f00::", "5f00:ffff:ffff:ffff:ffff:ffff:ffff:ffff", Reserved),
        ("fc00::", "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", Private),
        ("fd00:ec2::254", "fd00:ec2::254", Metadata),
        ("fd00:ec2::23", "fd00:ec2::23", Metadata),
        ("fd20:ce::254", "fd20:ce::254", Metadata),
        ("fd00:42::42", "fd00:42::42", Metadata),
        ("fe00::", "fe7f:ffff:ffff:ffff:ffff:ffff:ffff:ffff", Reserved),
        ("fe80::", "febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff", LinkLocal),
        ("fec0::", "feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", Private),
        ("ff00::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", Multicast),
        // SIIT, and what only looks like a mapped address.
        ("::ffff:0:7f00:1", "::ffff:0:a00:1", Reserved),
        ("::fffe:7f00:1", "::fffe:a00:1", Reserved),
    ];
    for (first, last, kind) in table {
        for end in [first, last] {
            assert_eq!(special(ip(end)), Some(*kind), "{end}");
        }
    }
    for public in [
        "1.0.0.0",
        "8.8.8.8",
        "9.255.255.255",
        "11.0.0.0",
        "100.63.255.255",
        "100.128.0.0",
        "126.255.255.255",
        "128.0.0.0",
        "169.253.255.255",
        "169.255.0.0",
        "172.15.255.255",
        "172.32.0.0",
        "192.0.1.0",
        "192.0.3.0",
        "192.167.255.255",
        "192.169.0.0",
        "198.17.255.255",
        "198.20.0.0",
        "203.0.114.0",
        "223.255.255.255",
        "168.63.129.15",
        "2001:200::",
        "2001:db7::1",
        "2001:db9::1",
        "2003::",
        "2606:4700::1111",
        "2a00::1",
        "3ffe::1",
        "2000::1",
    ] {
        assert_eq!(special(ip(public)), None, "{public}");
    }
}

#[test]
fn ipv4_within_ipv6_is_judged_as_ipv4() {
    for (text, kind) in [
        ("::ffff:127.0.0.1", Some(Special::Loopback)),
        ("::ffff:169.254.169.254", Some(Special::Metadata)),
        ("::ffff:8.8.8.8", None),
        ("64:ff9b::10.0.0.1", Some(Special::Private)),
        ("64:ff9b::127.0.0.1", Some(Special::Loopback)),
        ("64:ff9b::169.254.169.254", Some(Special::Metadata)),
        ("64:ff9b::8.8.8.8", None),
        // Too long for the well-known prefix, so of nobody.
        ("64:ff9b:0:1::8.8.8.8", Some(Special::Reserved)),
        ("2002:7f00:1::", Some(Special::Tunnel)),
    ] {
        assert_eq!(special(ip(text)), kind, "{text}");
    }
}

#[test]
fn a_network_grants_what_lies_within_its_own_range() {
    let cases = [
        ("10.0.0.0/8", "10.1.2.3", true),
        ("10.1.0.0/16", "10.1.2.3", true),
        ("10.1.0.0/16", "10.2.2.3", false),
        ("10.0.0.0/7", "10.1.2.3", false),
        ("0.0.0.0/0", "10.1.2.3", false),
        ("0.0.0.0/0", "8.8.8.8", true),
        ("169.254.0.0/16", "169.254.1.1", true),
        ("169.254.0.0/16", "169.254.169.254", false),
        ("169.254.169.254/32", "169.254.169.254", true),
        ("0.0.0.0/8", "0.0.0.0", false),
        ("0.0.0.0/32", "0.0.0.0", false),
        ("::/128", "::", false),
        ("127.0.0.1/32", "::ffff:127.0.0.1", true),
        ("127.0.0.0/8", "64:ff9b::127.0.0.1", false),
        ("64:ff9b::/96", "64:ff9b::127.0.0.1", false),
        ("64:ff9b::127.0.0.1/128", "64:ff9b::127.0.0.1", true),
        ("fd00::/8", "fd00:ec2::254", false),
        ("fd00::/8", "fd00::1", true),
        ("::/0", "fd00::1", false),
    ];
    for (network, address, granted) in cases {
        assert_eq!(grants(&network.parse().unwrap(), ip(address)), granted, "{network} and {address}");
    }
}

/// What RFC 1918, 6598, 3927 and 1122 say, by arithmetic instead of a table.
fn is_inside_v4(address: u32) -> bool {
    let within = |base: [u8; 4], length: u32| (address ^ u32::from_be_bytes(base)) >> (32 - length) == 0;
    within([0, 0, 0, 0], 8)
        || within([10, 0, 0, 0], 8)
        || within([100, 64, 0, 0], 10)
        || within([127, 0, 0, 0], 8)
        || within([169, 254, 0, 0], 16)
        || within([172, 16, 0, 0], 12)
        || within([192, 168, 0, 0], 16)
        || within([224, 0, 0, 0], 3)
}

proptest! {
    #[test]
    fn no_inside_address_is_public_in_any_embedding(address: u32) {
        let v4 = Ipv4Addr::from(address);
        if is_inside_v4(address) {
            let [a, b, c, d] = v4.octets().map(u16::from);
            let (high, low) = ((a << 8) | b, (c << 8) | d);
            for embedded in [
                IpAddr::V4(v4),
                v4.to_ipv6_mapped().into(),
                Ipv6Addr::new(0, 0, 0, 0, 0, 0, high, low).into(),
                Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, high, low).into(),
                Ipv6Addr::new(0x64, 0xff9b, 1, 0, 0, 0, high, low).into(),
                Ipv6Addr::new(0x2002, high, low, 0, 0, 0, 0, 1).into(),
                Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, !high, !low).into(),
            ] {
                prop_assert!(special(embedded).is_some(), "{} is taken for public", embedded);
            }
        }
    }

    #[test]
    fn what_the_standard_library_calls_special_is_special(bits: u128) {
        let address = Ipv6Addr::from(bits);
        let inside = address.is_loopback() || address.is_multicast() || address.is_unspecified()
            || address.is_unique_local() || address.is_unicast_link_local();
        prop_assert!(!inside || special(address.into()).is_some());
        prop_assert!(address.segments()[0] >> 13 == 1 || special(address.into()).is_some());
    }
}
