!> Work on one line of the mesh, which the versions of the PDE solver do in different orders.
!> The procedures are recursive because only such ones may run twice at the same time, as they do with two workers.
!> Red points are those with i + j odd; a red point has black neighbours only, and the other way round.
module line
  implicit none
  private
  public :: relax_red, relax_black, find_residual

contains

  recursive subroutine relax_red(u, b, n, j)
    integer, intent(in) :: n, j
    double precision, intent(inout) :: u(0:n + 1, 0:n + 1)
    double precision, intent(in) :: b(n, n)

    call relax(u, b, n, 1 + mod(j, 2), j)
  end subroutine relax_red

  recursive subroutine relax_black(u, b, n, j)
    integer, intent(in) :: n, j
    double precision, intent(inout) :: u(0:n + 1, 0:n + 1)
    double precision, intent(in) :: b(n, n)

    call relax(u, b, n, 2 - mod(j, 2), j)
  end subroutine relax_black

  !> Every second point of line j, beginning with `first`.
  recursive subroutine relax(u, b, n, first, j)
    integer, intent(in) :: n, first, j
    double precision, intent(inout) :: u(0:n + 1, 0:n + 1)
    double precision, intent(in) :: b(n, n)
    double precision :: before, after
    integer :: i

    before = u(first - 1, j)
    do i = first, n, 2
       after = u(i + 1, j)
       u(i, j) = 0.25d0*(b(i, j) - before - after - u(i, j - 1) - u(i, j + 1))
       before = after
    end do
  end subroutine relax

  recursive subroutine find_residual(r, u, b, n, j)
    integer, intent(in) :: n, j
    double precision, intent(inout) :: r(n, n)
    double precision, intent(in) :: u(0:n + 1, 0:n + 1), b(n, n)
    double precision :: before, here, after
    integer :: i

    before = u(0, j)
    here = u(1, j)
    do i = 1, n
       after = u(i + 1, j)
       r(i, j) = b(i, j) - 4*here - before - after - u(i, j - 1) - u(i, j + 1)
       before = here
       here = after
    end do
  end subroutine find_residual
end module line
