!> The gauge field of su2cor: over-relaxation, which moves every link as far as possible at constant action. The links
!> of one direction at even (odd) sites do not depend on each other; they are moved together.
!>
!> The loops are parallel over y: a thread's part of the field lies in pieces of half a kilobyte for each of its y,
!> at every z, t and direction; all threads share each page.
module links
  use lattice
  implicit none
  private
  public :: overrelax, action

contains

  subroutine overrelax(mu)
    integer, intent(in) :: mu
    integer :: parity

    do parity = 0, 1
       call find_staples(mu, parity)
       call move(mu, parity)
    end do
  end subroutine overrelax

  subroutine find_staples(mu, parity)
    integer, intent(in) :: mu, parity
    integer :: ix, iy, iz, it

    !$omp parallel do schedule(static) private(ix, iz, it)
    do iy = 1, side
       do it = 1, side
          do iz = 1, side
             do ix = 1 + mod(iy + iz + it + parity, 2), side, 2
                call staples_of(staple(1, ix, iy, iz, it), mu, ix, iy, iz, it)
             end do
          end do
       end do
    end do
  end subroutine find_staples

  !> Around the link from a site in direction mu: the other three sides of the six squares that it belongs to.
  pure subroutine staples_of(sum, mu, ix, iy, iz, it)
    double precision, intent(out) :: sum(4)
    integer, intent(in) :: mu, ix, iy, iz, it
    double precision :: s1, s2, s3, s4, w1, w2, w3, w4
    integer :: nu, ax, ay, az, at, bx, by, bz, bt

    s1 = 0
    s2 = 0
    s3 = 0
    s4 = 0
    ax = ahead(ix, mu, 1)
    ay = ahead(iy, mu, 2)
    az = ahead(iz, mu, 3)
    at = ahead(it, mu, 4)
    do nu = 1, 4
       if (nu == mu) cycle
       bx = ahead(ix, nu, 1)
       by = ahead(iy, nu, 2)
       bz = ahead(iz, nu, 3)
       bt = ahead(it, nu, 4)
       call multiply(w1, w2, w3, w4, u(1, ix, iy, iz, it, nu), u(1, bx, by, bz, bt, mu))
       call add_right(s1, s2, s3, s4, u(1, ax, ay, az, at, nu), w1, w2, w3, w4)
       bx = behind(ix, nu, 1)
       by = behind(iy, nu, 2)
       bz = behind(iz, nu, 3)
       bt = behind(it, nu, 4)
       call multiply(w1, w2, w3, w4, u(1, bx, by, bz, bt, mu), &
          u(1, ahead(bx, mu, 1), ahead(by, mu, 2), ahead(bz, mu, 3), ahead(bt, mu, 4), nu))
       call add_left(s1, s2, s3, s4, w1, w2, w3, w4, u(1, bx, by, bz, bt, nu))
    end do
    sum(1) = s1
    sum(2) = s2
    sum(3) = s3
    sum(4) = s4
  end subroutine staples_of

  !> A site's coordinate of direction k, one step ahead (behind) in direction mu.
  pure integer function ahead(i, mu, k)
    integer, intent(in) :: i, mu, k

    ahead = merge(up(i), i, mu == k)
  end function ahead

  pure integer function behind(i, mu, k)
    integer, intent(in) :: i, mu, k

    behind = merge(down(i), i, mu == k)
  end function behind

  !> u becomes v* u* v*, where v is the staples' direction: u v becomes its own conjugate, whose trace is the same.
  subroutine move(mu, parity)
    integer, intent(in) :: mu, parity
    double precision :: v1, v2, v3, v4, w1, w2, w3, w4, scale
    integer :: ix, iy, iz, it

    !$omp parallel do schedule(static) private(ix, iz, it, v1, v2, v3, v4, w1, w2, w3, w4, scale)
    do iy = 1, side
       do it = 1, side
          do iz = 1, side
             do ix = 1 + mod(iy + iz + it + parity, 2), side, 2
                v1 = staple(1, ix, iy, iz, it)
                v2 = staple(2, ix, iy, iz, it)
                v3 = staple(3, ix, iy, iz, it)
                v4 = staple(4, ix, iy, iz, it)
                scale = 1/(v1*v1 + v2*v2 + v3*v3 + v4*v4)
                call multiply(w1, w2, w3, w4, u(1, ix, iy, iz, it, mu), staple(1, ix, iy, iz, it))
                u(1, ix, iy, iz, it, mu) = scale*(v1*w1 - v2*w2 - v3*w3 - v4*w4)
                u(2, ix, iy, iz, it, mu) = -scale*(v1*w2 + w1*v2 - (v3*w4 - v4*w3))
                u(3, ix, iy, iz, it, mu) = -scale*(v1*w3 + w1*v3 - (v4*w2 - v2*w4))
                u(4, ix, iy, iz, it, mu) = -scale*(v1*w4 + w1*v4 - (v2*w3 - v3*w2))
             end do
          end do
       end do
    end do
  end subroutine move

  !> The mean trace of all squares: 1 where all links are the unit element.
  double precision function action()
    double precision :: sum(4), total
    integer :: mu, ix, iy, iz, it

    total = 0
    do mu = 1, 4
       do it = 1, side
          do iz = 1, side
             do iy = 1, side
                do ix = 1, side
                   call staples_of(sum, mu, ix, iy, iz, it)
                   total = total + (u(1, ix, iy, iz, it, mu)*sum(1) - u(2, ix, iy, iz, it, mu)*sum(2) &
                      - u(3, ix, iy, iz, it, mu)*sum(3) - u(4, ix, iy, iz, it, mu)*sum(4))
                end do
             end do
          end do
       end do
    end do
    action = total/(24d0*sites)
  end function action

  !> w = a b
  pure subroutine multiply(w1, w2, w3, w4, a, b)
    double precision, intent(out) :: w1, w2, w3, w4
    double precision, intent(in) :: a(4), b(4)

    w1 = a(1)*b(1) - a(2)*b(2) - a(3)*b(3) - a(4)*b(4)
    w2 = a(1)*b(2) + b(1)*a(2) - (a(3)*b(4) - a(4)*b(3))
    w3 = a(1)*b(3) + b(1)*a(3) - (a(4)*b(2) - a(2)*b(4))
    w4 = a(1)*b(4) + b(1)*a(4) - (a(2)*b(3) - a(3)*b(2))
  end subroutine multiply

  !> s = s + a w*
  pure subroutine add_right(s1, s2, s3, s4, a, w1, w2, w3, w4)
    double precision, intent(inout) :: s1, s2, s3, s4
    double precision, intent(in) :: a(4), w1, w2, w3, w4

    s1 = s1 + (a(1)*w1 + a(2)*w2 + a(3)*w3 + a(4)*w4)
    s2 = s2 + (-a(1)*w2 + w1*a(2) + (a(3)*w4 - a(4)*w3))
    s3 = s3 + (-a(1)*w3 + w1*a(3) + (a(4)*w2 - a(2)*w4))
    s4 = s4 + (-a(1)*w4 + w1*a(4) + (a(2)*w3 - a(3)*w2))
  end subroutine add_right

  !> s = s + w* b
  pure subroutine add_left(s1, s2, s3, s4, w1, w2, w3, w4, b)
    double precision, intent(inout) :: s1, s2, s3, s4
    double precision, intent(in) :: w1, w2, w3, w4, b(4)

    s1 = s1 + (w1*b(1) + w2*b(2) + w3*b(3) + w4*b(4))
    s2 = s2 + (w1*b(2) - b(1)*w2 + (w3*b(4) - w4*b(3)))
    s3 = s3 + (w1*b(3) - b(1)*w3 + (w4*b(2) - w2*b(4)))
    s4 = s4 + (w1*b(4) - b(1)*w4 + (w2*b(3) - w3*b(2)))
  end subroutine add_left
end module links
