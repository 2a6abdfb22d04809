; Arrays of a page or more begin at different places of the on-chip cache, each under its own name, linkage and
; visibility; smaller data stays. With pads off they begin on lines; with alignment off nothing changes.
;
; RUN: env DOMICILE_COMPILER=line=128,way=16384 opt-19 -load-pass-plugin=%plugin -passes=domicile-align -S %s \
; RUN:   | FileCheck %s
; RUN: env DOMICILE_COMPILER=line=128,way=16384,pad=off opt-19 -load-pass-plugin=%plugin -passes=domicile-align -S %s \
; RUN:   | FileCheck --check-prefix=LINES %s
; RUN: env DOMICILE_COMPILER=align=off opt-19 -load-pass-plugin=%plugin -passes='default<O0>' -S %s \
; RUN:   | FileCheck --check-prefix=OFF %s

target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"
source_filename = "folder/places.c"

@x = dso_local global [513 x [513 x double]] zeroinitializer, align 16
@y = internal global [513 x [513 x double]] zeroinitializer, align 16
@z = hidden constant [4096 x i8] zeroinitializer, align 16
@small = dso_local global [256 x double] zeroinitializer, align 16

; The file's name, not its path, says where the first array begins: 16384 / 128 = 128 places, three arrays, so
; 42 lines = 5376 bytes from one to the next, modulo 16384.
; CHECK: @x.padded = private global <{ [12032 x i8], [513 x [513 x double]] }> zeroinitializer, align 16384
; CHECK: @y.padded = private global <{ [1024 x i8], [513 x [513 x double]] }> zeroinitializer, align 16384
; CHECK: @z.padded = private constant <{ [6400 x i8], [4096 x i8] }> zeroinitializer, align 16384
; CHECK: @small = dso_local global [256 x double] zeroinitializer, align 16
; CHECK: @x = dso_local alias [513 x [513 x double]], getelementptr inbounds (i8, ptr @x.padded, i64 12032)
; CHECK: @y = internal alias [513 x [513 x double]], getelementptr inbounds (i8, ptr @y.padded, i64 1024)
; CHECK: @z = hidden alias [4096 x i8], getelementptr inbounds (i8, ptr @z.padded, i64 6400)
; CHECK: load i64, ptr getelementptr (i8, ptr @x, i64 8)

; LINES: @x = dso_local global [513 x [513 x double]] zeroinitializer, align 128
; LINES: @y = internal global {{.*}}, align 128
; LINES: @z = hidden constant {{.*}}, align 128
; LINES: @small = {{.*}}, align 16
; LINES-NOT: alias

; OFF: @x = dso_local global {{.*}}, align 16
; OFF-NOT: alias

define i64 @far() {
  %a = load i64, ptr getelementptr (i8, ptr @x, i64 8)
  %b = load i64, ptr @y
  %c = load i64, ptr @z
  %s = add i64 %a, %b
  %t = add i64 %s, %c
  ret i64 %t
}
