"""Tensors: what becomes one, where its data lies, and what leaves it."""

import gc
import sys
import threading

import ml_dtypes
import numpy as np
import pytest

from relaxlang.base.diagnostics import DiagnosticError
from relaxlang.runtime.memory import (
    HUGE_PAGE,
    LARGE,
    POOL,
    Pool,
    allocate,
    allocate_lasting,
    available_bytes,
    format_bytes,
)
from relaxlang.runtime.ndarray import NDArray, ShapeTuple, array, as_tensor, dtype_name, empty, numpy_dtype


def code(call):
    with pytest.raises(DiagnosticError) as caught:
        call()
    return caught.value.diagnostics[0].code


def test_ndarray_is_an_array_whose_arithmetic_is_plain():
    x = array([[1, 2], [3, 4]], "float32")
    assert isinstance(x, np.ndarray) and type(x) is NDArray
    assert type(x + 1) is np.ndarray and type(np.exp(x)) is np.ndarray and type(x @ x) is np.ndarray
    assert type(x.sum(axis=0)) is np.ndarray and x.sum() == 10
    assert type(x.numpy()) is np.ndarray and np.shares_memory(x, x.numpy())
    assert type(x[1:]) is NDArray and x[0, 1] == 2
    into = empty((2, 2))
    np.add(x, x, out=into)
    np.testing.assert_array_equal(into, 2 * x.numpy())


@pytest.mark.parametrize(
    ("value", "dtype", "shape"),
    [(1.5, "float32", ()), (7, "int64", ()), (True, "bool", ()), ([[1.0]], "float32", (1, 1)), ([], "float32", (0,))],
)
def test_array_from_python_values(value, dtype, shape):
    x = array(value)
    assert (dtype_name(x.dtype), x.shape) == (dtype, shape)
    np.testing.assert_array_equal(x, np.asarray(value))


def test_array_copies_and_converts():
    source = np.arange(4.0)
    x = array(source)
    x[0] = 9
    assert source[0] == 0 and x.dtype == np.float64
    assert array(source, "int8").dtype == np.int8
    assert array(np.float16(2)).shape == ()
    assert code(lambda: array([[1], [2, 3]])) == "RLX6002"


@pytest.mark.parametrize("name", ["float32", "bool", "int8", "bfloat16", "float8_e4m3fn", "float64"])
def test_empty_is_aligned(name):
    for shape in [(), (0,), (3, 5), (1000,)]:
        x = empty(shape, name)
        assert x.shape == shape and x.dtype == numpy_dtype(name)
        assert x.__array_interface__["data"][0] % 64 == 0 and x._address == x.__array_interface__["data"][0]


def test_contiguous_arrays_are_taken_without_a_copy():
    x = np.arange(6, dtype="float32").reshape(2, 3)
    assert np.shares_memory(as_tensor(x), x)
    x.flags.writeable = False
    assert np.shares_memory(as_tensor(x), x)


@pytest.mark.parametrize(
    "view",
    [
        np.arange(24, dtype="float32").reshape(3, 8).T[::2],
        np.arange(9, dtype="float32")[8:0:-2],
        np.broadcast_to(np.float32(3), (2, 2)),
        np.arange(4, dtype=">i4"),
        np.asfortranarray(np.arange(6).reshape(2, 3)),
        np.array(3, ">f8"),
    ],
)
def test_other_layouts_are_copied(view):
    x = as_tensor(view)
    assert x.flags.c_contiguous and x.dtype.isnative and not np.shares_memory(x, view)
    assert x.shape == view.shape
    np.testing.assert_array_equal(x, view)


def test_scalars_and_foreign_values():
    assert as_tensor(np.float32(2)).shape == ()
    assert as_tensor(3, scalars=True).dtype == np.int64
    assert code(lambda: as_tensor(3)) == "RLX6002"
    assert code(lambda: as_tensor([1, 2])) == "RLX6002"
    assert code(lambda: as_tensor(np.array([1j]))) == "RLX6002"
    assert code(lambda: as_tensor(np.array(["a"]))) == "RLX6002"
    assert code(lambda: as_tensor(np.array([object()]))) == "RLX6002"


class Exporter:
    """Something that is no array but speaks DLPack."""

    def __init__(self, inner, device=(1, 0)):
        self.inner, self.device = inner, device

    def __dlpack__(self, **options):
        return self.inner.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.device


@pytest.mark.parametrize("name", ["float32", "bool", "int8", "uint64"])
def test_dlpack_both_ways(name):
    x = array([[0, 1], [1, 0]], name)
    np.testing.assert_array_equal(np.from_dlpack(x), x)
    back = as_tensor(Exporter(x))
    assert np.shares_memory(back, x) and back.dtype == x.dtype


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_dlpack_of_small_floats(name):
    x = array([[0.5, 1.0, -2.0], [0, 4, 8]], name)
    back = as_tensor(Exporter(x))
    assert back.dtype == numpy_dtype(name) and np.shares_memory(back.view(np.uint8), x.view(np.uint8))
    np.testing.assert_array_equal(back.astype("float32"), [[0.5, 1, -2], [0, 4, 8]])
    column = as_tensor(Exporter(x[:, 1]))
    np.testing.assert_array_equal(column.astype("float32"), [1, 4])
    x.__dlpack__()  # a capsule that nobody takes frees itself
    del x
    gc.collect()
    np.testing.assert_array_equal(back.astype("float32"), [[0.5, 1, -2], [0, 4, 8]])


def test_dlpack_from_another_device_is_refused():
    assert code(lambda: as_tensor(Exporter(array([1.0]), device=(2, 0)))) == "RLX6002"


def test_bfloat16_arrays_keep_their_dtype():
    x = np.array([1.5, 2.5], ml_dtypes.bfloat16)
    assert dtype_name(as_tensor(x).dtype) == "bfloat16"


def test_shape_tuple():
    shape = ShapeTuple([2, np.int64(3)])
    assert shape == (2, 3) and isinstance(shape, tuple) and type(shape[1]) is int
    assert repr(shape) == "ShapeTuple([2, 3])"
    assert code(lambda: ShapeTuple([1.5])) == code(lambda: ShapeTuple(5)) == "RLX6002"


@pytest.mark.parametrize("shape", [(1 << 40, 1 << 40), (1 << 62,), (1 << 45,), (-1, 3)])
def test_impossible_sizes(shape):
    assert code(lambda: empty(shape, "float32")) == "RLX6006"


def test_more_than_the_memory_there_is():
    left = available_bytes()
    if left is not None:
        assert code(lambda: allocate(left * 2)) == "RLX6006"


def test_format_bytes():
    assert [format_bytes(n) for n in (0, 1023, 1536, 3 << 30)] == ["0 bytes", "1023 bytes", "1.5 KiB", "3.0 GiB"]


def test_a_block_returns_to_the_pool_with_its_last_tensor():
    pool = Pool(limit=1 << 20)
    storage = pool.take(5000)
    address, tail = storage._address, storage[10:20]
    del storage
    assert pool.idle == 0  # the slice still needs it
    tail[:] = 1
    del tail
    assert pool.idle >= 5000
    again = pool.take(5000)
    assert again._address == address and pool.idle == 0
    del again
    pool.clear()
    assert pool.idle == 0


def test_the_pool_keeps_no_more_than_its_limit():
    pool = Pool(limit=10_000)
    blocks = [pool.take(4096) for _ in range(5)]
    del blocks
    assert pool.idle == 8192


def test_large_blocks_are_pages_that_go_back():
    pool = Pool(limit=LARGE)
    for size in (LARGE - 1, LARGE, LARGE + 1, 3 * LARGE):
        storage = pool.take(size)
        assert storage._address == storage.ctypes.data and storage._address % 64 == 0
        if sys.platform == "linux" and size >= LARGE:
            assert storage._address % HUGE_PAGE == 0
        storage[0], storage[-1] = 3, 7
        tail = storage[-1:]
        del storage
        assert tail.tolist() == [7]
        del tail
    assert pool.idle == LARGE


def test_lasting_memory_is_aligned_and_never_idle():
    idle = POOL.idle
    for shape in ((), (0, 3), (5, 7), (1025, 1024)):
        made = allocate_lasting(shape, np.dtype("float32"))
        made[...] = 2.5
        assert made.shape == shape and made.ctypes.data % 64 == 0 and (made == 2.5).all()
        del made
    assert POOL.idle == idle


def test_plain_views_keep_the_block():
    x = empty((2000,), "float32")
    x[:] = 7
    plain = np.asarray(x)[5:10]
    del x
    others = [empty((2000,), "float32") for _ in range(4)]
    for other in others:
        other[:] = 0
    assert plain.tolist() == [7.0] * 5


def test_threads_do_not_share_blocks():
    failures = []

    def work(value):
        for _ in range(200):
            x = empty((257,), "int32")
            x[:] = value
            if not (x == value).all():
                failures.append(value)

    threads = [threading.Thread(target=work, args=(v,)) for v in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures


def test_capsules_that_nobody_takes_do_not_pile_up():
    from relaxlang.runtime import dlpack

    x = array([1.0], "bfloat16")
    held = x.__dlpack__()
    for _ in range(5):
        x.__dlpack__()
    assert len(dlpack._exported) <= 2 + 1  # the one that is held, the last one, and one that another test left
    del held
