; What another definition may replace, what lies where someone put it, and what each thread has keeps its place, and
; a remark says why. A COMMON block is one object of the linker's: aligned, not padded.
;
; RUN: opt-19 -load-pass-plugin=%plugin -passes=domicile-align -pass-remarks-missed=domicile -S %s -o %t.ll 2>%t.said
; RUN: FileCheck %s <%t.ll
; RUN: FileCheck --check-prefix=SAID %s <%t.said

target triple = "x86_64-pc-linux-gnu"

$folded = comdat any

; CHECK-DAG: @weak = weak global [4096 x i8] zeroinitializer, align 1
; SAID-DAG: `weak` is neither aligned nor padded: another definition may replace it
@weak = weak global [4096 x i8] zeroinitializer, align 1
; CHECK-DAG: @folded = linkonce_odr global [4096 x i8] zeroinitializer, comdat, align 1
; SAID-DAG: `folded` is neither aligned nor padded: another definition may replace it
@folded = linkonce_odr global [4096 x i8] zeroinitializer, comdat, align 1
; Position-independent and not marked: the dynamic linker may take another library's.
; CHECK-DAG: @interposable = global [4096 x i8] zeroinitializer, align 1
; SAID-DAG: `interposable` is neither aligned nor padded: another definition may replace it
@interposable = global [4096 x i8] zeroinitializer, align 1
; CHECK-DAG: @section = internal global [4096 x i8] zeroinitializer, section "mine", align 1
; SAID-DAG: `section` is neither aligned nor padded: it lies in a section
@section = internal global [4096 x i8] zeroinitializer, section "mine", align 1
; CHECK-DAG: @each = internal thread_local global [4096 x i8] zeroinitializer, align 1
; SAID-DAG: `each` is neither aligned nor padded: each thread has its own
@each = internal thread_local global [4096 x i8] zeroinitializer, align 1
; CHECK-DAG: @named = internal global [4096 x i8] zeroinitializer, align 1
; SAID-DAG: `named` is neither aligned nor padded: it is marked as used
@named = internal global [4096 x i8] zeroinitializer, align 1
@llvm.used = appending global [1 x ptr] [ptr @named], section "llvm.metadata"
; CHECK-DAG: @block_ = common global [4096 x i8] zeroinitializer, align 64
; SAID-DAG: `block_` is aligned, but not padded: the linker lays it out
@block_ = common global [4096 x i8] zeroinitializer, align 1
; CHECK-DAG: @elsewhere = external global [4096 x i8], align 1
@elsewhere = external global [4096 x i8], align 1
; SAID-NOT: elsewhere

define void @f() {
  ret void
}

!llvm.module.flags = !{!0}
!0 = !{i32 8, !"PIC Level", i32 2}
