//! Charts as SVG. Their colours come from the page, so that they fit its light and dark mode.

use super::frame::{ChartFrame, ChartSize, SMALL};
use super::html::Html;
use super::scale::{Scale, Tick};
use super::words;
use onbeat_trace::{Buckets, CourseRecord};

/// Data of one run in a chart, with its colour and name.
pub(super) struct ChartSeries<'a, T> {
    pub colour: usize,
    pub name: &'a str,
    pub data: T,
}

/// Histogram: lower end, upper end and count of each bucket.
pub(super) type Bins = Vec<(f64, f64, f64)>;

/// Returns the bins of buckets. The lower end of a bucket follows from the one before it, or from the
/// resolution.
pub(super) fn bins(buckets: &Buckets) -> Bins {
    let mut before = 0.0;
    let bin = |(up_to_ns, count): (u64, u64)| {
        let up_to = up_to_ns as f64;
        // Buckets are at most 2 % wide, except merged ones.
        let from = if before >= up_to * 0.98 { before } else { up_to - (up_to / 100.0).max(1.0) };
        before = up_to;
        (from, up_to, count as f64)
    };
    buckets.iter().map(bin).collect()
}

/// Returns a quantile.
pub(super) fn quantile(bins: &Bins, share: f64) -> f64 {
    let total: f64 = bins.iter().map(|bin| bin.2).sum();
    let mut sum = 0.0;
    for (_, up_to, count) in bins {
        sum += count;
        if sum >= total * share * (1.0 - 1e-12) {
            return *up_to;
        }
    }
    bins.last().map_or(0.0, |bin| bin.1)
}

/// Draws a histogram. `zoomed` omits 1 % at each end and has a linear count axis. Otherwise the axis is
/// logarithmic, so that a single value is visible next to a million.
pub(super) fn histogram(all: &[ChartSeries<'_, Bins>], zoomed: bool, about: &str) -> Html {
    const BARS: usize = 96;
    let mut frame = ChartFrame::new(SMALL, about);
    let ends = |low: f64, high: f64, series: &ChartSeries<'_, Bins>| {
        let (from, to) = match zoomed {
            true => (quantile(&series.data, 0.01), quantile(&series.data, 0.99)),
            false => (series.data.first().map_or(0.0, |bin| bin.0), quantile(&series.data, 1.0)),
        };
        (low.min(from), high.max(to))
    };
    let filled = || all.iter().filter(|series| !series.data.is_empty());
    let (low, high) = filled().fold((f64::MAX, f64::MIN), |(low, high), series| ends(low, high, series));
    if low > high {
        return frame.end();
    }
    let room = ((high - low) * 0.04).max(high.abs() * 1e-5).max(1.0);
    let (low, high) = (low - room, high + room);
    let (left, right) = frame.x();
    let x = Scale::linear(low, high, left, right);
    let width = (high - low) / BARS as f64;
    let drawn: Vec<(usize, &str, Vec<f64>, u64)> = filled()
        .map(|series| {
            let mut bars = vec![0.0; BARS];
            for (from, up_to, count) in &series.data {
                spread(&mut bars, (from - low) / width, (up_to - low) / width, *count);
            }
            (series.colour, series.name, bars, series.data.iter().map(|bin| bin.2).sum::<f64>() as u64)
        })
        .collect();
    let most = drawn.iter().flat_map(|(_, _, bars, _)| bars).copied().fold(1.0, f64::max);
    let (bottom, top) = frame.y();
    let y = if zoomed {
        Scale::linear(0.0, most * 1.05, bottom, top)
    } else {
        Scale::log(0.5, most * 1.5, bottom, top)
    };
    let (ticks, unit) = x.time_ticks(4);
    frame.x_axis(&x, &ticks, unit);
    let counts = y.ticks(4).into_iter().filter(|&tick| tick >= 1.0 || tick == 0.0);
    let counts: Vec<Tick> = counts.map(|tick| (tick, words::count(tick as u64))).collect();
    frame.y_axis(&y, &counts, if zoomed { "count" } else { "count, logarithmic" });
    for (colour, name, bars, total) in drawn {
        let mut points = vec![(left, bottom)];
        for (at, &bar) in bars.iter().enumerate() {
            let (from, to) = (x.place(low + at as f64 * width), x.place(low + (at + 1) as f64 * width));
            // A wide bin can give less than one per bar, which must stay visible.
            let height = if bar > 0.0 { y.place(if zoomed { bar } else { bar.max(0.7) }) } else { bottom };
            points.extend([(from, height), (to, height)]);
        }
        points.push((right, bottom));
        frame.path("area", colour, &points, true, &format!("{name}: {}", words::count(total)));
    }
    frame.end()
}

/// Distributes `count` over the bars from `from` to `to`, in proportion to the overlap.
fn spread(bars: &mut [f64], from: f64, to: f64, count: f64) {
    let length = to - from;
    if length <= 1.0 {
        // Counts at its upper end, which no value exceeds.
        let at = (to - 1e-9).floor();
        if at >= 0.0 && at < bars.len() as f64 {
            bars[at as usize] += count;
        }
        return;
    }
    let first = from.max(0.0).floor() as usize;
    let last = to.min(bars.len() as f64).ceil().max(0.0) as usize;
    for (at, bar) in bars.iter_mut().enumerate().take(last).skip(first) {
        let covered = (to.min(at as f64 + 1.0) - from.max(at as f64)).max(0.0);
        *bar += count * covered / length;
    }
}

/// Draws percentiles from the median to the largest. Each step to the right leaves a tenth of the values.
pub(super) fn percentiles(all: &[ChartSeries<'_, Bins>], limit_ns: Option<f64>, about: &str) -> Html {
    const SHARES: [(f64, &str); 6] =
        [(0.5, "50"), (0.9, "90"), (0.99, "99"), (0.999, "99.9"), (0.9999, "99.99"), (0.99999, "99.999")];
    let mut frame = ChartFrame::new(SMALL, about);
    let total = |series: &ChartSeries<'_, Bins>| series.data.iter().map(|bin| bin.2).sum::<f64>();
    let most = all.iter().map(total).fold(1.0, f64::max);
    // Percentiles with at least one value above them.
    let shares = &SHARES
        [..SHARES.iter().position(|(share, _)| most * (1.0 - share) < 1.0).unwrap_or(SHARES.len()).max(2)];
    let steps = shares.len() as f64;
    let (left, right) = frame.x();
    let (bottom, top) = frame.y();
    let x = Scale::linear(0.0, steps, left, right);
    // 50 % is at 0, each further tenth of the rest is one to the right, and the largest is at the end.
    let place = |share: f64| ((1.0 - share).max(1e-9).log10() / -1.0 - 0.301).max(0.0).min(steps - 0.3);
    let values = all
        .iter()
        .filter(|series| !series.data.is_empty())
        .flat_map(|series| [quantile(&series.data, 0.5), quantile(&series.data, 1.0)]);
    let (low, high) = values
        .chain(limit_ns)
        .fold((f64::MAX, 1.0), |(low, high): (f64, f64), value| (low.min(value), high.max(value)));
    let far = high > low * 20.0 && low > 0.0;
    let y = if far {
        Scale::log(low * 0.8, high * 1.2, bottom, top)
    } else {
        Scale::linear(0.0, high * 1.08, bottom, top)
    };
    let ticks: Vec<Tick> = shares
        .iter()
        .map(|(share, text)| (place(*share), (*text).to_string()))
        .chain([(steps, "max".to_string())])
        .collect();
    frame.x_axis(&x, &ticks, "percentile");
    let (ticks, unit) = y.time_ticks(4);
    frame.y_axis(&y, &ticks, unit);
    for series in all.iter().filter(|series| !series.data.is_empty()) {
        let all = total(series);
        let (mut sum, mut points) = (0.0, vec![(x.place(0.0), y.place(quantile(&series.data, 0.5)))]);
        for (_, up_to, count) in &series.data {
            sum += count;
            let share = sum / all;
            if (0.5..1.0).contains(&share) {
                points.push((x.place(place(share)), y.place(*up_to)));
            }
        }
        points.push((x.place(steps), y.place(quantile(&series.data, 1.0))));
        frame.path("line", series.colour, &points, false, series.name);
    }
    limit(&mut frame, &y, limit_ns);
    frame.end()
}

fn limit(frame: &mut ChartFrame, y: &Scale, limit_ns: Option<f64>) {
    if let Some(limit_ns) = limit_ns {
        let (left, right) = frame.x();
        let at = y.place(limit_ns);
        frame.line("limit", (left, at), (right, at));
        frame.text("limit-text", "end", (right, at - 3.0), &format!("limit {}", words::time(limit_ns)));
    }
}

/// Draws values over the time of the run: a band from the smallest to the largest, and the mean as a line.
pub(super) fn course(
    all: &[ChartSeries<'_, &CourseRecord>],
    limit_ns: Option<f64>,
    size: ChartSize,
    zero: bool,
    about: &str,
) -> Html {
    let mut frame = ChartFrame::new(size, about);
    let end = |course: &CourseRecord| course.slot_ns as f64 * course.count.len() as f64;
    let duration = all.iter().map(|series| end(series.data)).fold(1.0, f64::max);
    // In an edited file the lists can have different lengths.
    let used = |course: &CourseRecord| -> Vec<usize> {
        let slots =
            course.count.len().min(course.min_ns.len()).min(course.mean_ns.len()).min(course.max_ns.len());
        (0..slots).filter(|&slot| course.count[slot] > 0).collect()
    };
    let (mut low, mut high) = (f64::MAX, f64::MIN);
    for series in all {
        for slot in used(series.data) {
            low = low.min(series.data.min_ns[slot] as f64);
            high = high.max(series.data.max_ns[slot] as f64);
        }
    }
    if low > high {
        return frame.end();
    }
    high = limit_ns.map_or(high, |limit_ns| high.max(limit_ns));
    let room = ((high - low) * 0.06).max(high * 1e-5).max(1.0);
    let low = if zero { 0.0 } else { (low - room).max(0.0) };
    let (left, right) = frame.x();
    let (bottom, top) = frame.y();
    let x = Scale::linear(0.0, duration, left, right);
    let y = Scale::linear(low, high + room, bottom, top);
    let about_x = if size.width > 600.0 { 10 } else { 4 };
    let (ticks, unit) = x.time_ticks(about_x);
    frame.x_axis(&x, &ticks, &format!("{unit} since the start"));
    let (ticks, unit) = y.time_ticks(4);
    frame.y_axis(&y, &ticks, unit);
    for series in all {
        let course = series.data;
        let middle = |slot: usize| x.place((slot as f64 + 0.5) * course.slot_ns as f64);
        let slots = used(course);
        let mut band: Vec<(f64, f64)> =
            slots.iter().map(|&slot| (middle(slot), y.place(course.max_ns[slot] as f64))).collect();
        band.extend(slots.iter().rev().map(|&slot| (middle(slot), y.place(course.min_ns[slot] as f64))));
        frame.path(
            "band",
            series.colour,
            &band,
            true,
            &format!("{}: from the smallest to the largest", series.name),
        );
        let mean: Vec<(f64, f64)> =
            slots.iter().map(|&slot| (middle(slot), y.place(course.mean_ns[slot] as f64))).collect();
        frame.path("line", series.colour, &mean, false, &format!("{}: the mean", series.name));
    }
    limit(&mut frame, &y, limit_ns);
    frame.end()
}

/// Draws stacked amounts over the time of the run. An amount is its time, kind and value.
pub(super) fn stacked(
    amounts: &[(f64, usize, f64)],
    kinds: &[(usize, String)],
    duration_ns: f64,
    size: ChartSize,
    about: &str,
) -> Html {
    let bars = if size.width > 600.0 { 120 } else { 48 };
    let mut frame = ChartFrame::new(size, about);
    let mut sums = vec![vec![0.0; kinds.len()]; bars];
    for &(time_ns, kind, amount) in amounts {
        let at = (time_ns / duration_ns.max(1.0) * bars as f64) as usize;
        if let Some(kind) = kinds.iter().position(|(number, _)| *number == kind) {
            sums[at.min(bars - 1)][kind] += amount;
        }
    }
    let most = sums.iter().map(|sum| sum.iter().sum::<f64>()).fold(1.0, f64::max);
    let (left, right) = frame.x();
    let (bottom, top) = frame.y();
    let x = Scale::linear(0.0, duration_ns.max(1.0), left, right);
    let y = Scale::linear(0.0, most * 1.05, bottom, top);
    let (ticks, unit) = x.time_ticks(if size.width > 600.0 { 10 } else { 4 });
    frame.x_axis(&x, &ticks, &format!("{unit} since the start"));
    let (ticks, unit) = y.time_ticks(4);
    frame.y_axis(&y, &ticks, &format!("{unit} late"));
    let width = (right - left) / bars as f64;
    for (at, sum) in sums.iter().enumerate() {
        let mut below = 0.0;
        for ((colour, name), &amount) in kinds.iter().zip(sum) {
            if amount > 0.0 {
                let (from, to) = (y.place(below), y.place(below + amount));
                let start = left + at as f64 * width;
                let points =
                    [(start, from), (start, to), (start + width * 0.86, to), (start + width * 0.86, from)];
                frame.path("bar", *colour, &points, true, &format!("{name}: {}", words::time(amount)));
                below += amount;
            }
        }
    }
    frame.end()
}
