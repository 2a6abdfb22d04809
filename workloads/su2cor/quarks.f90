!> The quark's propagator of su2cor: conjugate gradients with Dirac's operator (Kogut and Susskind's) times its adjoint. The loops are
!> parallel over t, the last dimension. Dot products are added up by t, so that they do not depend on the number of threads.
module quarks
  use lattice
  implicit none
  private
  public :: begin_search, search, true_residual

  double precision, parameter :: mass = 0.5d0
  double precision :: rr, by_time(side)

contains

  subroutine begin_search()
    integer :: ix, iy, iz, it

    !$omp parallel do schedule(static) private(ix, iy, iz)
    do it = 1, side
       do iz = 1, side
          do iy = 1, side
             do ix = 1, side
                x(:, ix, iy, iz, it) = 0
                r(:, ix, iy, iz, it) = b(:, ix, iy, iz, it)
                p(:, ix, iy, iz, it) = b(:, ix, iy, iz, it)
             end do
          end do
       end do
    end do
    rr = dot(r, r)
  end subroutine begin_search

  !> One iteration. Returns the square of the propagator's residual, by the recurrence.
  double precision function search()
    double precision :: alpha, beta, before

    call dirac(q, p, 1d0)
    call dirac(w, q, -1d0)
    alpha = rr/dot(p, w)
    call add(x, p, alpha)
    call add(r, w, -alpha)
    before = rr
    rr = dot(r, r)
    beta = rr/before
    call turn(p, r, beta)
    search = rr
  end function search

  !> The square of b - D* D x, which the recurrence must give; uses q and w.
  double precision function true_residual()
    integer :: it

    call dirac(q, x, 1d0)
    call dirac(w, q, -1d0)
    true_residual = 0
    do it = 1, side
       true_residual = true_residual + sum((b(:, :, :, :, it) - w(:, :, :, :, it))**2)
    end do
  end function true_residual

  !> to = (mass + K) from, or (mass - K) from for the adjoint: K takes the quark along the links, there and back.
  subroutine dirac(to, from, sign)
    double precision, intent(inout) :: to(4, wide, side, side, side)
    double precision, intent(in) :: from(4, wide, side, side, side), sign
    double precision :: s1, s2, s3, s4, h
    integer :: ix, iy, iz, it

    !$omp parallel do schedule(static) private(ix, iy, iz, s1, s2, s3, s4, h)
    do it = 1, side
       do iz = 1, side
          do iy = 1, side
             do ix = 1, side
                h = 0.5d0*sign
                s1 = mass*from(1, ix, iy, iz, it)
                s2 = mass*from(2, ix, iy, iz, it)
                s3 = mass*from(3, ix, iy, iz, it)
                s4 = mass*from(4, ix, iy, iz, it)
                call along(s1, s2, s3, s4, h, u(1, ix, iy, iz, it, 1), from(1, up(ix), iy, iz, it))
                call back(s1, s2, s3, s4, h, u(1, down(ix), iy, iz, it, 1), from(1, down(ix), iy, iz, it))
                h = 0.5d0*sign*eta(1, ix, iy, iz, it)
                call along(s1, s2, s3, s4, h, u(1, ix, iy, iz, it, 2), from(1, ix, up(iy), iz, it))
                call back(s1, s2, s3, s4, h, u(1, ix, down(iy), iz, it, 2), from(1, ix, down(iy), iz, it))
                h = 0.5d0*sign*eta(2, ix, iy, iz, it)
                call along(s1, s2, s3, s4, h, u(1, ix, iy, iz, it, 3), from(1, ix, iy, up(iz), it))
                call back(s1, s2, s3, s4, h, u(1, ix, iy, down(iz), it, 3), from(1, ix, iy, down(iz), it))
                h = 0.5d0*sign*eta(3, ix, iy, iz, it)
                call along(s1, s2, s3, s4, h, u(1, ix, iy, iz, it, 4), from(1, ix, iy, iz, up(it)))
                call back(s1, s2, s3, s4, h, u(1, ix, iy, iz, down(it), 4), from(1, ix, iy, iz, down(it)))
                to(1, ix, iy, iz, it) = s1
                to(2, ix, iy, iz, it) = s2
                to(3, ix, iy, iz, it) = s3
                to(4, ix, iy, iz, it) = s4
             end do
          end do
       end do
    end do
  end subroutine dirac

  !> Adds h times the link times the quark.
  pure subroutine along(s1, s2, s3, s4, h, a, c)
    double precision, intent(inout) :: s1, s2, s3, s4
    double precision, intent(in) :: h, a(4), c(4)

    s1 = s1 + h*(a(1)*c(1) - a(4)*c(2) + a(3)*c(3) - a(2)*c(4))
    s2 = s2 + h*(a(1)*c(2) + a(4)*c(1) + a(3)*c(4) + a(2)*c(3))
    s3 = s3 + h*(-a(3)*c(1) - a(2)*c(2) + a(1)*c(3) + a(4)*c(4))
    s4 = s4 + h*(-a(3)*c(2) + a(2)*c(1) + a(1)*c(4) - a(4)*c(3))
  end subroutine along

  !> Subtracts h times the link's conjugate times the quark.
  pure subroutine back(s1, s2, s3, s4, h, a, c)
    double precision, intent(inout) :: s1, s2, s3, s4
    double precision, intent(in) :: h, a(4), c(4)

    s1 = s1 - h*(a(1)*c(1) + a(4)*c(2) - a(3)*c(3) + a(2)*c(4))
    s2 = s2 - h*(a(1)*c(2) - a(4)*c(1) - a(3)*c(4) - a(2)*c(3))
    s3 = s3 - h*(a(3)*c(1) + a(2)*c(2) + a(1)*c(3) - a(4)*c(4))
    s4 = s4 - h*(a(3)*c(2) - a(2)*c(1) + a(1)*c(4) + a(4)*c(3))
  end subroutine back

  double precision function dot(one, other)
    double precision, intent(in) :: one(4, wide, side, side, side), other(4, wide, side, side, side)
    double precision :: sum
    integer :: k, ix, iy, iz, it

    !$omp parallel do schedule(static) private(k, ix, iy, iz, sum)
    do it = 1, side
       sum = 0
       do iz = 1, side
          do iy = 1, side
             do ix = 1, side
                do k = 1, 4
                   sum = sum + one(k, ix, iy, iz, it)*other(k, ix, iy, iz, it)
                end do
             end do
          end do
       end do
       by_time(it) = sum
    end do
    dot = 0
    do it = 1, side
       dot = dot + by_time(it)
    end do
  end function dot

  !> to = to + factor from
  subroutine add(to, from, factor)
    double precision, intent(inout) :: to(4, wide, side, side, side)
    double precision, intent(in) :: from(4, wide, side, side, side), factor
    integer :: k, ix, iy, iz, it

    !$omp parallel do schedule(static) private(k, ix, iy, iz)
    do it = 1, side
       do iz = 1, side
          do iy = 1, side
             do ix = 1, side
                do k = 1, 4
                   to(k, ix, iy, iz, it) = to(k, ix, iy, iz, it) + factor*from(k, ix, iy, iz, it)
                end do
             end do
          end do
       end do
    end do
  end subroutine add

  !> to = factor to + from
  subroutine turn(to, from, factor)
    double precision, intent(inout) :: to(4, wide, side, side, side)
    double precision, intent(in) :: from(4, wide, side, side, side), factor
    integer :: k, ix, iy, iz, it

    !$omp parallel do schedule(static) private(k, ix, iy, iz)
    do it = 1, side
       do iz = 1, side
          do iy = 1, side
             do ix = 1, side
                do k = 1, 4
                   to(k, ix, iy, iz, it) = factor*to(k, ix, iy, iz, it) + from(k, ix, iy, iz, it)
                end do
             end do
          end do
       end do
    end do
  end subroutine turn
end module quarks
