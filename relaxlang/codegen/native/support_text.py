"""The LLVM text of the support module: see `support`. Names in braces are offsets and flags of `layout`."""

from __future__ import annotations

TEXT = r"""
@free = internal global [256 x ptr] zeroinitializer
@idle = global i64 0
@limit = global i64 0
@handler = global ptr null
@ndarray = global ptr null
@NDArray = global ptr null
@ShapeTuple = global ptr null
@tuple = global ptr null
@int = global ptr null
@threads = internal global [64 x { i64, i64, i64 }] zeroinitializer
@block_name = internal constant [16 x i8] c"relaxlang.block\00"

declare ptr @malloc(i64)
declare void @free_system(ptr)
declare i64 @llvm.umax.i64(i64, i64)
declare i64 @llvm.umin.i64(i64, i64)
declare i64 @llvm.ctlz.i64(i64, i1)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare ptr @llvm.frameaddress.p0(i32)
declare void @Py_IncRef(ptr)
declare void @Py_DecRef(ptr)
declare ptr @PyObject_Vectorcall(ptr, ptr, i64, ptr)
declare ptr @PyTuple_New(i64)
declare i32 @PyTuple_SetItem(ptr, i64, ptr)
declare i64 @PyTuple_Size(ptr)
declare ptr @PyTuple_GetItem(ptr, i64)
declare i64 @PyLong_AsLongLong(ptr)
declare ptr @PyErr_Occurred()
declare void @PyErr_Clear()
declare ptr @PyCapsule_New(ptr, ptr, ptr)
declare ptr @PyCapsule_GetPointer(ptr, ptr)
declare ptr @PyArray_NewFromDescr(ptr, ptr, i32, ptr, ptr, ptr, i32, ptr)
declare i32 @PyArray_SetBaseObject(ptr, ptr)

define void @rlx_release(ptr %frame, i64 %n) {
  br label %head
head:
  %i = phi i64 [ 0, %0 ], [ %i1, %next ]
  %more = icmp ult i64 %i, %n
  br i1 %more, label %one, label %done
one:
  %slot = getelementptr ptr, ptr %frame, i64 %i
  %p = load ptr, ptr %slot
  %none = icmp eq ptr %p, null
  br i1 %none, label %next, label %some
some:
  store ptr null, ptr %slot
  %bits = ptrtoint ptr %p to i64
  %tag = trunc i64 %bits to i1
  br i1 %tag, label %block, label %object
block:
  %data = getelementptr i8, ptr %p, i64 -1
  call void @rlx_drop(ptr %data)
  br label %next
object:
  call void @Py_DecRef(ptr %p)
  br label %next
next:
  %i1 = add i64 %i, 1
  br label %head
done:
  ret void
}

define internal void @forget(ptr %capsule) {
  %data = call ptr @PyCapsule_GetPointer(ptr %capsule, ptr @block_name)
  call void @rlx_drop(ptr %data)
  ret void
}

define ptr @rlx_array(ptr %dtype, i32 %ndim, ptr %dims, ptr %data, ptr %block) {
  %type = load ptr, ptr @NDArray
  call void @Py_IncRef(ptr %dtype)
  %a = call ptr @PyArray_NewFromDescr(ptr %type, ptr %dtype, i32 %ndim, ptr %dims, ptr null, ptr %data,
    i32 {FULL}, ptr null)
  %failed = icmp eq ptr %a, null
  br i1 %failed, label %no, label %own
own:
  %whole = icmp eq ptr %data, %block
  br i1 %whole, label %direct, label %indirect
direct:
  %handler = load ptr, ptr @handler
  call void @Py_IncRef(ptr %handler)
  %h = getelementptr i8, ptr %a, i64 {HANDLER}
  store ptr %handler, ptr %h
  %f = getelementptr i8, ptr %a, i64 {FLAGS}
  %flags = load i32, ptr %f
  %owned = or i32 %flags, {OWNDATA}
  store i32 %owned, ptr %f
  ret ptr %a
indirect:
  %capsule = call ptr @PyCapsule_New(ptr %block, ptr @block_name, ptr @forget)
  %bad = icmp eq ptr %capsule, null
  br i1 %bad, label %undo, label %base
base:
  %status = call i32 @PyArray_SetBaseObject(ptr %a, ptr %capsule)
  %wrong = icmp ne i32 %status, 0
  br i1 %wrong, label %lost, label %fine
fine:
  ret ptr %a
lost:
  call void @Py_DecRef(ptr %a)
  ret ptr null
undo:
  call void @Py_DecRef(ptr %a)
  br label %no
no:
  call void @rlx_drop(ptr %block)
  ret ptr null
}

define ptr @rlx_view(ptr %dtype, i32 %ndim, ptr %dims, ptr %data, ptr %base) {
  %type = load ptr, ptr @NDArray
  call void @Py_IncRef(ptr %dtype)
  %f = getelementptr i8, ptr %base, i64 {FLAGS}
  %had = load i32, ptr %f
  %write = and i32 %had, {WRITEABLE}
  %flags = or i32 %write, {PLAIN}
  %a = call ptr @PyArray_NewFromDescr(ptr %type, ptr %dtype, i32 %ndim, ptr %dims, ptr null, ptr %data,
    i32 %flags, ptr null)
  %failed = icmp eq ptr %a, null
  br i1 %failed, label %no, label %own
own:
  call void @Py_IncRef(ptr %base)
  %status = call i32 @PyArray_SetBaseObject(ptr %a, ptr %base)
  %wrong = icmp ne i32 %status, 0
  br i1 %wrong, label %lost, label %fine
fine:
  ret ptr %a
lost:
  call void @Py_DecRef(ptr %a)
  br label %no
no:
  ret ptr null
}

define i1 @rlx_complete(ptr %args, i64 %n) {
  br label %head
head:
  %i = phi i64 [ 0, %0 ], [ %i1, %next ]
  %more = icmp ult i64 %i, %n
  br i1 %more, label %one, label %yes
one:
  %slot = getelementptr ptr, ptr %args, i64 %i
  %p = load ptr, ptr %slot
  %i1 = add i64 %i, 1
  %none = icmp eq ptr %p, null
  br i1 %none, label %no, label %next
next:
  br label %head
yes:
  ret i1 true
no:
  ret i1 false
}

define ptr @rlx_call(ptr %function, ptr %args, i64 %n) {
  %all = call i1 @rlx_complete(ptr %args, i64 %n)
  br i1 %all, label %go, label %done
go:
  %r = call ptr @PyObject_Vectorcall(ptr %function, ptr %args, i64 %n, ptr null)
  br label %done
done:
  %result = phi ptr [ null, %0 ], [ %r, %go ]
  call void @rlx_release(ptr %args, i64 %n)
  ret ptr %result
}

define ptr @rlx_tuple(ptr %items, i64 %n) {
  %all = call i1 @rlx_complete(ptr %items, i64 %n)
  br i1 %all, label %go, label %no
go:
  %t = call ptr @PyTuple_New(i64 %n)
  %failed = icmp eq ptr %t, null
  br i1 %failed, label %no, label %head
head:
  %i = phi i64 [ 0, %go ], [ %i1, %one ]
  %more = icmp ult i64 %i, %n
  br i1 %more, label %one, label %fine
one:
  %slot = getelementptr ptr, ptr %items, i64 %i
  %p = load ptr, ptr %slot
  %status = call i32 @PyTuple_SetItem(ptr %t, i64 %i, ptr %p)
  %i1 = add i64 %i, 1
  br label %head
fine:
  ret ptr %t
no:
  call void @rlx_release(ptr %items, i64 %n)
  ret ptr null
}

define ptr @rlx_item(ptr %values, i64 %index) {
  %t = getelementptr i8, ptr %values, i64 {TYPE}
  %type = load ptr, ptr %t
  %wanted = load ptr, ptr @tuple
  %is = icmp eq ptr %type, %wanted
  br i1 %is, label %tuple, label %no
tuple:
  %length = call i64 @PyTuple_Size(ptr %values)
  %there = icmp ult i64 %index, %length
  br i1 %there, label %get, label %no
get:
  %item = call ptr @PyTuple_GetItem(ptr %values, i64 %index)
  call void @Py_IncRef(ptr %item)
  ret ptr %item
no:
  ret ptr null
}

define i1 @rlx_int(ptr %value, ptr %word) {
  %t = getelementptr i8, ptr %value, i64 {TYPE}
  %type = load ptr, ptr %t
  %wanted = load ptr, ptr @int
  %is = icmp eq ptr %type, %wanted
  br i1 %is, label %read, label %no
read:
  %v = call i64 @PyLong_AsLongLong(ptr %value)
  store i64 %v, ptr %word
  %odd = icmp eq i64 %v, -1
  br i1 %odd, label %look, label %yes
look:
  %error = call ptr @PyErr_Occurred()
  %fine = icmp eq ptr %error, null
  br i1 %fine, label %yes, label %clear
clear:
  call void @PyErr_Clear()
  br label %no
yes:
  ret i1 true
no:
  ret i1 false
}

define i64 @rlx_shape(ptr %value, ptr %dims, i64 %most) {
  %t = getelementptr i8, ptr %value, i64 {TYPE}
  %type = load ptr, ptr %t
  %own = load ptr, ptr @NDArray
  %plain = load ptr, ptr @ndarray
  %is.own = icmp eq ptr %type, %own
  %is.plain = icmp eq ptr %type, %plain
  %is = or i1 %is.own, %is.plain
  br i1 %is, label %array, label %other
array:
  %n = getelementptr i8, ptr %value, i64 {NDIM}
  %has = load i32, ptr %n
  %count = zext i32 %has to i64
  %copied = call i64 @llvm.umin.i64(i64 %count, i64 %most)
  %bytes = shl i64 %copied, 3
  %d = getelementptr i8, ptr %value, i64 {DIMS}
  %from = load ptr, ptr %d
  call void @llvm.memcpy.p0.p0.i64(ptr %dims, ptr %from, i64 %bytes, i1 false)
  ret i64 %count
other:
  %shape = load ptr, ptr @ShapeTuple
  %is.shape = icmp eq ptr %type, %shape
  br i1 %is.shape, label %tuple, label %no
tuple:
  %length = call i64 @PyTuple_Size(ptr %value)
  %some = call i64 @llvm.umin.i64(i64 %length, i64 %most)
  br label %head
head:
  %i = phi i64 [ 0, %tuple ], [ %i1, %next ]
  %more = icmp ult i64 %i, %some
  br i1 %more, label %one, label %done
one:
  %item = call ptr @PyTuple_GetItem(ptr %value, i64 %i)
  %v = call i64 @PyLong_AsLongLong(ptr %item)
  %odd = icmp eq i64 %v, -1
  br i1 %odd, label %look, label %next
look:
  %error = call ptr @PyErr_Occurred()
  %fine = icmp eq ptr %error, null
  br i1 %fine, label %next, label %clear
clear:
  call void @PyErr_Clear()
  br label %no
next:
  %slot = getelementptr i64, ptr %dims, i64 %i
  store i64 %v, ptr %slot
  %i1 = add i64 %i, 1
  br label %head
done:
  ret i64 %length
no:
  ret i64 -1
}
"""

STACK_LINUX = r"""
declare i64 @pthread_self()
declare i32 @pthread_getattr_np(i64, ptr)
declare i32 @pthread_attr_getstack(ptr, ptr, ptr)
declare i32 @pthread_attr_destroy(ptr)

define i64 @rlx_stack_limit() {
  %here = call ptr @llvm.frameaddress.p0(i32 0)
  %sp = ptrtoint ptr %here to i64
  %self = call i64 @pthread_self()
  %mixed = lshr i64 %self, 12
  %slot = and i64 %mixed, 63
  %entry = getelementptr [64 x { i64, i64, i64 }], ptr @threads, i64 0, i64 %slot
  %limit.at = getelementptr { i64, i64, i64 }, ptr %entry, i32 0, i32 1
  %top.at = getelementptr { i64, i64, i64 }, ptr %entry, i32 0, i32 2
  %who = load i64, ptr %entry
  %limit = load i64, ptr %limit.at
  %top = load i64, ptr %top.at
  %same = icmp eq i64 %who, %self
  %over = icmp ugt i64 %sp, %limit
  %under = icmp ult i64 %sp, %top
  %in = and i1 %over, %under
  %known = and i1 %same, %in
  br i1 %known, label %done, label %ask
done:
  ret i64 %limit
ask:
  %attr = alloca [128 x i8], align 16
  %low = alloca i64
  %size = alloca i64
  %s1 = call i32 @pthread_getattr_np(i64 %self, ptr %attr)
  %ok1 = icmp eq i32 %s1, 0
  br i1 %ok1, label %read, label %unknown
read:
  %s2 = call i32 @pthread_attr_getstack(ptr %attr, ptr %low, ptr %size)
  %s3 = call i32 @pthread_attr_destroy(ptr %attr)
  %bottom = load i64, ptr %low
  %bytes = load i64, ptr %size
  %quarter = lshr i64 %bytes, 2
  %margin = call i64 @llvm.umin.i64(i64 %quarter, i64 1048576)
  %least = add i64 %bottom, %margin
  %end = add i64 %bottom, %bytes
  store i64 %self, ptr %entry
  store i64 %least, ptr %limit.at
  store i64 %end, ptr %top.at
  ret i64 %least
unknown:
  %guess = sub i64 %sp, 131072
  ret i64 %guess
}
"""

STACK_APPLE = r"""
declare ptr @pthread_self()
declare ptr @pthread_get_stackaddr_np(ptr)
declare i64 @pthread_get_stacksize_np(ptr)

define i64 @rlx_stack_limit() {
  %self = call ptr @pthread_self()
  %top = call ptr @pthread_get_stackaddr_np(ptr %self)
  %size = call i64 @pthread_get_stacksize_np(ptr %self)
  %end = ptrtoint ptr %top to i64
  %bottom = sub i64 %end, %size
  %quarter = lshr i64 %size, 2
  %margin = call i64 @llvm.umin.i64(i64 %quarter, i64 1048576)
  %least = add i64 %bottom, %margin
  ret i64 %least
}
"""

STACK_ELSEWHERE = r"""
define i64 @rlx_stack_limit() {
  %here = call ptr @llvm.frameaddress.p0(i32 0)
  %sp = ptrtoint ptr %here to i64
  %guess = sub i64 %sp, 131072
  ret i64 %guess
}
"""
