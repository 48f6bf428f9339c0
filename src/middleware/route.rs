//! Which requests are a provider's.

use std::{fmt, sync::Arc};

use reqwest::Url;

use crate::error::ConfigError;

/// Decides by the URL.
pub type Judge = Arc<dyn Fn(&Url) -> bool + Send + Sync>;

/// Hosts, or a closure over the URL, or both; none of it: the provider is reached by name only.
#[derive(Clone, Default)]
pub struct Matcher {
    hosts: Vec<Host>,
    judge: Option<Judge>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Host {
    name: String,
    /// `None`: every port.
    port: Option<u16>,
}

impl Matcher {
    pub fn new(hosts: &[String], judge: Option<Judge>) -> Result<Self, ConfigError> {
        let hosts = hosts.iter().map(|text| {
            Host::parse(text).ok_or_else(|| {
                // Without what may be a password.
                let text = text.rsplit('@').next().unwrap_or_default();
                ConfigError(format!(
                    "\"{text}\" is not a host: write a name or an address without scheme, user and path, and the \
                     port if only that one is meant, e.g. \"api.acme.com\", \"localhost:8080\" or \"[::1]\""
                ))
            })
        });
        Ok(Self { hosts: hosts.collect::<Result<_, _>>()?, judge })
    }

    pub fn matches(&self, url: &Url) -> bool {
        self.hosts.iter().any(|host| host.is_of(url)) || self.judge.as_ref().is_some_and(|judge| judge(url))
    }

    pub fn is_empty(&self) -> bool {
        self.hosts.is_empty() && self.judge.is_none()
    }
}

/// A host that both claim.
pub fn overlap(one: &Matcher, other: &Matcher) -> Option<String> {
    let both = |host: &&Host| other.hosts.iter().any(|claimed| host.overlaps(claimed));
    one.hosts.iter().find(both).map(|host| host.name.clone())
}

impl Host {
    /// As a URL has it: lower case, international names encoded.
    fn parse(text: &str) -> Option<Self> {
        // A URL may hold what looks like a pattern; it would match nothing, and nobody would be limited.
        if text.contains('*') || text.starts_with('.') {
            return None;
        }
        let url = Url::parse(&format!("http://{text}/")).ok()?;
        let plain = url.path() == "/" && url.query().is_none() && url.fragment().is_none();
        let anonymous = url.username().is_empty() && url.password().is_none();
        // A URL leaves out the usual port of its scheme; no port is the usual one of both.
        let port = url.port().or_else(|| Url::parse(&format!("https://{text}/")).ok()?.port());
        let name = url.host_str().filter(|_| plain && anonymous)?;
        Some(Self { name: absolute(name).to_owned(), port })
    }

    fn is_of(&self, url: &Url) -> bool {
        url.host_str().is_some_and(|host| absolute(host) == self.name)
            && self.port.is_none_or(|port| url.port_or_known_default() == Some(port))
    }

    fn overlaps(&self, other: &Self) -> bool {
        self.name == other.name && (self.port.is_none() || other.port.is_none() || self.port == other.port)
    }
}

/// `api.acme.com.` is the same host.
fn absolute(host: &str) -> &str {
    host.strip_suffix('.').unwrap_or(host)
}

impl fmt::Debug for Matcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Matcher").field("hosts", &self.hosts).field("judge", &self.judge.is_some()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(host: &str, url: &str) -> bool {
        let matcher = Matcher::new(&[host.to_owned()], None).unwrap();
        matcher.matches(&url.parse().unwrap())
    }

    #[test]
    fn hosts_are_compared_as_urls_have_them() {
        assert!(matches("api.acme.com", "https://api.acme.com/v1?x=1"));
        assert!(matches("API.Acme.com", "https://api.acme.COM./"));
        assert!(matches("api.acme.com", "http://user:secret@api.acme.com:8080/"));
        assert!(!matches("acme.com", "https://api.acme.com/"));
        assert!(!matches("api.acme.com", "https://api.acme.com.evil.example/"));
        assert!(!matches("api.acme.com", "https://evil.example/api.acme.com"));
        assert!(matches("b\u{fc}cher.example", "https://xn--bcher-kva.example/"));
        assert!(matches("[::1]", "http://[0:0:0:0:0:0:0:1]:80/"));
    }

    #[test]
    fn a_port_means_only_that_one() {
        assert!(matches("localhost:8080", "http://localhost:8080/"));
        assert!(!matches("localhost:8080", "http://localhost/"));
        assert!(matches("api.acme.com:443", "https://api.acme.com/"));
        assert!(!matches("api.acme.com:443", "http://api.acme.com/"));
        assert!(matches("api.acme.com:80", "http://api.acme.com/"));
        assert!(!matches("api.acme.com:80", "https://api.acme.com/"));
    }

    #[test]
    fn what_is_no_host_is_told() {
        for text in [
            "",
            "https://api.acme.com",
            "api.acme.com/v1",
            "a b",
            "api.acme.com:x",
            "a?b",
            "*.acme.com",
            ".acme.com",
        ] {
            let error = Matcher::new(&[text.to_owned()], None).unwrap_err();
            assert!(error.to_string().contains(text), "{error}");
        }
        let error = Matcher::new(&["me:secret@api.acme.com".to_owned()], None).unwrap_err();
        assert!(!error.to_string().contains("secret"), "{error}");
    }

    #[test]
    fn two_providers_cannot_claim_one_host() {
        let matcher = |host: &str| Matcher::new(&[host.to_owned()], None).unwrap();
        let claimed = |one, other| overlap(&matcher(one), &matcher(other)).is_some();
        assert!(claimed("a.example", "a.example"));
        assert!(claimed("a.example", "a.example:8080"));
        assert!(!claimed("a.example:8081", "a.example:8080"));
        assert!(!claimed("a.example", "b.example"));
    }
}
