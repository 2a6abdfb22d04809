! flang's OpenMP counts the loops around the innermost in 32 bits; group reuse of columns is found nevertheless. Of nine
! points of x, the first one leads; y is written.
!
! RUN: env DOMICILE_COMPILER=prefetch,line=128,cache=1048576,clock=400,latency=500,issue=1 \
! RUN:   %flang -O2 -g -mllvm -vectorize-loops=false %s -module-dir %T -o %t -Rpass=domicile-prefetch 2>%t.said
! RUN: env OMP_NUM_THREADS=2 %t | FileCheck %s
! RUN: FileCheck --check-prefix=SAID %s <%t.said
!
! SAID: openmp.f90:[[#@LINE+21]]:{{.*}}2 of {{[0-9]+}} references prefetched {{.*}}, once for each line, by unrolling;
! CHECK: 2350089.
module nine
  implicit none
  integer, parameter :: n = 513
  real(8) :: x(n, n), y(n, n)
end module

program openmp
  use nine
  implicit none
  integer :: i, j
  do j = 1, n
    do i = 1, n
      x(i, j) = mod(i, 3)
    end do
  end do
  y = 0
  !$omp parallel do private(i)
  do j = 2, n - 1

    do i = 2, n - 1
      y(i, j) = x(i - 1, j - 1) + x(i, j - 1) + x(i + 1, j - 1) + x(i - 1, j) + x(i, j) + x(i + 1, j) &
              + x(i - 1, j + 1) + x(i, j + 1) + x(i + 1, j + 1)
    end do
  end do
  print '(f10.0)', sum(y)
end program
