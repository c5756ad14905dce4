//! NumPy arrays over the samples of chunks, without a copy.
//!
//! The array's base object is a [`ChunkOwner`]. It has the chunk, so that the memory stays valid as long as
//! any array, slice or memory view refers to it.

use numpy::npyffi::{self, NpyTypes, PY_ARRAY_API, npy_intp};
use numpy::{Element, PyArrayDescrMethods, PyUntypedArray};
use onbeat::Sample;
use onbeat_queue::sync::atomic::{AtomicBool, Ordering};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::{PyTypeInfo, ffi};
use std::any::Any;
use std::ptr;
use std::sync::{Mutex, PoisonError};

/// A sample that NumPy has a type for.
pub trait NumpySample: Sample + Element {}
impl<T: Sample + Element> NumpySample for T {}

/// Keeps a chunk for the arrays over its samples.
#[pyclass(frozen, module = "onbeat", name = "_ChunkOwner")]
pub struct ChunkOwner {
    chunk: Mutex<Option<Box<dyn Any + Send>>>,
    may_be_kept: AtomicBool,
}

impl ChunkOwner {
    /// Makes an owner. It may get its chunk later.
    pub fn new(py: Python<'_>, chunk: Option<Box<dyn Any + Send>>) -> PyResult<Bound<'_, Self>> {
        Bound::new(py, ChunkOwner { chunk: Mutex::new(chunk), may_be_kept: AtomicBool::new(false) })
    }

    /// Hands it the chunk to keep.
    pub fn keep(&self, chunk: Box<dyn Any + Send>) {
        *self.chunk.lock().unwrap_or_else(PoisonError::into_inner) = Some(chunk);
    }
}

/// Makes an array over `samples`, in the shape `dims`.
///
/// # Safety
/// The samples must stay where they are as long as the array lives: `owner` has the chunk, or gets it before
/// anyone else can free it. Nothing may write to them meanwhile, and if the array is writable, nothing may
/// read them either.
pub unsafe fn array<'py, T: NumpySample>(
    owner: Bound<'py, ChunkOwner>,
    samples: *const T,
    dims: &[usize],
    is_writable: bool,
) -> PyResult<Bound<'py, PyUntypedArray>> {
    let py = owner.py();
    let mut dims: Vec<npy_intp> = dims.iter().map(|&length| length as npy_intp).collect();
    let writable = if is_writable { npyffi::NPY_ARRAY_WRITEABLE } else { 0 };
    let flags = npyffi::NPY_ARRAY_C_CONTIGUOUS | npyffi::NPY_ARRAY_ALIGNED | writable;
    // SAFETY: NumPy is loaded, and this is a plain query.
    let array_type = unsafe { npyffi::get_type_object(py, NpyTypes::PyArray_Type) };
    // SAFETY: the type and the dimensions describe the samples, as the caller promises; NumPy takes over the
    // reference to the type of the samples.
    let made = unsafe {
        PY_ARRAY_API.PyArray_NewFromDescr(
            py,
            array_type,
            T::get_dtype(py).into_dtype_ptr(),
            dims.len() as i32,
            dims.as_mut_ptr(),
            ptr::null_mut(),
            samples.cast_mut().cast(),
            flags,
            ptr::null_mut(),
        )
    };
    // SAFETY: it is a new reference, or null with an exception.
    let made = unsafe { Bound::from_owned_ptr_or_err(py, made)? };
    // SAFETY: it is an array, and takes over the reference to the owner.
    let result =
        unsafe { PY_ARRAY_API.PyArray_SetBaseObject(py, made.as_ptr().cast(), owner.into_any().into_ptr()) };
    if result < 0 {
        return Err(PyErr::fetch(py));
    }
    if !PyUntypedArray::is_type_of(&made) {
        return Err(PyTypeError::new_err("NumPy made something else than an array"));
    }
    Ok(made.cast_into::<PyUntypedArray>()?)
}

/// Whether somebody else refers to the object.
pub fn is_kept(object: &Bound<'_, PyAny>) -> bool {
    // SAFETY: the object is alive, and this thread has the lock.
    unsafe { ffi::Py_REFCNT(object.as_ptr()) > 1 }
}

/// Finds the owner of an array's samples.
fn owner<'py>(array: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, ChunkOwner>>> {
    let mut at = array.clone();
    while at.is_instance_of::<PyUntypedArray>() {
        at = at.getattr("base")?;
    }
    Ok(at.cast_into::<ChunkOwner>().ok())
}

/// Whether [`keep`] was called for the array.
pub fn may_be_kept(array: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(owner(array)?.is_some_and(|owner| owner.get().may_be_kept.load(Ordering::Relaxed)))
}

/// Lets a step keep an input array. Its chunk comes back to the store when the last array over it is gone.
#[pyfunction]
pub fn keep<'py>(array: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let owner = owner(&array)?
        .ok_or_else(|| PyTypeError::new_err("this is not an array over a chunk of an input"))?;
    if array.getattr("flags")?.getattr("writeable")?.extract()? {
        return Err(PyTypeError::new_err(
            "an output array cannot be kept: its samples belong to the next operator; copy it",
        ));
    }
    owner.get().may_be_kept.store(true, Ordering::Relaxed);
    Ok(array)
}
