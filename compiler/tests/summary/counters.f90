! Counters are passed to procedures of other files by address. None of these may change the counter of a loop around the
! call, so indices by that counter are known. A number from elsewhere may be changed.
!
! RUN: %flang -O2 -g1 -c %s -o /dev/null -Rpass=domicile -Rpass-missed=domicile 2>&1 | grep remark: | FileCheck %s \
! RUN:   --implicit-check-not="array of pointers)" --implicit-check-not=counters.f90:17
subroutine faces(nx, ny, nz)
  integer :: nx, ny, nz
  real(8) :: u(5, 40, 40, 40), top(5)
  common /field/ u
  integer :: i, j, m
  ! CHECK-DAG: loop summarised: {{.*}}, iterations known at run time
  ! CHECK-DAG: counters.f90:[[#@LINE+6]]:{{.*}} field: written, unit 1600, {{.*}} span known at run time
  !$omp parallel do private(i, m, top)
  do j = 1, ny
    do i = 1, nx
      call exact(i, j, nz, top)
      do m = 1, 5
        u(m, i, j, 1) = top(m)
      end do
    end do
  end do
end subroutine faces

subroutine changed(n, at)
  integer :: n, at(n)
  real(8) :: u(40)
  common /line/ u
  integer :: i, k
  ! CHECK-DAG: counters.f90:[[#@LINE+5]]:{{.*}} write of line not summarised: its index is read from memory {{.*}}pointers)
  !$omp parallel do private(k)
  do i = 1, n
    k = at(i)
    call exact(k, i)
    u(k) = 1
  end do
  ! CHECK-DAG: counters.f90:[[#@LINE+6]]:{{.*}} write of line not summarised: its index is read from memory {{.*}}pointers)
  !$omp parallel do private(k)
  do i = 1, n
    k = i
    call exact(k, i)
    k = k + 1
    u(k) = 1
  end do
end subroutine changed

! A thread's own copy of an array needs no description.
subroutine sums(n, v, total)
  integer :: n
  real(8) :: v(5, n), total(5)
  integer :: i, m
  ! CHECK-DAG: v: read, unit 40, offset 0, span 40
  !$omp parallel do reduction(+: total) private(m)
  do i = 1, n
    do m = 1, 5
      total(m) = total(m) + v(m, i) ** 2
    end do
  end do
end subroutine sums
