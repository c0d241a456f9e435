//! The percentile distribution in the text form of HdrHistogram (`.hgrm`), which its plotters read.

use crate::{
    record::Distribution,
    results::{NotEncoded, Results},
};

/// Lines for each halving of the distance to 100 %, as HdrHistogram's own tools have by default.
const TICKS: u32 = 5;

/// The steps of each power of two that a precision of three digits needs.
const SUB_BUCKETS: u32 = 2048;

/// Writes the distribution of latency, in milliseconds.
///
/// # Errors
/// When the histogram of the results cannot be read.
pub fn hgrm(results: &Results) -> Result<String, NotEncoded> {
    let mut times = Distribution::new(3);
    results.histograms.latency.add_to(&mut times)?;
    let times = times.nanoseconds();
    let milliseconds = |nanoseconds: u64| nanoseconds as f64 / 1e6;
    let mut text = format!("{:>12} {:>14} {:>10} {:>14}\n\n", "Value", "Percentile", "TotalCount", "1/(1-Percentile)");
    if !times.is_empty() {
        let mut total = 0;
        for value in times.iter_quantiles(TICKS) {
            let quantile = value.quantile_iterated_to();
            let reached = milliseconds(value.value_iterated_to());
            total += value.count_since_last_iteration();
            if quantile < 1.0 {
                text += &format!("{reached:12.3} {quantile:2.12} {total:10} {:14.2}\n", 1.0 / (1.0 - quantile));
            } else {
                text += &format!("{reached:12.3} {quantile:2.12} {total:10}\n");
            }
        }
    }
    let (mean, stdev, max) =
        if times.is_empty() { (0.0, 0.0, 0.0) } else { (times.mean() / 1e6, times.stdev() / 1e6, milliseconds(times.max())) };
    text += &format!("#[Mean    = {mean:12.3}, StdDeviation   = {stdev:12.3}]\n");
    text += &format!("#[Max     = {max:12.3}, Total count    = {:12}]\n", times.len());
    text += &format!("#[Buckets = {:12}, SubBuckets     = {:12}]\n", times.buckets(), SUB_BUCKETS);
    Ok(text)
}
