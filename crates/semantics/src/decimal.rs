//! Numbers as digits. Every hit writes several: an age, a lifetime, a status, a length.

/// The digits of the numbers 00 to 99.
const PAIRS: &[u8; 200] = b"0001020304050607080910111213141516171819\
2021222324252627282930313233343536373839\
4041424344454647484950515253545556575859\
6061626364656667686970717273747576777879\
8081828384858687888990919293949596979899";

/// Appends `n` in decimal, two digits a step. Numbers of up to four digits, which are the most common, are appended as one array of known
/// length: that is a store, not a call.
pub fn write(n: u64, out: &mut Vec<u8>) {
    match n {
        0..10 => out.push(pair(n)[1]),
        10..100 => out.extend_from_slice(&pair(n)),
        100..1_000 => {
            let [_, hundreds] = pair(n / 100);
            let [tens, ones] = pair(n);
            out.extend_from_slice(&[hundreds, tens, ones]);
        }
        1_000..10_000 => out.extend_from_slice(&four(n)),
        _ => {
            write(n / 10_000, out);
            out.extend_from_slice(&four(n));
        }
    }
}

/// Returns the last four digits of `n`.
fn four(n: u64) -> [u8; 4] {
    let [a, b] = pair(n / 100);
    let [c, d] = pair(n);
    [a, b, c, d]
}

/// Returns the last two digits of `n`.
#[must_use]
pub fn pair(n: u64) -> [u8; 2] {
    let at = (n % 100) as usize * 2;
    [PAIRS[at], PAIRS[at + 1]]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_what_format_writes() {
        for n in (0..2_000).chain([9_999, 10_000, 99_999, 100_000, 123_456_789, u64::MAX - 1, u64::MAX]) {
            let mut out = Vec::new();
            write(n, &mut out);
            assert_eq!(out, n.to_string().as_bytes());
        }
    }
}
