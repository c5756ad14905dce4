//! Sets of processor cores, in the notation of the kernel and rtla: `0-3,5`.

use std::collections::BTreeSet;
use std::error::Error;
use std::fmt;
use std::io;
use std::str::FromStr;

use rustix::io::Errno;
use rustix::thread::{CpuSet, sched_getaffinity};

/// Upper bound of core numbers: the most that a Linux kernel can be built for (`NR_CPUS`, x86-64).
pub const CORES_MAX: usize = 8192;

const ONLINE: &str = "/sys/devices/system/cpu/online";

/// A set of core numbers, each below [`CORES_MAX`].
///
/// As text it is a comma-separated list of numbers and ranges: `0-3,5`. Parsing accepts them in any order,
/// overlapping, with spaces around. Formatting gives the shortest ascending form, as in the kernel's
/// `cpulist` files. The empty set is formatted as an empty text, which does not parse.
///
/// # Example
///
/// ```
/// use onbeat_os::CoreSet;
///
/// let cores: CoreSet = "5, 2-3, 0-1".parse()?;
/// assert_eq!(cores.to_string(), "0-3,5");
/// assert!(cores.contains(3) && !cores.contains(4));
/// assert_eq!(cores.iter().collect::<Vec<_>>(), [0, 1, 2, 3, 5]);
/// # Ok::<(), onbeat_os::cores::CoresError>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct CoreSet {
    cores: BTreeSet<usize>,
}

impl CoreSet {
    /// Makes a set of these core numbers.
    ///
    /// # Errors
    ///
    /// If one is [`CORES_MAX`] or greater.
    ///
    /// ```
    /// use onbeat_os::CoreSet;
    ///
    /// assert_eq!(CoreSet::from_cores([7, 6, 1])?.to_string(), "1,6-7");
    /// assert!(CoreSet::from_cores([8192]).is_err());
    /// # Ok::<(), onbeat_os::cores::CoresError>(())
    /// ```
    pub fn from_cores(cores: impl IntoIterator<Item = usize>) -> Result<Self, CoresError> {
        let in_range = |core| if core < CORES_MAX { Ok(core) } else { Err(CoresError::too_large(core)) };
        Ok(Self { cores: cores.into_iter().map(in_range).collect::<Result<_, _>>()? })
    }

    /// Cores that are online, from `/sys/devices/system/cpu/online`.
    ///
    /// # Errors
    ///
    /// What reading the file returns, and `InvalidData` if it does not hold a core list. The message names
    /// the file.
    pub fn online() -> io::Result<Self> {
        let named = |kind, error: &dyn Error| io::Error::new(kind, format!("{ONLINE}: {error}"));
        let text = std::fs::read_to_string(ONLINE).map_err(|error| named(error.kind(), &error))?;
        text.parse().map_err(|error| named(io::ErrorKind::InvalidData, &error))
    }

    /// Cores that the kernel keeps other threads off (`isolcpus=`, isolated cpusets); empty if the kernel
    /// does not say.
    #[must_use]
    pub fn isolated() -> Self {
        let text = std::fs::read_to_string("/sys/devices/system/cpu/isolated").unwrap_or_default();
        text.parse().unwrap_or_default()
    }

    /// Cores that the calling thread may run on now (`sched_getaffinity(2)`): those that it, its parent or
    /// `taskset` asked for, within the cpuset of the process.
    ///
    /// # Errors
    ///
    /// `Unsupported` on a kernel with more core numbers than the call has bits for here (1024).
    pub fn allowed() -> io::Result<Self> {
        let mask = sched_getaffinity(None).map_err(|errno| match errno {
            Errno::INVAL => {
                let max = CpuSet::MAX_CPU;
                let message = format!(
                    "the kernel has more core numbers than the {max} that this program can ask for; boot it \
                     with nr_cpus={max}"
                );
                io::Error::new(io::ErrorKind::Unsupported, message)
            }
            errno => errno.into(),
        })?;
        Ok(Self { cores: (0..CpuSet::MAX_CPU).filter(|core| mask.is_set(*core)).collect() })
    }

    /// Whether `core` is in the set.
    #[must_use]
    pub fn contains(&self, core: usize) -> bool {
        self.cores.contains(&core)
    }

    /// Returns the core numbers, ascending.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = usize> + ExactSizeIterator + '_ {
        self.cores.iter().copied()
    }

    /// Returns the cores of this set that are not in `other`.
    #[must_use]
    pub fn without(&self, other: &CoreSet) -> CoreSet {
        CoreSet { cores: self.cores.difference(&other.cores).copied().collect() }
    }

    /// Returns the cores that are in both sets.
    #[must_use]
    pub fn common(&self, other: &CoreSet) -> CoreSet {
        CoreSet { cores: self.cores.intersection(&other.cores).copied().collect() }
    }

    /// Returns the cores that are in either set.
    #[must_use]
    pub fn and(&self, other: &CoreSet) -> CoreSet {
        CoreSet { cores: self.cores.union(&other.cores).copied().collect() }
    }

    /// Number of cores.
    #[must_use]
    pub fn len(&self) -> usize {
        self.cores.len()
    }

    /// Whether the set is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.cores.is_empty()
    }
}

impl fmt::Display for CoreSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut cores = self.iter().peekable();
        let mut comma = "";
        while let Some(first) = cores.next() {
            let mut last = first;
            while let Some(next) = cores.next_if_eq(&(last + 1)) {
                last = next;
            }
            if first == last {
                write!(f, "{comma}{first}")?;
            } else {
                write!(f, "{comma}{first}-{last}")?;
            }
            comma = ",";
        }
        Ok(())
    }
}

impl FromStr for CoreSet {
    type Err = CoresError;

    fn from_str(list: &str) -> Result<Self, CoresError> {
        if let Some(places) = list.trim().strip_prefix("cpuset:") {
            return Self::within_allowed(&places.parse()?);
        }
        if list.trim().is_empty() {
            return Err(CoresError("the list of cores is empty; name at least one, as in 0-3,5".to_owned()));
        }
        let mut cores = BTreeSet::new();
        // Characters count from 1, as in an editor.
        let mut place = 1;
        for item in list.split(',') {
            let spaces = item.len() - item.trim_start().len();
            let range = parse_item(item.trim()).map_err(|problem| {
                CoresError(format!("cores {list:?}, at character {}: {problem}", place + spaces))
            })?;
            cores.extend(range);
            place += item.chars().count() + 1;
        }
        Ok(Self { cores })
    }
}

impl CoreSet {
    /// The cores at these places, counted from 0, among those that this process may run on.
    fn within_allowed(places: &CoreSet) -> Result<Self, CoresError> {
        let cannot =
            |error| CoresError(format!("cpuset:{places}: the allowed cores cannot be read: {error}"));
        let allowed = CoreSet::allowed().map_err(cannot)?;
        let cores: Vec<usize> = allowed.iter().collect();
        let found: Option<BTreeSet<usize>> = places.iter().map(|place| cores.get(place).copied()).collect();
        found.map(|cores| CoreSet { cores }).ok_or_else(|| {
            let last = cores.len() - 1;
            CoresError(format!(
                "cpuset:{places}: this process may run on {allowed}, whose places are 0 to {last}"
            ))
        })
    }
}

/// Parses one number or range.
fn parse_item(item: &str) -> Result<std::ops::RangeInclusive<usize>, String> {
    if item.is_empty() {
        return Err("nothing between the commas; leave one comma out".to_owned());
    }
    let (first, last) = item.split_once('-').unwrap_or((item, item));
    let (first, last) = (parse_core(first, item)?, parse_core(last, item)?);
    if first > last {
        return Err(format!("the range {item} runs backwards; write {last}-{first}"));
    }
    Ok(first..=last)
}

fn parse_core(text: &str, item: &str) -> Result<usize, String> {
    // `parse` alone would also accept a plus sign.
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(format!("{item:?} is not a core number or range; write it as 5 or 0-3"));
    }
    match text.parse() {
        Ok(core) if core < CORES_MAX => Ok(core),
        // Only digits are left: the number is too large, for `usize` as well.
        _ => Err(too_large(text)),
    }
}

fn too_large(core: impl fmt::Display) -> String {
    format!("no machine has a core {core}; the last core number is {}", CORES_MAX - 1)
}

/// Why a text is not a set of cores: the text, the place in it, and the correct form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CoresError(String);

impl CoresError {
    fn too_large(core: usize) -> Self {
        Self(too_large(core))
    }
}

impl fmt::Display for CoresError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for CoresError {}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lists_are_read_and_written_in_their_shortest_form() {
        for (text, canonical, count) in [
            ("0", "0", 1),
            ("0-3,5", "0-3,5", 5),
            ("0-0", "0", 1),
            ("0,1", "0-1", 2),
            ("5,3,1,3", "1,3,5", 3),
            ("4-8,0-5", "0-8", 9),
            (" 1 , 2-3\n", "1-3", 3),
            ("007", "7", 1),
            ("8191", "8191", 1),
            ("0-8191", "0-8191", CORES_MAX),
        ] {
            let cores: CoreSet = text.parse().unwrap();
            assert_eq!((cores.to_string().as_str(), cores.len()), (canonical, count), "{text:?}");
        }
    }

    #[test]
    fn errors_name_the_text_the_place_and_the_fix() {
        const NOT: &str = "is not a core number or range; write it as 5 or 0-3";
        for (text, message) in [
            ("", "the list of cores is empty; name at least one, as in 0-3,5"),
            (" \n", "the list of cores is empty; name at least one, as in 0-3,5"),
            ("0,,2", "cores \"0,,2\", at character 3: nothing between the commas; leave one comma out"),
            ("0,", "cores \"0,\", at character 3: nothing between the commas; leave one comma out"),
            ("0, 5-3", "cores \"0, 5-3\", at character 4: the range 5-3 runs backwards; write 3-5"),
            (
                "0-8192",
                "cores \"0-8192\", at character 1: no machine has a core 8192; the last core number is 8191",
            ),
            (
                "99999999999999999999999",
                "at character 1: no machine has a core 99999999999999999999999; the last core number is 8191",
            ),
            ("0,a", &format!("cores \"0,a\", at character 3: \"a\" {NOT}")),
            ("ä,1-", &format!("cores \"ä,1-\", at character 1: \"ä\" {NOT}")),
            ("1,-2", &format!("at character 3: \"-2\" {NOT}")),
            ("1-2-3", &format!("\"1-2-3\" {NOT}")),
            ("+1", &format!("\"+1\" {NOT}")),
            ("1 2", &format!("\"1 2\" {NOT}")),
            ("0-7:1/2", &format!("\"0-7:1/2\" {NOT}")),
            ("all", &format!("\"all\" {NOT}")),
        ] {
            let error = text.parse::<CoreSet>().unwrap_err().to_string();
            assert!(error.ends_with(message), "{text:?}: {error}");
        }
    }

    #[test]
    fn this_thread_runs_on_a_core_that_is_online() {
        let (online, allowed) = (CoreSet::online().unwrap(), CoreSet::allowed().unwrap());
        assert!(!allowed.is_empty());
        assert!(allowed.iter().all(|core| online.contains(core)), "{allowed} of {online}");
    }

    #[test]
    fn the_empty_set_is_written_as_nothing() {
        assert_eq!(CoreSet::default().to_string(), "");
        assert!(CoreSet::default().is_empty());
    }

    proptest! {
        #[test]
        fn what_was_written_reads_as_the_same(
            sparse in prop::collection::btree_set(0..CORES_MAX, 0..20),
            dense in prop::collection::btree_set(0_usize..40, 1..40),
        ) {
            let cores = CoreSet::from_cores(sparse.union(&dense).copied()).unwrap();
            let text = cores.to_string();
            let again: CoreSet = text.parse().unwrap();
            prop_assert_eq!(&again, &cores);
            prop_assert_eq!(again.to_string(), text);
        }

        #[test]
        fn any_text_is_read_or_refused(text in "[0-9,\\- a\n]{0,12}") {
            if let Ok(cores) = text.parse::<CoreSet>() {
                prop_assert!(!cores.is_empty());
            }
        }
    }
}
