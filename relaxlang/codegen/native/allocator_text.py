"""The LLVM text of the allocator: see `support`. Names in braces are constants that `support` fills in.

`from_system` makes a block, whose header knows the address that the system gave, and `to_system` gives it back. On
Linux large blocks are pages of their own, that begin where a huge page does (see `runtime.memory`).
"""

from __future__ import annotations

ALLOCATOR = r"""
define internal ptr @from_malloc(i64 %size) {
  %whole = add i64 %size, 128
  %raw = call ptr @malloc(i64 %whole)
  %failed = icmp eq ptr %raw, null
  br i1 %failed, label %done, label %got
got:
  %where = ptrtoint ptr %raw to i64
  %above = add i64 %where, 127
  %aligned = and i64 %above, -64
  %data = inttoptr i64 %aligned to ptr
  %h4 = getelementptr i8, ptr %data, i64 -32
  store ptr %raw, ptr %h4
  br label %done
done:
  %made = phi ptr [ null, %0 ], [ %data, %got ]
  ret ptr %made
}

define internal void @to_malloc(ptr %data) {
  %h4 = getelementptr i8, ptr %data, i64 -32
  %raw = load ptr, ptr %h4
  call void @free_system(ptr %raw)
  ret void
}
define ptr @rlx_take(i64 %n, i1 %force) {
  %least = call i64 @llvm.umax.i64(i64 %n, i64 1)
  %few = icmp ule i64 %least, 1024
  br i1 %few, label %fine, label %coarse
fine:
  %up = add i64 %least, 63
  %units = lshr i64 %up, 6
  %exact = shl i64 %units, 6
  br label %look
coarse:
  %last = sub i64 %least, 1
  %zeros = call i64 @llvm.ctlz.i64(i64 %last, i1 true)
  %length = sub i64 64, %zeros
  %shift = sub i64 %length, 3
  %downed = lshr i64 %last, %shift
  %steps = add i64 %downed, 1
  %rounded = shl i64 %steps, %shift
  %octave = mul i64 %length, 4
  %based = add i64 %octave, %steps
  %index.c = sub i64 %based, 32
  br label %look
look:
  %index = phi i64 [ %units, %fine ], [ %index.c, %coarse ]
  %size = phi i64 [ %exact, %fine ], [ %rounded, %coarse ]
  %list = getelementptr [256 x ptr], ptr @free, i64 0, i64 %index
  %head = load ptr, ptr %list
  %none = icmp eq ptr %head, null
  br i1 %none, label %fresh, label %reuse
reuse:
  %link = getelementptr i8, ptr %head, i64 -40
  %next = load ptr, ptr %link
  store ptr %next, ptr %list
  %were = load i64, ptr @idle
  %left = sub i64 %were, %size
  store i64 %left, ptr @idle
  %refs = getelementptr i8, ptr %head, i64 -64
  store i64 1, ptr %refs
  ret ptr %head
fresh:
  %large = icmp uge i64 %size, {CHECKED}
  %free.to = xor i1 %force, true
  %ask = and i1 %large, %free.to
  br i1 %ask, label %no, label %more
more:
  %data = call ptr @from_system(i64 %size)
  %failed = icmp eq ptr %data, null
  br i1 %failed, label %no, label %got
got:
  %h0 = getelementptr i8, ptr %data, i64 -64
  %h1 = getelementptr i8, ptr %data, i64 -56
  %h2 = getelementptr i8, ptr %data, i64 -48
  store i64 1, ptr %h0
  store i64 %index, ptr %h1
  store i64 %size, ptr %h2
  ret ptr %data
no:
  ret ptr null
}

define void @rlx_drop(ptr %data) {
  %refs = getelementptr i8, ptr %data, i64 -64
  %n = load i64, ptr %refs
  %less = sub i64 %n, 1
  store i64 %less, ptr %refs
  %dead = icmp eq i64 %less, 0
  br i1 %dead, label %end, label %done
end:
  %h2 = getelementptr i8, ptr %data, i64 -48
  %size = load i64, ptr %h2
  %were = load i64, ptr @idle
  %now = add i64 %were, %size
  %limit = load i64, ptr @limit
  %keep = icmp ule i64 %now, %limit
  br i1 %keep, label %push, label %system
push:
  store i64 %now, ptr @idle
  %h1 = getelementptr i8, ptr %data, i64 -56
  %index = load i64, ptr %h1
  %list = getelementptr [256 x ptr], ptr @free, i64 0, i64 %index
  %head = load ptr, ptr %list
  %h3 = getelementptr i8, ptr %data, i64 -40
  store ptr %head, ptr %h3
  store ptr %data, ptr %list
  ret void
system:
  call void @to_system(ptr %data, i64 %size)
  ret void
done:
  ret void
}

define void @rlx_clear() {
  br label %class
class:
  %k = phi i64 [ 0, %0 ], [ %k1, %empty ]
  %list = getelementptr [256 x ptr], ptr @free, i64 0, i64 %k
  br label %one
one:
  %head = load ptr, ptr %list
  %none = icmp eq ptr %head, null
  br i1 %none, label %empty, label %some
some:
  %h3 = getelementptr i8, ptr %head, i64 -40
  %next = load ptr, ptr %h3
  store ptr %next, ptr %list
  %h2 = getelementptr i8, ptr %head, i64 -48
  %size = load i64, ptr %h2
  call void @to_system(ptr %head, i64 %size)
  br label %one
empty:
  %k1 = add i64 %k, 1
  %end = icmp eq i64 %k1, 256
  br i1 %end, label %done, label %class
done:
  store i64 0, ptr @idle
  ret void
}

define ptr @rlx_np_malloc(ptr %ctx, i64 %n) {
  %p = call ptr @rlx_take(i64 %n, i1 true)
  ret ptr %p
}

define ptr @rlx_np_calloc(ptr %ctx, i64 %count, i64 %each) {
  %n = mul i64 %count, %each
  %p = call ptr @rlx_take(i64 %n, i1 true)
  %failed = icmp eq ptr %p, null
  br i1 %failed, label %done, label %fill
fill:
  call void @llvm.memset.p0.i64(ptr %p, i8 0, i64 %n, i1 false)
  br label %done
done:
  ret ptr %p
}

define ptr @rlx_np_realloc(ptr %ctx, ptr %old, i64 %n) {
  %p = call ptr @rlx_take(i64 %n, i1 true)
  %failed = icmp eq ptr %p, null
  br i1 %failed, label %done, label %copy
copy:
  %h2 = getelementptr i8, ptr %old, i64 -48
  %had = load i64, ptr %h2
  %both = call i64 @llvm.umin.i64(i64 %had, i64 %n)
  call void @llvm.memcpy.p0.p0.i64(ptr %p, ptr %old, i64 %both, i1 false)
  call void @rlx_drop(ptr %old)
  br label %done
done:
  ret ptr %p
}

define void @rlx_np_free(ptr %ctx, ptr %data, i64 %n) {
  call void @rlx_drop(ptr %data)
  ret void
}
"""

SYSTEM_LINUX = r"""
declare ptr @mmap(ptr, i64, i32, i32, i32, i64)
declare i32 @munmap(ptr, i64)
declare i32 @madvise(ptr, i64, i32)

define internal ptr @from_system(i64 %size) {
  %large = icmp uge i64 %size, {LARGE}
  br i1 %large, label %pages, label %small
small:
  %some = call ptr @from_malloc(i64 %size)
  ret ptr %some
pages:
  %before = add i64 {HUGE_PAGE}, 64
  %whole = add i64 %size, %before
  %raw = call ptr @mmap(ptr null, i64 %whole, i32 3, i32 {ANONYMOUS}, i32 -1, i64 0)
  %where = ptrtoint ptr %raw to i64
  %failed = icmp eq i64 %where, -1
  br i1 %failed, label %no, label %got
got:
  %last = sub i64 %before, 1
  %above = add i64 %where, %last
  %aligned = and i64 %above, -{HUGE_PAGE}
  %data = inttoptr i64 %aligned to ptr
  %advised = call i32 @madvise(ptr %data, i64 %size, i32 {ADVICE})
  %h4 = getelementptr i8, ptr %data, i64 -32
  store ptr %raw, ptr %h4
  ret ptr %data
no:
  ret ptr null
}

define internal void @to_system(ptr %data, i64 %size) {
  %large = icmp uge i64 %size, {LARGE}
  br i1 %large, label %pages, label %small
small:
  call void @to_malloc(ptr %data)
  ret void
pages:
  %h4 = getelementptr i8, ptr %data, i64 -32
  %raw = load ptr, ptr %h4
  %before = add i64 {HUGE_PAGE}, 64
  %whole = add i64 %size, %before
  %given = call i32 @munmap(ptr %raw, i64 %whole)
  ret void
}
"""
SYSTEM_ELSEWHERE = r"""
define internal ptr @from_system(i64 %size) {
  %data = call ptr @from_malloc(i64 %size)
  ret ptr %data
}

define internal void @to_system(ptr %data, i64 %size) {
  call void @to_malloc(ptr %data)
  ret void
}
"""
