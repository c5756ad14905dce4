//! Where a recording is: a pair of files, or both in an archive.

use super::meta::SigmfMeta;
use crate::format::{open, read_text};
use onbeat_runtime::{Error, FileUse};
use std::fs::File;
use std::io::Read;
use std::ops::Range;
use std::path::{Component, Path, PathBuf};

const META: &str = ".sigmf-meta";
const DATA: &str = ".sigmf-data";
const ARCHIVE: &str = ".sigmf";
/// Largest metadata in an archive, in bytes.
const MOST_META: u64 = 256 << 20;

/// The file with the samples, and the bytes in it that are the recording's.
pub(super) struct DataPlace {
    pub file: File,
    pub used: FileUse,
    pub path: PathBuf,
    pub bytes: Range<u64>,
}

/// Reads the metadata of a recording.
pub(super) fn read_meta(path: &Path) -> Result<SigmfMeta, Error> {
    if is_archive(path) {
        let archive = Archive::open(path)?;
        return SigmfMeta::read(path, &archive.meta);
    }
    let (meta, _) = paths(path)?;
    SigmfMeta::read(&meta, &read_text(&meta)?)
}

/// Opens the file with the samples.
pub(super) fn open_data(path: &Path, meta: &SigmfMeta) -> Result<DataPlace, Error> {
    if is_archive(path) {
        let Archive { file, used, data, .. } = Archive::open(path)?;
        return Ok(DataPlace { file, used, path: path.to_path_buf(), bytes: data });
    }
    let (meta_path, mut path) = paths(path)?;
    if let Some(name) = meta.dataset() {
        let parts: Vec<Component<'_>> = Path::new(name).components().collect();
        let [Component::Normal(_)] = parts[..] else {
            return Err(meta.error(format!(
                "`core:dataset` is `{name}`: it must be the name of a file in the same folder"
            )));
        };
        path = meta_path.with_file_name(name);
    }
    let (file, bytes, used) = open(&path)?;
    Ok(DataPlace { file, used, path, bytes: 0..bytes })
}

fn is_archive(path: &Path) -> bool {
    path.as_os_str().as_encoded_bytes().ends_with(ARCHIVE.as_bytes())
}

/// Paths of metadata and data, from either path or their common part.
pub(super) fn paths(path: &Path) -> Result<(PathBuf, PathBuf), Error> {
    let text = path.to_string_lossy();
    if text.ends_with(".sigmf-collection") {
        return Err(Error::new(format!(
            "{text}: `.sigmf-collection` files are not supported: give the `{META}` of one recording"
        )));
    }
    let base = text.strip_suffix(META).or(text.strip_suffix(DATA));
    // A name without a known ending is used as it is, whatever bytes it has.
    let with = |ending: &str| match base {
        Some(base) => PathBuf::from(format!("{base}{ending}")),
        None => {
            let mut name = path.as_os_str().to_os_string();
            name.push(ending);
            PathBuf::from(name)
        }
    };
    Ok((with(META), with(DATA)))
}

/// An archive: a tape archive with the two files of a recording.
struct Archive {
    file: File,
    used: FileUse,
    meta: String,
    data: Range<u64>,
}

impl Archive {
    fn open(path: &Path) -> Result<Self, Error> {
        let wrong = |text: String| Error::new(format!("{}: {text}", path.display()));
        let broken = |error: std::io::Error| {
            Error::with_source(format!("{} cannot be read as a tape archive", path.display()), error)
        };
        let (file, bytes, used) = open(path)?;
        let (mut metas, mut places) = (Vec::new(), Vec::new());
        let mut archive = tar::Archive::new(&file);
        for entry in archive.entries_with_seek().map_err(broken)? {
            let mut entry = entry.map_err(broken)?;
            let name = entry.path().map_err(broken)?.to_string_lossy().into_owned();
            if let Some(base) = name.strip_suffix(META) {
                if entry.size() > MOST_META {
                    return Err(wrong(format!(
                        "`{name}` has {} bytes: {MOST_META} is the limit",
                        entry.size()
                    )));
                }
                let mut text = String::new();
                entry.read_to_string(&mut text).map_err(broken)?;
                metas.push((base.to_string(), text));
            } else if let Some(base) = name.strip_suffix(DATA) {
                let begin = entry.raw_file_position();
                let end = begin.saturating_add(entry.size());
                if end > bytes {
                    return Err(wrong(format!(
                        "`{name}` ends at byte {end}, and the file has {bytes}: it is truncated"
                    )));
                }
                places.push((base.to_string(), begin..end));
            }
        }
        let [(base, meta)] = &metas[..] else {
            let names: Vec<_> = metas.iter().map(|(base, _)| base.as_str()).collect();
            return Err(wrong(match names[..] {
                [] => format!("there is no `{META}` file in the archive"),
                _ => format!("there are several recordings in the archive: {}; unpack it", names.join(", ")),
            }));
        };
        let Some((_, data)) = places.into_iter().find(|(of, _)| of == base) else {
            return Err(wrong(format!("there is no `{base}{DATA}` in the archive")));
        };
        Ok(Archive { used, meta: meta.clone(), data, file })
    }
}
