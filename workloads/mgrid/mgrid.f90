!> Mgrid: Poisson's equation on a cube that repeats, by V-cycles of a multigrid (NAS MG, RNR-94-007, section 3): one cycle is one time
!> step. 64 x 64 x 64 points on the finest level, 2 x 2 x 2 on the coarsest, all of them in two arrays, one level after another, and the
!> right side of the finest level in a third. The position of a level in them is known only at run time.
#ifndef LEVELS
#define LEVELS 6
#endif
module levels
  implicit none
  integer, parameter :: finest = LEVELS, points = 2**finest + 2
  integer :: level
  !> The points of all levels together.
  integer, parameter :: room = sum([((2**level + 2)**3, level=1, finest)])
  double precision :: u(room), r(room), v(points, points, points)
  !> Points per side of each level, including copies, and the level's first element.
  integer :: n(finest), begin(finest)

contains

  subroutine lay_out()
    integer :: k

    do k = 1, finest
       n(k) = 2**k + 2
    end do
    begin(finest) = 1
    do k = finest - 1, 1, -1
       begin(k) = begin(k + 1) + n(k + 1)**3
    end do
  end subroutine lay_out

  !> Root mean square of the finest level's residual.
  double precision function norm()
    integer :: i1, i2, i3
    double precision :: sum

    sum = 0
    do i3 = 2, points - 1
       do i2 = 2, points - 1
          do i1 = 2, points - 1
             sum = sum + r(i1 + points*(i2 - 1 + points*(i3 - 1)))**2
          end do
       end do
    end do
    norm = sqrt(sum/2d0**(3*finest))
  end function norm
end module levels

program mgrid
  use stepped
  use levels
  use charges
  use operators
  implicit none
  double precision :: before, checksum
  integer :: i1, i2, i3

  call start()
  call lay_out()
  call clear(u(begin(finest)), points)
  call clear(v, points)
  call place_charges(v, points)
  call repeat_ends(v, points)
  call find_residual(r(begin(finest)), u(begin(finest)), v, points)
  call pause()
  before = norm()
  call resume()
  do while (next_step())
     call cycle_once()
     call find_residual(r(begin(finest)), u(begin(finest)), v, points)
  end do

  checksum = 0
  do i3 = 2, points - 1
     do i2 = 2, points - 1
        do i1 = 2, points - 1
           checksum = checksum + u(i1 + points*(i2 - 1 + points*(i3 - 1)))*place_weight(i1 + 7*i3, i2)
        end do
     end do
  end do
  call report('n', 2d0**finest)
  call report('residual_before', before)
  call report('residual', norm())
  call finish(checksum)

contains

  !> Down with the residual, up with the correction.
  subroutine cycle_once()
    integer :: k

    do k = finest, 2, -1
       call coarsen(r(begin(k - 1)), n(k - 1), r(begin(k)), n(k))
    end do
    call clear(u(begin(1)), n(1))
    call smooth(u(begin(1)), r(begin(1)), n(1))
    do k = 2, finest - 1
       call clear(u(begin(k)), n(k))
       call refine(u(begin(k)), n(k), u(begin(k - 1)), n(k - 1))
       call take_away(r(begin(k)), u(begin(k)), n(k))
       call smooth(u(begin(k)), r(begin(k)), n(k))
    end do
    call refine(u(begin(finest)), points, u(begin(finest - 1)), n(finest - 1))
    call find_residual(r(begin(finest)), u(begin(finest)), v, points)
    call smooth(u(begin(finest)), r(begin(finest)), points)
  end subroutine cycle_once
end program mgrid
