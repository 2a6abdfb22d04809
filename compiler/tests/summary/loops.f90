! Chunks, collapse, an absent optional array, a time loop in the region, negative steps, counters that are passed to a
! function of another file.
!
! RUN: %flang -O2 %s %S/Inputs/other.f90 %print -o %t
! RUN: env OMP_NUM_THREADS=3 %t | FileCheck %s
subroutine chunks(n, a)
  integer, intent(in) :: n
  real(8) :: a(n, n)
  integer :: i, j, t
  ! CHECK: LOOP chunks{{.*}}: 38 iterations, chunked 4, threads 3
  ! CHECK-NEXT: a: write, bytes 0, offset 320, unit 320, span 320
  ! CHECK: LOOP chunks{{.*}}: 40 iterations, even, threads 3
  ! CHECK-NEXT: a: write, bytes 0, offset 12480, unit -320, span 320
  !$omp parallel
  do t = 1, 3
    !$omp do schedule(static, 4)
    do j = 2, n - 1
      do i = 1, n
        a(i, j) = i
      end do
    end do
    !$omp do
    do j = n, 1, -1
      do i = 1, n
        a(i, j) = i
      end do
    end do
  end do
  !$omp end parallel
end subroutine chunks

subroutine given(n, a, b)
  integer, intent(in) :: n
  real(8) :: a(n)
  real(8), optional :: b(:)
  integer :: i
  interface
    integer function other(i)
      integer, intent(in) :: i
    end function other
  end interface
  ! CHECK: LOOP given{{.*}}: 40 iterations, even, threads 3
  ! CHECK-NEXT: a: write, bytes 0, offset 0, unit 8, span 8
  ! CHECK-NOT: b
  ! CHECK: LOOP given{{.*}}: 40 iterations, even, threads 3
  ! CHECK-NEXT: a: write, bytes 0, offset 0, unit 8, span 8
  ! CHECK-NEXT: b: read, bytes 320, offset 0, unit 8, span 8
  !$omp parallel do
  do i = 1, n
    a(i) = other(i)
    if (present(b)) a(i) = a(i) + b(i)
  end do
end subroutine given

program loops
  interface
    subroutine given(n, a, b)
      integer, intent(in) :: n
      real(8) :: a(n)
      real(8), optional :: b(:)
    end subroutine given
  end interface
  real(8) :: a(40, 40), b(40)
  call chunks(40, a)
  b = 1
  call given(40, a)
  call given(40, a, b)
  ! CHECK: 41
  print *, nint(a(40, 1))
end program loops
