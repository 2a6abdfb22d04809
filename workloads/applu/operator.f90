!> The steady state operator of applu: differences of fluxes, of stresses, and of dissipation, direction by direction, line by
!> line. Lines along x and y are in planes, over which the loops are parallel; lines along z go through all planes, and those loops are
!> parallel over y.
module operator
  use field
  implicit none
  private
  public :: find_force, find_residual

  double precision, parameter :: fourth = 0.25d0

contains

  !> The force: the operator, applied to the exact solution.
  subroutine find_force()
    integer :: i, j, k

    !$omp parallel do schedule(static) private(i, j)
    do k = 1, n
       do j = 1, n
          do i = 1, n
             call exact(i, j, k, rsd(1, i, j, k))
             frct(:, i, j, k) = 0
          end do
       end do
    end do
    call apply(frct, rsd)
  end subroutine find_force

  subroutine find_residual()
    integer :: i, j, k, m

    !$omp parallel do schedule(static) private(i, j, m)
    do k = 1, n
       do j = 1, n
          do i = 1, n
             do m = 1, 5
                rsd(m, i, j, k) = -frct(m, i, j, k)
             end do
          end do
       end do
    end do
    call apply(rsd, u)
  end subroutine find_residual

  !> Adds the operator, applied to v, to `to` in the interior.
  subroutine apply(to, v)
    double precision, intent(inout) :: to(5, n, n, n)
    double precision, intent(in) :: v(5, n, n, n)
    double precision :: f(5, n)
    integer :: i, j, k, m

    !$omp parallel do schedule(static) private(i, j, m, f)
    do k = 2, n - 1
       do j = 2, n - 1
          do i = 1, n
             call inviscid(v(1, i, j, k), f(1, i), 1)
          end do
          do i = 2, n - 1
             do m = 1, 5
                to(m, i, j, k) = to(m, i, j, k) - t2*(f(m, i + 1) - f(m, i - 1))
             end do
          end do
          do i = 2, n
             call viscous(v(1, i, j, k), v(1, i - 1, j, k), f(1, i), 1)
          end do
          do i = 2, n - 1
             call difference(to(1, i, j, k), v(1, i - 1, j, k), v(1, i, j, k), v(1, i + 1, j, k), f(1, i), f(1, i + 1), 1)
          end do
          do i = 2, n - 1
             call dissipate(to(1, i, j, k), v(1, max(i - 2, 1), j, k), v(1, i - 1, j, k), v(1, i, j, k), v(1, i + 1, j, k), &
                v(1, min(i + 2, n), j, k), i)
          end do
       end do
    end do

    !$omp parallel do schedule(static) private(i, j, m, f)
    do k = 2, n - 1
       do i = 2, n - 1
          do j = 1, n
             call inviscid(v(1, i, j, k), f(1, j), 2)
          end do
          do j = 2, n - 1
             do m = 1, 5
                to(m, i, j, k) = to(m, i, j, k) - t2*(f(m, j + 1) - f(m, j - 1))
             end do
          end do
          do j = 2, n
             call viscous(v(1, i, j, k), v(1, i, j - 1, k), f(1, j), 2)
          end do
          do j = 2, n - 1
             call difference(to(1, i, j, k), v(1, i, j - 1, k), v(1, i, j, k), v(1, i, j + 1, k), f(1, j), f(1, j + 1), 2)
          end do
          do j = 2, n - 1
             call dissipate(to(1, i, j, k), v(1, i, max(j - 2, 1), k), v(1, i, j - 1, k), v(1, i, j, k), v(1, i, j + 1, k), &
                v(1, i, min(j + 2, n), k), j)
          end do
       end do
    end do

    !$omp parallel do schedule(static) private(i, k, m, f)
    do j = 2, n - 1
       do i = 2, n - 1
          do k = 1, n
             call inviscid(v(1, i, j, k), f(1, k), 3)
          end do
          do k = 2, n - 1
             do m = 1, 5
                to(m, i, j, k) = to(m, i, j, k) - t2*(f(m, k + 1) - f(m, k - 1))
             end do
          end do
          do k = 2, n
             call viscous(v(1, i, j, k), v(1, i, j, k - 1), f(1, k), 3)
          end do
          do k = 2, n - 1
             call difference(to(1, i, j, k), v(1, i, j, k - 1), v(1, i, j, k), v(1, i, j, k + 1), f(1, k), f(1, k + 1), 3)
          end do
          do k = 2, n - 1
             call dissipate(to(1, i, j, k), v(1, i, j, max(k - 2, 1)), v(1, i, j, k - 1), v(1, i, j, k), v(1, i, j, k + 1), &
                v(1, i, j, min(k + 2, n)), k)
          end do
       end do
    end do
  end subroutine apply

  pure subroutine inviscid(v, f, way)
    double precision, intent(in) :: v(5)
    double precision, intent(out) :: f(5)
    integer, intent(in) :: way
    double precision :: inverse, speed, q

    inverse = 1/v(1)
    speed = v(1 + way)*inverse
    q = 0.5d0*(v(2)*v(2) + v(3)*v(3) + v(4)*v(4))*inverse
    f(1) = v(1 + way)
    f(2) = v(2)*speed
    f(3) = v(3)*speed
    f(4) = v(4)*speed
    f(1 + way) = f(1 + way) + c2*(v(5) - q)
    f(5) = (c1*v(5) - c2*q)*speed
  end subroutine inviscid

  !> The stresses of a point and the one before it.
  pure subroutine viscous(v, before, f, way)
    double precision, intent(in) :: v(5), before(5)
    double precision, intent(inout) :: f(5)
    integer, intent(in) :: way
    double precision :: here, there, squares, along, now, then
    integer :: m

    here = 1/v(1)
    there = 1/before(1)
    squares = 0
    along = 0
    do m = 1, 3
       now = v(1 + m)*here
       then = before(1 + m)*there
       f(1 + m) = merge(4d0/3d0, 1d0, m == way)*t3*(now - then)
       squares = squares + (now*now - then*then)
       if (m == way) along = now*now - then*then
    end do
    f(5) = 0.5d0*(1 - c1*c5)*t3*squares + t3/6*along + c1*c5*t3*(v(5)*here - before(5)*there)
  end subroutine viscous

  pure subroutine difference(to, before, v, after, f, f_after, way)
    double precision, intent(inout) :: to(5)
    double precision, intent(in) :: before(5), v(5), after(5), f(5), f_after(5)
    integer, intent(in) :: way
    integer :: m

    to(1) = to(1) + second(way)*t1*(before(1) - 2*v(1) + after(1))
    do m = 2, 5
       to(m) = to(m) + (t3*c3*c4*(f_after(m) - f(m)) + second(way)*t1*(before(m) - 2*v(m) + after(m)))
    end do
  end subroutine difference

  !> The dissipation of the point at place x, from it and two points on each side, as far as these exist.
  pure subroutine dissipate(to, before2, before, v, after, after2, x)
    double precision, intent(inout) :: to(5)
    double precision, intent(in) :: before2(5), before(5), v(5), after(5), after2(5)
    integer, intent(in) :: x
    integer :: m

    do m = 1, 5
       select case (x)
       case (2)
          to(m) = to(m) - fourth*(5*v(m) - 4*after(m) + after2(m))
       case (3)
          to(m) = to(m) - fourth*(-4*before(m) + 6*v(m) - 4*after(m) + after2(m))
       case (n - 2)
          to(m) = to(m) - fourth*(before2(m) - 4*before(m) + 6*v(m) - 4*after(m))
       case (n - 1)
          to(m) = to(m) - fourth*(before2(m) - 4*before(m) + 5*v(m))
       case default
          to(m) = to(m) - fourth*(before2(m) - 4*before(m) + 6*v(m) - 4*after(m) + after2(m))
       end select
    end do
  end subroutine dissipate
end module operator
