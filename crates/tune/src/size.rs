//! Numbers of bytes, as configurations and people write them.

/// 1024 bytes.
pub const KIB: u64 = 1 << 10;
/// 1024 KiB.
pub const MIB: u64 = 1 << 20;
/// 1024 MiB.
pub const GIB: u64 = 1 << 30;

/// Writes a number of bytes for people: `24 MiB`, `1.5 GiB`.
#[must_use]
pub fn in_words(bytes: u64) -> String {
    if bytes >= 10 * GIB {
        format!("{} GiB", bytes / GIB)
    } else if bytes >= GIB {
        let tenths = bytes * 10 / GIB;
        format!("{}.{} GiB", tenths / 10, tenths % 10)
    } else if bytes >= MIB {
        format!("{} MiB", bytes.div_ceil(MIB))
    } else {
        format!("{} KiB", bytes.div_ceil(KIB))
    }
}

/// Writes a number of bytes as PHP, MariaDB and Redis read it: `256M`. It is rounded down to whole mebibytes.
pub(crate) fn in_mebibytes(bytes: u64) -> String {
    format!("{}M", bytes / MIB)
}

/// Reads a number of bytes as PHP, MariaDB and Redis write it: `128M`, `1g`, `256mb`, `16384`.
pub(crate) fn read(text: &str) -> Option<u64> {
    let text = text.trim().trim_matches('"').to_ascii_lowercase();
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number: u64 = text[..digits].parse().ok()?;
    let factor = match text[digits..].trim_end_matches('b') {
        "" => 1,
        "k" => KIB,
        "m" => MIB,
        "g" => GIB,
        _ => return None,
    };
    number.checked_mul(factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_and_written() {
        for (text, bytes) in [("128M", 128 * MIB), ("1g", GIB), ("256mb", 256 * MIB), ("16384", 16_384), ("\"64K\"", 64 * KIB)] {
            assert_eq!(read(text), Some(bytes), "{text}");
        }
        for text in ["", "many", "-1", "1T", "99999999999999999999", "99999999999999G"] {
            assert_eq!(read(text), None, "{text}");
        }
        for (bytes, text) in [(24 * MIB, "24 MiB"), (GIB + GIB / 2, "1.5 GiB"), (23 * GIB + GIB / 2, "23 GiB"), (8 * KIB, "8 KiB")] {
            assert_eq!(in_words(bytes), text);
        }
        assert_eq!(in_mebibytes(300 * MIB + 5), "300M");
    }
}
