!> The lattice of su2cor: 16 sites a side in three directions of space and one of time, which all repeat. A link to the next site of
!> each direction is an element of the group SU(2), four numbers a0 + i (a1, a2, a3) sigma; a quark has two complex numbers, real
!> and imaginary parts side by side.
#ifndef PLACES
#define PLACES 16
#endif
module lattice
  implicit none
  integer, parameter :: side = 16, sites = side**4
  !> The places that a line along x takes in memory.
  integer, parameter :: wide = PLACES
  !> The links; the sum of the staples around each link of one direction.
  double precision :: u(4, wide, side, side, side, 4), staple(4, wide, side, side, side)
  !> The quark's source, the propagator, its residual, the direction of search, and that direction after one and both
  !> applications of Dirac's operator.
  double precision, dimension(4, wide, side, side, side) :: b, x, r, p, q, w
  !> Signs of the y, z and t direction; that of x is always 1.
  double precision :: eta(3, wide, side, side, side)

contains

  pure integer function up(i)
    integer, intent(in) :: i

    up = mod(i, side) + 1
  end function up

  pure integer function down(i)
    integer, intent(in) :: i

    down = mod(i + side - 2, side) + 1
  end function down

  !> Links at random around the unit element, the signs, and a source at all sites of the first time.
  subroutine initialize()
    integer :: ix, iy, iz, it, mu, k
    double precision :: link(4)

    !$omp parallel do schedule(static) private(ix, iy, iz, mu, k, link)
    do it = 1, side
       do iz = 1, side
          do iy = 1, side
             do ix = 1, side
                do mu = 1, 4
                   link(1) = 1
                   do k = 2, 4
                      link(k) = 1.2d0*chance(ix + side*(iy + side*(iz + side*(it + side*(mu + 4*k)))))
                   end do
                   u(:, ix, iy, iz, it, mu) = link/sqrt(sum(link**2))
                end do
                staple(:, ix, iy, iz, it) = 0
                b(:, ix, iy, iz, it) = [merge(1d0, 0d0, it == 1), 0d0, 0d0, 0d0]
                x(:, ix, iy, iz, it) = 0
                r(:, ix, iy, iz, it) = 0
                p(:, ix, iy, iz, it) = 0
                q(:, ix, iy, iz, it) = 0
                w(:, ix, iy, iz, it) = 0
                eta(1, ix, iy, iz, it) = 1 - 2*mod(ix, 2)
                eta(2, ix, iy, iz, it) = 1 - 2*mod(ix + iy, 2)
                eta(3, ix, iy, iz, it) = 1 - 2*mod(ix + iy + iz, 2)
             end do
          end do
       end do
    end do
  end subroutine initialize

  !> A pseudo-random number from -1 to 1: Lehmer's generator, a few steps from a seed of its own.
  pure double precision function chance(beginning)
    integer, intent(in) :: beginning
    integer, parameter :: long = selected_int_kind(18)
    integer(long) :: state
    integer :: step

    state = beginning
    do step = 1, 4
       state = mod(48271*state + 11, 2147483647_long)
    end do
    chance = 2*(state/2147483647d0) - 1
  end function chance
end module lattice
