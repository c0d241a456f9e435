//! Numbers as digits. Every hit writes several: an age, a lifetime, a status, a length.

/// The digits of 00 to 99.
const PAIRS: &[u8; 200] = b"0001020304050607080910111213141516171819\
2021222324252627282930313233343536373839\
4041424344454647484950515253545556575859\
6061626364656667686970717273747576777879\
8081828384858687888990919293949596979899";

/// Appends `n` in decimal. Two digits a step, so half the divisions.
pub fn write(mut n: u64, out: &mut Vec<u8>) {
    if n < 10 {
        out.push(pair(n)[1]);
        return;
    }
    let mut digits = [0_u8; 20];
    let mut at = digits.len();
    while n >= 10 {
        at -= 2;
        digits[at..at + 2].copy_from_slice(pair(n % 100));
        n /= 100;
    }
    if n > 0 {
        at -= 1;
        digits[at] = pair(n)[1];
    }
    out.extend_from_slice(&digits[at..]);
}

/// The two digits of a number below 100.
#[must_use]
pub fn pair(n: u64) -> &'static [u8] {
    let at = (n % 100) as usize * 2;
    &PAIRS[at..at + 2]
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
