!> The operators of mgrid on one level: n planes of n lines of n points, of which the first and last of each direction are
!> copies of those at the other end (the cube repeats). Every parallel loop goes over planes; only the copies of whole planes
!> are divided by lines. Sums are over the 27 points around one: itself, 6 beside faces, 12 beside edges, 8 at corners.
module operators
  implicit none

contains

  !> Makes the copies at the ends of all directions.
  subroutine repeat_ends(u, n)
    integer, intent(in) :: n
    double precision, intent(inout) :: u(n, n, n)
    integer :: i1, i2, i3

    !$omp parallel do schedule(static) private(i1, i2)
    do i3 = 2, n - 1
       do i2 = 2, n - 1
          u(1, i2, i3) = u(n - 1, i2, i3)
          u(n, i2, i3) = u(2, i2, i3)
       end do
       do i1 = 1, n
          u(i1, 1, i3) = u(i1, n - 1, i3)
          u(i1, n, i3) = u(i1, 2, i3)
       end do
    end do
    !$omp parallel do schedule(static) private(i1)
    do i2 = 1, n
       do i1 = 1, n
          u(i1, i2, 1) = u(i1, i2, n - 1)
          u(i1, i2, n) = u(i1, i2, 2)
       end do
    end do
  end subroutine repeat_ends

  !> r = v - A u: A is Laplace's operator with weights -8/3, 0, 1/6, 1/12.
  subroutine find_residual(r, u, v, n)
    integer, intent(in) :: n
    double precision, intent(inout) :: r(n, n, n)
    double precision, intent(in) :: u(n, n, n), v(n, n, n)
    integer :: i1, i2, i3

    !$omp parallel do schedule(static) private(i1, i2)
    do i3 = 2, n - 1
       do i2 = 2, n - 1
          do i1 = 2, n - 1
             r(i1, i2, i3) = v(i1, i2, i3) + 8d0/3d0*u(i1, i2, i3) - 1d0/6d0*edges(u, n, i1, i2, i3) &
                - 1d0/12d0*corners(u, n, i1, i2, i3)
          end do
       end do
    end do
    call repeat_ends(r, n)
  end subroutine find_residual

  !> r = r - A u.
  subroutine take_away(r, u, n)
    integer, intent(in) :: n
    double precision, intent(inout) :: r(n, n, n)
    double precision, intent(in) :: u(n, n, n)
    integer :: i1, i2, i3

    !$omp parallel do schedule(static) private(i1, i2)
    do i3 = 2, n - 1
       do i2 = 2, n - 1
          do i1 = 2, n - 1
             r(i1, i2, i3) = r(i1, i2, i3) + 8d0/3d0*u(i1, i2, i3) - 1d0/6d0*edges(u, n, i1, i2, i3) &
                - 1d0/12d0*corners(u, n, i1, i2, i3)
          end do
       end do
    end do
    call repeat_ends(r, n)
  end subroutine take_away

  !> u = u + S r: the smoother with weights -3/8, 1/32, -1/64, 0.
  subroutine smooth(u, r, n)
    integer, intent(in) :: n
    double precision, intent(inout) :: u(n, n, n)
    double precision, intent(in) :: r(n, n, n)
    integer :: i1, i2, i3

    !$omp parallel do schedule(static) private(i1, i2)
    do i3 = 2, n - 1
       do i2 = 2, n - 1
          do i1 = 2, n - 1
             u(i1, i2, i3) = u(i1, i2, i3) - 3d0/8d0*r(i1, i2, i3) + 1d0/32d0*faces(r, n, i1, i2, i3) &
                - 1d0/64d0*edges(r, n, i1, i2, i3)
          end do
       end do
    end do
    call repeat_ends(u, n)
  end subroutine smooth

  !> The residual on the next coarser level of m points: weights 1/2, 1/4, 1/8, 1/16.
  subroutine coarsen(s, m, r, n)
    integer, intent(in) :: m, n
    double precision, intent(inout) :: s(m, m, m)
    double precision, intent(in) :: r(n, n, n)
    integer :: i1, i2, i3, j1, j2, j3

    !$omp parallel do schedule(static) private(i1, i2, i3, j1, j2)
    do j3 = 2, m - 1
       i3 = 2*j3 - 1
       do j2 = 2, m - 1
          i2 = 2*j2 - 1
          do j1 = 2, m - 1
             i1 = 2*j1 - 1
             s(j1, j2, j3) = 0.5d0*r(i1, i2, i3) + 0.25d0*faces(r, n, i1, i2, i3) + 0.125d0*edges(r, n, i1, i2, i3) &
                + 0.0625d0*corners(r, n, i1, i2, i3)
          end do
       end do
    end do
    call repeat_ends(s, m)
  end subroutine coarsen

  !> Adds the solution z of the next coarser level of m points: elsewhere the mean of two, four or eight of its points.
  subroutine refine(u, n, z, m)
    integer, intent(in) :: m, n
    double precision, intent(inout) :: u(n, n, n)
    double precision, intent(in) :: z(m, m, m)
    integer :: i1, i2, i3, j1, j2, j3

    !$omp parallel do schedule(static) private(i1, i2, i3, j1, j2)
    do j3 = 1, m - 1
       i3 = 2*j3 - 1
       do j2 = 1, m - 1
          i2 = 2*j2 - 1
          do j1 = 1, m - 1
             i1 = 2*j1 - 1
             u(i1, i2, i3) = u(i1, i2, i3) + z(j1, j2, j3)
             u(i1 + 1, i2, i3) = u(i1 + 1, i2, i3) + 0.5d0*(z(j1 + 1, j2, j3) + z(j1, j2, j3))
          end do
          do j1 = 1, m - 1
             i1 = 2*j1 - 1
             u(i1, i2 + 1, i3) = u(i1, i2 + 1, i3) + 0.5d0*(z(j1, j2 + 1, j3) + z(j1, j2, j3))
             u(i1 + 1, i2 + 1, i3) = u(i1 + 1, i2 + 1, i3) &
                + 0.25d0*(z(j1, j2, j3) + z(j1, j2 + 1, j3) + z(j1 + 1, j2, j3) + z(j1 + 1, j2 + 1, j3))
          end do
          do j1 = 1, m - 1
             i1 = 2*j1 - 1
             u(i1, i2, i3 + 1) = u(i1, i2, i3 + 1) + 0.5d0*(z(j1, j2, j3 + 1) + z(j1, j2, j3))
             u(i1 + 1, i2, i3 + 1) = u(i1 + 1, i2, i3 + 1) &
                + 0.25d0*(z(j1, j2, j3) + z(j1 + 1, j2, j3) + z(j1, j2, j3 + 1) + z(j1 + 1, j2, j3 + 1))
          end do
          do j1 = 1, m - 1
             i1 = 2*j1 - 1
             u(i1, i2 + 1, i3 + 1) = u(i1, i2 + 1, i3 + 1) &
                + 0.25d0*(z(j1, j2, j3) + z(j1, j2 + 1, j3) + z(j1, j2, j3 + 1) + z(j1, j2 + 1, j3 + 1))
             u(i1 + 1, i2 + 1, i3 + 1) = u(i1 + 1, i2 + 1, i3 + 1) &
                + 0.125d0*(z(j1, j2, j3) + z(j1, j2 + 1, j3) + z(j1 + 1, j2, j3) + z(j1 + 1, j2 + 1, j3) &
                + z(j1, j2, j3 + 1) + z(j1, j2 + 1, j3 + 1) + z(j1 + 1, j2, j3 + 1) + z(j1 + 1, j2 + 1, j3 + 1))
          end do
       end do
    end do
  end subroutine refine

  subroutine clear(u, n)
    integer, intent(in) :: n
    double precision, intent(inout) :: u(n, n, n)
    integer :: i1, i2, i3

    !$omp parallel do schedule(static) private(i1, i2)
    do i3 = 1, n
       do i2 = 1, n
          do i1 = 1, n
             u(i1, i2, i3) = 0
          end do
       end do
    end do
  end subroutine clear

  pure double precision function faces(u, n, i1, i2, i3)
    integer, intent(in) :: n, i1, i2, i3
    double precision, intent(in) :: u(n, n, n)

    faces = u(i1 - 1, i2, i3) + u(i1 + 1, i2, i3) + u(i1, i2 - 1, i3) + u(i1, i2 + 1, i3) + u(i1, i2, i3 - 1) + u(i1, i2, i3 + 1)
  end function faces

  pure double precision function edges(u, n, i1, i2, i3)
    integer, intent(in) :: n, i1, i2, i3
    double precision, intent(in) :: u(n, n, n)

    edges = u(i1 - 1, i2 - 1, i3) + u(i1 + 1, i2 - 1, i3) + u(i1 - 1, i2 + 1, i3) + u(i1 + 1, i2 + 1, i3) &
       + u(i1, i2 - 1, i3 - 1) + u(i1, i2 + 1, i3 - 1) + u(i1, i2 - 1, i3 + 1) + u(i1, i2 + 1, i3 + 1) &
       + u(i1 - 1, i2, i3 - 1) + u(i1 - 1, i2, i3 + 1) + u(i1 + 1, i2, i3 - 1) + u(i1 + 1, i2, i3 + 1)
  end function edges

  pure double precision function corners(u, n, i1, i2, i3)
    integer, intent(in) :: n, i1, i2, i3
    double precision, intent(in) :: u(n, n, n)

    corners = u(i1 - 1, i2 - 1, i3 - 1) + u(i1 + 1, i2 - 1, i3 - 1) + u(i1 - 1, i2 + 1, i3 - 1) + u(i1 + 1, i2 + 1, i3 - 1) &
       + u(i1 - 1, i2 - 1, i3 + 1) + u(i1 + 1, i2 - 1, i3 + 1) + u(i1 - 1, i2 + 1, i3 + 1) + u(i1 + 1, i2 + 1, i3 + 1)
  end function corners
end module operators
