!> Columns of the SOR nest. The procedures are recursive because only such ones may run twice at the same time, as
!> they do with two workers.
module column
  implicit none
  private
  public :: relax_columns
contains
  !> Relaxes columns j to j + count - 1: one after the other, or, where there are four, in a way that gives the same result.
  recursive subroutine relax_columns(a, n, j, count)
    integer, intent(in) :: n, j, count
    double precision, intent(inout) :: a(0:n, 0:n)
    integer :: next

    next = j
    do while (next + 3 < j + count .and. n > 4)
       call relax_four(a, n, next)
       next = next + 4
    end do
    do next = next, j + count - 1
       call relax_column(a, n, next)
    end do
  end subroutine relax_columns

  !> The sum is the paper's; its term A(i - 1, j), which was computed just before, comes last, so that the chain
  !> from one element to the next is one multiplication and one addition long.
  recursive subroutine relax_column(a, n, j)
    integer, intent(in) :: n, j
    double precision, intent(inout) :: a(0:n, 0:n)
    double precision :: before, here, after
    integer :: i

    before = a(0, j)
    here = a(1, j)
    do i = 1, n - 1
       after = a(i + 1, j)
       before = 0.2d0*(here + after + a(i, j + 1) + a(i, j - 1)) + 0.2d0*before
       a(i, j) = before
       here = after
    end do
  end subroutine relax_column

  !> Four columns side by side, each one row behind the one before it, which is where its neighbours are ready: four
  !> chains instead of one, because a processor of today waits for the chain and not for memory.
  recursive subroutine relax_four(a, n, j)
    integer, intent(in) :: n, j
    double precision, intent(inout) :: a(0:n, 0:n)
    integer :: i, c

    do i = 1, 3
       do c = 0, i - 1
          call relax(i - c, j + c)
       end do
    end do
    call side_by_side(a(0, j - 1), a(0, j), a(0, j + 1), a(0, j + 2), a(0, j + 3), a(0, j + 4), n)
    do i = n, n + 2
       do c = i - n + 1, 3
          call relax(i - c, j + c)
       end do
    end do

  contains

    recursive subroutine relax(i, j)
      integer, intent(in) :: i, j

      a(i, j) = 0.2d0*(a(i, j) + a(i + 1, j) + a(i, j + 1) + a(i, j - 1)) + 0.2d0*a(i - 1, j)
    end subroutine relax
  end subroutine relax_four

  recursive subroutine side_by_side(left, w, x, y, z, right, n)
    integer, intent(in) :: n
    double precision, intent(in) :: left(0:n), right(0:n)
    double precision, intent(inout) :: w(0:n), x(0:n), y(0:n), z(0:n)
    double precision :: w0, x0, y0, z0
    integer :: i

    w0 = w(3)
    x0 = x(2)
    y0 = y(1)
    z0 = z(0)
    do i = 4, n - 1
       w0 = 0.2d0*(w(i) + w(i + 1) + x(i) + left(i)) + 0.2d0*w0
       w(i) = w0
       x0 = 0.2d0*(x(i - 1) + x(i) + y(i - 1) + w(i - 1)) + 0.2d0*x0
       x(i - 1) = x0
       y0 = 0.2d0*(y(i - 2) + y(i - 1) + z(i - 2) + x(i - 2)) + 0.2d0*y0
       y(i - 2) = y0
       z0 = 0.2d0*(z(i - 3) + z(i - 2) + right(i - 3) + y(i - 3)) + 0.2d0*z0
       z(i - 3) = z0
    end do
  end subroutine side_by_side
end module column

!> A thread of the versions beyond the paper: columns j to j + count - 1 of the array that `a` points to.
module counted_columns
  use, intrinsic :: iso_c_binding
  use column
  implicit none
  integer :: n
  double precision, pointer, contiguous :: a(:, :)
contains
  recursive subroutine compute(j, count) bind(c)
    integer(c_intptr_t), value :: j, count

    call relax_columns(a, n, int(j), int(count))
  end subroutine compute
end module counted_columns
