! Explicit and assumed shape, allocatable arrays, commons, module variables; sections with strides; sizes by descriptors.
!
! RUN: %flang -O2 %s %print -o %t
! RUN: env OMP_NUM_THREADS=3 %t | FileCheck %s
! RUN: %flang -O0 %s %print -o %t
! RUN: env OMP_NUM_THREADS=3 %t | FileCheck %s
module fields
  real(8) :: m(40, 50)
  real(8), allocatable :: w(:, :)
contains
  ! CHECK: LOOP shapes{{.*}}: 38 iterations, even, threads 3
  ! CHECK-NEXT: read, bytes 25592, offset 16, unit 640, span 8, inner 16 x 38
  ! CHECK-NEXT: blk: read, bytes 16000, offset 328, unit 320, span 304
  ! CHECK-NEXT: write, bytes 0, offset 328, unit 320, span 304
  ! CHECK-NEXT: write, bytes 12800, offset 328, unit 320, span 304
  ! CHECK: LOOP shapes{{.*}}: 38 iterations, even, threads 3
  ! CHECK-NEXT: read, bytes 12800, offset 8, unit 320, span 8, inner 8 x 38
  subroutine shapes(n, a, c)
    integer, intent(in) :: n
    real(8) :: a(n, n), c(:, :), u(40, 50)
    common /blk/ u
    integer :: i, j
    !$omp parallel do schedule(static)
    do j = 2, n - 1
      do i = 2, n - 1
        a(i, j) = c(i, j - 1) + u(i, j)
        w(i, j) = 1
      end do
    end do
  end subroutine shapes

  ! CHECK: LOOP whole{{.*}}: 50 iterations, even, threads 3
  ! CHECK-NEXT: m: write, bytes 16000, offset 0, unit 320, span 320
  subroutine whole()
    integer :: i, j
    !$omp parallel do collapse(1) schedule(static)
    do j = 1, 50
      do i = 1, 40
        m(i, j) = i
      end do
    end do
  end subroutine whole
end module fields

program arrays
  use fields
  real(8) :: a(40, 40), c(80, 40)
  allocate(w(40, 40))
  call shapes(40, a, c(1:80:2, :))
  call shapes(40, a, w)
  call whole()
end program arrays
