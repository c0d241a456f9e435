//! Says who was the bottleneck.

/// Writes a number with a comma between thousands: `12,300`.
#[must_use]
pub(crate) fn grouped(number: f64) -> String {
    let digits = format!("{number:.0}");
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (n, digit) in digits.char_indices() {
        if n > 0 && (digits.len() - n).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
