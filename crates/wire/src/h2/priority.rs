//! Priorities: who is answered first, by the `Priority` field and its frame (RFC 9218).

/// A request's priority.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Priority {
    /// The urgency: 0 is the highest, 7 the lowest (§4.1).
    pub urgency: u8,
    /// Whether a part of the response is of use already (§4.2).
    pub incremental: bool,
}

impl Default for Priority {
    fn default() -> Self {
        Self { urgency: 3, incremental: false }
    }
}

/// Reads a field's value: a dictionary of which two members are known. The others are ignored (§4).
pub(crate) fn of(value: &[u8]) -> Priority {
    let mut priority = Priority::default();
    for member in value.split(|&byte| byte == b',').map(<[u8]>::trim_ascii) {
        // Parameters of members say nothing yet.
        let member = member.split(|&byte| byte == b';').next().unwrap_or_default().trim_ascii();
        match member {
            [b'u', b'=', urgency @ b'0'..=b'7'] => priority.urgency = urgency - b'0',
            b"i" | b"i=?1" => priority.incremental = true,
            b"i=?0" => priority.incremental = false,
            _ => {}
        }
    }
    priority
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 9218 §4.1, §4.2, §5.
    #[test]
    fn urgency_and_increments_are_understood_and_nothing_else() {
        let rows: [(&str, u8, bool); 10] = [
            ("", 3, false),
            ("u=5, i", 5, true),
            ("i,u=0", 0, true),
            ("i=?0, u=7", 7, false),
            ("i=?1", 3, true),
            ("u=8", 3, false),
            ("u=-1", 3, false),
            ("u=\"1\"", 3, false),
            ("x=1;u=2, u=1;y", 1, false),
            ("u=2, u=6", 6, false),
        ];
        for (value, urgency, incremental) in rows {
            assert_eq!(of(value.as_bytes()), Priority { urgency, incremental }, "{value}");
        }
    }
}
