!> The gauge field of su2cor: over-relaxation, which moves every link as far as it goes without a change of the action. The links of one
!> direction at even (odd) sites do not need each other; they are moved together.
!>
!> The loops are parallel over y: what a thread has of the field lies in pieces of half a kilobyte for each of its y, at every z, t and
!> direction; a page is everyone's.
module links
  use lattice
  implicit none
  private
  public :: overrelax, action

contains

  subroutine overrelax()
    integer :: mu, parity

    do mu = 1, 4
       do parity = 0, 1
          call find_staples(mu, parity)
          call move(mu, parity)
       end do
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
    double precision :: two(4), three(4)
    integer :: nu, here(4), ahead(4), above(4), below(4), corner(4)

    sum = 0
    here = [ix, iy, iz, it]
    ahead = here
    ahead(mu) = up(here(mu))
    do nu = 1, 4
       if (nu == mu) cycle
       above = here
       above(nu) = up(here(nu))
       call multiply(two, u(1, ix, iy, iz, it, nu), u(1, above(1), above(2), above(3), above(4), mu))
       call multiply_right(three, u(1, ahead(1), ahead(2), ahead(3), ahead(4), nu), two)
       sum = sum + three
       below = here
       below(nu) = down(here(nu))
       corner = ahead
       corner(nu) = below(nu)
       call multiply(two, u(1, below(1), below(2), below(3), below(4), mu), u(1, corner(1), corner(2), corner(3), corner(4), nu))
       call multiply_left(three, two, u(1, below(1), below(2), below(3), below(4), nu))
       sum = sum + three
    end do
  end subroutine staples_of

  !> u becomes v* u* v*, where v is the staples' direction: u v becomes its own conjugate, whose trace is the same.
  subroutine move(mu, parity)
    integer, intent(in) :: mu, parity
    double precision :: v(4), uv(4)
    integer :: ix, iy, iz, it

    !$omp parallel do schedule(static) private(ix, iz, it, v, uv)
    do iy = 1, side
       do it = 1, side
          do iz = 1, side
             do ix = 1 + mod(iy + iz + it + parity, 2), side, 2
                v = staple(:, ix, iy, iz, it)/sqrt(sum(staple(:, ix, iy, iz, it)**2))
                call multiply(uv, u(1, ix, iy, iz, it, mu), v)
                uv(2:4) = -uv(2:4)
                call multiply_right(u(1, ix, iy, iz, it, mu), uv, v)
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

  !> a b
  pure subroutine multiply(c, a, b)
    double precision, intent(out) :: c(4)
    double precision, intent(in) :: a(4), b(4)

    c(1) = a(1)*b(1) - a(2)*b(2) - a(3)*b(3) - a(4)*b(4)
    c(2) = a(1)*b(2) + b(1)*a(2) - (a(3)*b(4) - a(4)*b(3))
    c(3) = a(1)*b(3) + b(1)*a(3) - (a(4)*b(2) - a(2)*b(4))
    c(4) = a(1)*b(4) + b(1)*a(4) - (a(2)*b(3) - a(3)*b(2))
  end subroutine multiply

  !> a b*
  pure subroutine multiply_right(c, a, b)
    double precision, intent(out) :: c(4)
    double precision, intent(in) :: a(4), b(4)

    c(1) = a(1)*b(1) + a(2)*b(2) + a(3)*b(3) + a(4)*b(4)
    c(2) = -a(1)*b(2) + b(1)*a(2) + (a(3)*b(4) - a(4)*b(3))
    c(3) = -a(1)*b(3) + b(1)*a(3) + (a(4)*b(2) - a(2)*b(4))
    c(4) = -a(1)*b(4) + b(1)*a(4) + (a(2)*b(3) - a(3)*b(2))
  end subroutine multiply_right

  !> a* b
  pure subroutine multiply_left(c, a, b)
    double precision, intent(out) :: c(4)
    double precision, intent(in) :: a(4), b(4)

    c(1) = a(1)*b(1) + a(2)*b(2) + a(3)*b(3) + a(4)*b(4)
    c(2) = a(1)*b(2) - b(1)*a(2) + (a(3)*b(4) - a(4)*b(3))
    c(3) = a(1)*b(3) - b(1)*a(3) + (a(4)*b(2) - a(2)*b(4))
    c(4) = a(1)*b(4) - b(1)*a(4) + (a(2)*b(3) - a(3)*b(2))
  end subroutine multiply_left
end module links
