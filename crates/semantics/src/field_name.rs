//! Field names as software behind a gateway sees them.

/// Writes a field name with a hyphen for everything that is neither a letter nor a digit; `None` if it is written so already.
///
/// CGI makes one variable of `X-Real-IP` and `X_Real_IP` (RFC 3875 §4.1.18), and some servers do so with `X.Real.IP` too. A rule about a field has to
/// hold for all of these.
#[must_use]
pub fn with_hyphens(name: &str) -> Option<String> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    (!name.bytes().all(is_plain)).then(|| name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect())
}

/// Returns whether two field names, in lower case, are one variable to CGI.
#[must_use]
pub fn is_same_variable(one: &str, other: &str) -> bool {
    let same = |a: u8, b: u8| a == b || !(a.is_ascii_alphanumeric() || b.is_ascii_alphanumeric());
    one.len() == other.len() && one.bytes().zip(other.bytes()).all(|(a, b)| same(a, b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_of_a_variable_is_one_name() {
        for name in ["x_real_ip", "x.real.ip", "x-real_ip", "x~real!ip"] {
            assert_eq!(with_hyphens(name).as_deref(), Some("x-real-ip"));
            assert!(is_same_variable(name, "x-real-ip"));
        }
        assert_eq!(with_hyphens("x-real-ip"), None);
        assert!(!is_same_variable("x-real-ip", "xareal-ip") && !is_same_variable("x-real-ip", "x-real-i"));
    }
}
