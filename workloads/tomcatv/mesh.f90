!> The mesh and the parts of a time step; each parallel loop is one fork.
#ifndef POINTS
#define POINTS 513
#endif
module mesh
  implicit none
  integer, parameter :: n = POINTS
  !> The other direction's part of the diagonal, under-relaxed by 0.98.
  double precision, parameter :: relax = 2/0.98d0
  !> Places; their residuals, which become their moves; the systems: beside the diagonal, on it, and eliminated.
  double precision :: x(n, n), y(n, n), rx(n, n), ry(n, n), aa(n, n), dd(n, n), d(n, n)

contains

  !> A channel with a bump on one side; its lines are crowded and bent at first. The master alone does this: the
  !> benchmark reads its mesh from a file.
  subroutine boundary()
    double precision, parameter :: pi = 3.14159265358979324d0
    double precision :: s, t, low, wave_x(n), wave_y(n), bend_x, bend_y
    integer :: i, j

    do i = 1, n
       s = dble(i - 1)/(n - 1)
       wave_x(i) = 0.3d0/n*sin(40*pi*s)
       wave_y(i) = 0.3d0/n*sin(50*pi*s)
    end do
    do j = 1, n
       t = dble(j - 1)/(n - 1)
       low = 0.2d0*exp(-36*(t - 0.5d0)**2)
       bend_x = sin(60*pi*t)
       bend_y = sin(30*pi*t)
       do i = 1, n
          s = dble(i - 1)/(n - 1)
          x(i, j) = 2*t
          y(i, j) = low + (1 - low)*s
          if (i > 1 .and. i < n .and. j > 1 .and. j < n) then
             x(i, j) = x(i, j) + wave_x(i)*bend_x
             y(i, j) = y(i, j) + wave_y(i)*bend_y
          end if
       end do
    end do
  end subroutine boundary

  !> The equations' left sides, by central differences: along (1) and across (2) columns. The matrix of each column, too.
  subroutine find_residual()
    double precision :: x1, y1, x2, y2, a, b, c, x11, x22, x12, y11, y22, y12
    integer :: i, j

    !$omp parallel do schedule(static) private(i, x1, y1, x2, y2, a, b, c, x11, x22, x12, y11, y22, y12)
    do j = 2, n - 1
       do i = 2, n - 1
          x2 = x(i, j + 1) - x(i, j - 1)
          y2 = y(i, j + 1) - y(i, j - 1)
          x1 = x(i + 1, j) - x(i - 1, j)
          y1 = y(i + 1, j) - y(i - 1, j)
          a = 0.250d0*(x1*x1 + y1*y1)
          b = 0.250d0*(x2*x2 + y2*y2)
          c = 0.125d0*(x2*x1 + y2*y1)
          aa(i, j) = -b
          dd(i, j) = b + b + a*relax
          x22 = x(i, j + 1) - 2*x(i, j) + x(i, j - 1)
          x11 = x(i + 1, j) - 2*x(i, j) + x(i - 1, j)
          x12 = x(i + 1, j + 1) - x(i - 1, j + 1) - x(i + 1, j - 1) + x(i - 1, j - 1)
          y22 = y(i, j + 1) - 2*y(i, j) + y(i, j - 1)
          y11 = y(i + 1, j) - 2*y(i, j) + y(i - 1, j)
          y12 = y(i + 1, j + 1) - y(i - 1, j + 1) - y(i + 1, j - 1) + y(i - 1, j - 1)
          rx(i, j) = a*x22 + b*x11 - c*x12
          ry(i, j) = a*y22 + b*y11 - c*y12
       end do
    end do
  end subroutine find_residual

  subroutine find_largest(largest_x, largest_y)
    double precision, intent(out) :: largest_x, largest_y
    double precision :: most_x, most_y
    integer :: i, j

    most_x = 0
    most_y = 0
    !$omp parallel do schedule(static) private(i) reduction(max: most_x, most_y)
    do j = 2, n - 1
       do i = 2, n - 1
          most_x = max(most_x, abs(rx(i, j)))
          most_y = max(most_y, abs(ry(i, j)))
       end do
    end do
    largest_x = most_x
    largest_y = most_y
  end subroutine find_largest

  !> Down each column.
  subroutine eliminate()
    double precision :: r
    integer :: i, j

    !$omp parallel do schedule(static) private(i, r)
    do j = 2, n - 1
       d(2, j) = 1/dd(2, j)
       do i = 3, n - 1
          r = aa(i, j)*d(i - 1, j)
          d(i, j) = 1/(dd(i, j) - aa(i - 1, j)*r)
          rx(i, j) = rx(i, j) - rx(i - 1, j)*r
          ry(i, j) = ry(i, j) - ry(i - 1, j)*r
       end do
    end do
  end subroutine eliminate

  !> Up each column.
  subroutine substitute()
    integer :: i, j

    !$omp parallel do schedule(static) private(i)
    do j = 2, n - 1
       rx(n - 1, j) = rx(n - 1, j)*d(n - 1, j)
       ry(n - 1, j) = ry(n - 1, j)*d(n - 1, j)
       do i = n - 2, 2, -1
          rx(i, j) = (rx(i, j) - aa(i, j)*rx(i + 1, j))*d(i, j)
          ry(i, j) = (ry(i, j) - aa(i, j)*ry(i + 1, j))*d(i, j)
       end do
    end do
  end subroutine substitute

  subroutine add()
    integer :: i, j

    !$omp parallel do schedule(static) private(i)
    do j = 2, n - 1
       do i = 2, n - 1
          x(i, j) = x(i, j) + rx(i, j)
          y(i, j) = y(i, j) + ry(i, j)
       end do
    end do
  end subroutine add

  !> The number of cells that are turned over: 0 in a valid mesh.
  integer function folded()
    integer :: i, j

    folded = 0
    do j = 1, n - 1
       do i = 1, n - 1
          if ((x(i, j + 1) - x(i, j))*(y(i + 1, j) - y(i, j)) <= (x(i + 1, j) - x(i, j))*(y(i, j + 1) - y(i, j))) &
             folded = folded + 1
       end do
    end do
  end function folded
end module mesh
