//! Asks what the world's DNS says of a name: `/etc/hosts` of this machine would say something else.

use std::{
    fs,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    path::Path,
    time::Duration,
};

use simple_dns::{CLASS, Name, Packet, PacketFlag, QCLASS, QTYPE, Question, RCODE, TYPE, rdata::RData};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpStream, UdpSocket},
};

/// The time limit of each try; each server is tried twice.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(3);
const TRIES: usize = 2;
const DNS_PORT: u16 = 53;

/// A client of recursive resolvers.
#[derive(Clone, Debug)]
pub(crate) struct Dns {
    servers: Vec<SocketAddr>,
}

/// A CAA property (RFC 8659 §4.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Property {
    pub(crate) is_critical: bool,
    pub(crate) tag: String,
    pub(crate) value: String,
}

/// The reason why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Unanswered(String);

impl Dns {
    pub(crate) const fn new(servers: Vec<SocketAddr>) -> Self {
        Self { servers }
    }

    /// Creates a client for the name servers of this machine (resolv.conf(5)).
    pub(crate) fn of_this_machine() -> Self {
        let text = fs::read_to_string(Path::new("/etc/resolv.conf")).unwrap_or_default();
        Self::new(nameservers(&text))
    }

    /// Looks up A and AAAA records, and follows aliases.
    pub(crate) async fn addresses(&self, name: &str) -> Result<Vec<IpAddr>, Unanswered> {
        let mut addresses: Vec<IpAddr> = Vec::new();
        for kind in [TYPE::A, TYPE::AAAA] {
            let answer = self.ask(name, kind).await?;
            for record in parse(&answer)?.answers {
                match record.rdata {
                    RData::A(a) => addresses.push(Ipv4Addr::from(a.address).into()),
                    RData::AAAA(aaaa) => addresses.push(Ipv6Addr::from(aaaa.address).into()),
                    _ => {}
                }
            }
        }
        Ok(addresses)
    }

    /// Returns the CAA records that count for a name: its own, else those of the nearest name above it that has any (RFC 8659 §3).
    pub(crate) async fn caa(&self, name: &str) -> Result<(String, Vec<Property>), Unanswered> {
        let mut name = name;
        loop {
            let answer = self.ask(name, TYPE::CAA).await?;
            let records = parse(&answer)?.answers.into_iter();
            let properties: Vec<Property> = records
                .filter_map(|record| match record.rdata {
                    RData::CAA(caa) => Some(Property {
                        is_critical: caa.flag & 0x80 != 0,
                        tag: caa.tag.to_string().to_ascii_lowercase(),
                        value: String::from_utf8_lossy(&caa.value).trim().to_owned(),
                    }),
                    _ => None,
                })
                .collect();
            if !properties.is_empty() {
                return Ok((name.to_owned(), properties));
            }
            match name.split_once('.') {
                Some((_, above)) => name = above,
                None => return Ok((String::new(), Vec::new())),
            }
        }
    }

    async fn ask(&self, name: &str, kind: TYPE) -> Result<Vec<u8>, Unanswered> {
        let mut why = Unanswered("this machine has no name server (/etc/resolv.conf)".to_owned());
        for _ in 0..TRIES {
            for server in &self.servers {
                match tokio::time::timeout(ANSWER_TIMEOUT, exchange(*server, name, kind)).await {
                    Ok(Ok(answer)) => return Ok(answer),
                    Ok(Err(error)) => why = error,
                    Err(_) => why = Unanswered(format!("the name server {server} does not answer")),
                }
            }
        }
        Err(why)
    }
}

async fn exchange(server: SocketAddr, name: &str, kind: TYPE) -> Result<Vec<u8>, Unanswered> {
    let failed = |error: &dyn std::fmt::Display| Unanswered(format!("the name server {server}: {error}"));
    let mut id = [0; 2];
    getrandom::fill(&mut id).map_err(|error| failed(&error))?;
    let mut query = Packet::new_query(u16::from_be_bytes(id));
    query.set_flags(PacketFlag::RECURSION_DESIRED);
    let name = Name::new(name).map_err(|error| failed(&error))?;
    query.questions.push(Question::new(name, QTYPE::TYPE(kind), QCLASS::CLASS(CLASS::IN), false));
    let query = query.build_bytes_vec().map_err(|error| failed(&error))?;
    let any: IpAddr = if server.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind((any, 0)).await.map_err(|error| failed(&error))?;
    socket.connect(server).await.map_err(|error| failed(&error))?;
    socket.send(&query).await.map_err(|error| failed(&error))?;
    let mut answer = vec![0; 4096];
    let n = socket.recv(&mut answer).await.map_err(|error| failed(&error))?;
    answer.truncate(n);
    let is_cut = Packet::parse(&answer).map_err(|error| failed(&error))?.has_flags(PacketFlag::TRUNCATION);
    if is_cut {
        answer = over_tcp(server, &query).await.map_err(|error| failed(&error))?;
    }
    let packet = Packet::parse(&answer).map_err(|error| failed(&error))?;
    match packet.rcode() {
        _ if packet.id() != u16::from_be_bytes(id) => Err(failed(&"it answered another question")),
        RCODE::NoError | RCODE::NameError => Ok(answer),
        code => Err(failed(&format!("{code:?}"))),
    }
}

/// Sends a query over TCP, with its length before it (RFC 7766).
async fn over_tcp(server: SocketAddr, query: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect(server).await?;
    let length = u16::try_from(query.len()).unwrap_or(u16::MAX).to_be_bytes();
    stream.write_all(&[&length, query].concat()).await?;
    let mut length = [0; 2];
    stream.read_exact(&mut length).await?;
    let mut answer = vec![0; usize::from(u16::from_be_bytes(length))];
    stream.read_exact(&mut answer).await?;
    Ok(answer)
}

fn parse(answer: &[u8]) -> Result<Packet<'_>, Unanswered> {
    Packet::parse(answer).map_err(|error| Unanswered(error.to_string()))
}

fn nameservers(resolv_conf: &str) -> Vec<SocketAddr> {
    let servers = resolv_conf.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let address = words.next().filter(|word| *word == "nameserver").and_then(|_| words.next())?;
        // A scope (`fe80::1%eth0`) is the one part that std does not read here.
        address.split('%').next()?.parse::<IpAddr>().ok()
    });
    servers.map(|address| SocketAddr::new(address, DNS_PORT)).collect()
}

/// Returns why an authority known by these names may not certify (RFC 8659 §4.2, §4.3); `None` if it may.
pub(crate) fn forbids(properties: &[Property], authority: &[String], is_wildcard: bool) -> Option<String> {
    let known = ["issue", "issuewild", "iodef", "issuemail", "contactemail", "contactphone", "issuevmc"];
    if let Some(unknown) = properties.iter().find(|property| property.is_critical && !known.contains(&property.tag.as_str())) {
        return Some(format!("it has a critical property that nobody knows: {}", unknown.tag));
    }
    let of = |tag: &str| properties.iter().filter(|property| property.tag == tag).collect::<Vec<_>>();
    let wild = of("issuewild");
    let relevant = if is_wildcard && !wild.is_empty() { wild } else { of("issue") };
    let names = |property: &&Property| {
        let issuer = property.value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        authority.iter().any(|name| name.eq_ignore_ascii_case(&issuer))
    };
    if relevant.is_empty() || relevant.iter().any(names) {
        return None;
    }
    let allowed: Vec<&str> = relevant.iter().map(|property| property.value.as_str()).collect();
    Some(format!("it allows only: {}", allowed.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_servers_are_those_of_resolv_conf() {
        let text = "# a comment\nsearch example.org\nnameserver 192.0.2.1\nnameserver fe80::1%eth0\n nameserver 2001:db8::1 x\nnameserver nonsense\n";
        let expected = ["192.0.2.1:53", "[fe80::1]:53", "[2001:db8::1]:53"].map(|server| server.parse().expect("an address"));
        assert_eq!(nameservers(text), expected);
    }

    /// RFC 8659 §4.2 and §4.3, with the records of its examples.
    #[test]
    fn caa_is_read_as_rfc_8659_says() {
        let own = ["ca1.example.net".to_owned()];
        let property = |tag: &str, value: &str| Property { is_critical: false, tag: tag.to_owned(), value: value.to_owned() };
        type Case<'a> = (&'a [(&'a str, &'a str)], bool, bool);
        let cases: &[Case<'_>] = &[
            (&[], false, false),
            (&[("issue", "ca1.example.net")], false, false),
            (&[("issue", "CA1.example.net; account=230123")], false, false),
            (&[("issue", "ca2.example.org")], false, true),
            (&[("issue", "ca2.example.org"), ("issue", "ca1.example.net")], false, false),
            // "No certificate, please."
            (&[("issue", ";")], false, true),
            (&[("iodef", "mailto:security@example.com")], false, false),
            // `issuewild` goes before `issue` for wildcards, and is nothing to others.
            (&[("issue", "ca1.example.net"), ("issuewild", ";")], true, true),
            (&[("issue", "ca1.example.net"), ("issuewild", ";")], false, false),
            (&[("issue", "ca2.example.org"), ("issuewild", "ca1.example.net")], true, false),
            (&[("issue", "ca2.example.org")], true, true),
        ];
        for (records, is_wildcard, expected) in cases {
            let properties: Vec<Property> = records.iter().map(|(tag, value)| property(tag, value)).collect();
            assert_eq!(forbids(&properties, &own, *is_wildcard).is_some(), *expected, "{records:?}");
        }
        let critical = Property { is_critical: true, ..property("tbs", "unknown") };
        assert!(forbids(&[critical], &own, false).expect("forbidden").contains("tbs"));
    }
}
