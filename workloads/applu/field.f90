!> The field of applu: five conserved quantities of a gas at 33 x 33 x 33 points, their residual (0 if they are steady),
!> and the force that makes the exact solution steady. The first and last points of each direction are the boundary.
!>
!> The equations and constants are those of class W of NAS LU (RNR-94-007, section 3), a descendant of this benchmark.
module field
  implicit none
  integer, parameter :: n = 33
  double precision, parameter :: c1 = 1.4d0, c2 = 0.4d0, c3 = 0.1d0, c4 = 1, c5 = 1.4d0
  double precision, parameter :: time_step = 1.5d-3, omega = 1.2d0
  !> 1/h, 1/(2h) and 1/h^2, where h is the distance between points.
  double precision, parameter :: t3 = n - 1, t2 = t3/2, t1 = t3*t3
  !> Diffusion in each direction.
  double precision, parameter :: second(3) = [0.75d0, 0.75d0, 1d0]
  double precision :: u(5, n, n, n), rsd(5, n, n, n), frct(5, n, n, n)
  !> The exact solution: for each quantity a constant and polynomials in x, y and z.
  double precision, parameter :: ce(13, 5) = reshape([ &
     2.0d0, 0.0d0, 0.0d0, 4.0d0, 5.0d0, 3.0d0, 0.5d0, 0.02d0, 0.01d0, 0.03d0, 0.5d0, 0.4d0, 0.3d0, &
     1.0d0, 0.0d0, 0.0d0, 0.0d0, 1.0d0, 2.0d0, 3.0d0, 0.01d0, 0.03d0, 0.02d0, 0.4d0, 0.3d0, 0.5d0, &
     2.0d0, 2.0d0, 0.0d0, 0.0d0, 0.0d0, 2.0d0, 3.0d0, 0.04d0, 0.03d0, 0.05d0, 0.3d0, 0.5d0, 0.4d0, &
     2.0d0, 2.0d0, 0.0d0, 0.0d0, 0.0d0, 2.0d0, 3.0d0, 0.03d0, 0.05d0, 0.04d0, 0.2d0, 0.1d0, 0.3d0, &
     5.0d0, 4.0d0, 3.0d0, 2.0d0, 0.1d0, 0.4d0, 0.3d0, 0.05d0, 0.04d0, 0.03d0, 0.1d0, 0.3d0, 0.2d0], [13, 5])

contains

  pure subroutine exact(i, j, k, value)
    integer, intent(in) :: i, j, k
    double precision, intent(out) :: value(5)
    double precision :: x, y, z
    integer :: m

    x = (i - 1)/t3
    y = (j - 1)/t3
    z = (k - 1)/t3
    do m = 1, 5
       value(m) = ce(1, m) + (ce(2, m) + (ce(5, m) + (ce(8, m) + ce(11, m)*x)*x)*x)*x &
          + (ce(3, m) + (ce(6, m) + (ce(9, m) + ce(12, m)*y)*y)*y)*y &
          + (ce(4, m) + (ce(7, m) + (ce(10, m) + ce(13, m)*z)*z)*z)*z
    end do
  end subroutine exact

  !> Exact on the boundary; inside, interpolated along the three lines between opposite boundaries.
  subroutine first_guess()
    integer :: i, j, k
    double precision :: low(5), high(5), x(5), y(5), z(5)

    !$omp parallel do schedule(static) private(i, j, low, high, x, y, z)
    do k = 1, n
       do j = 1, n
          do i = 1, n
             if (i == 1 .or. j == 1 .or. k == 1 .or. i == n .or. j == n .or. k == n) then
                call exact(i, j, k, u(1, i, j, k))
             else
                call exact(1, j, k, low)
                call exact(n, j, k, high)
                x = (1 - (i - 1)/t3)*low + (i - 1)/t3*high
                call exact(i, 1, k, low)
                call exact(i, n, k, high)
                y = (1 - (j - 1)/t3)*low + (j - 1)/t3*high
                call exact(i, j, 1, low)
                call exact(i, j, n, high)
                z = (1 - (k - 1)/t3)*low + (k - 1)/t3*high
                u(:, i, j, k) = x + y + z - x*y - y*z - z*x + x*y*z
             end if
          end do
       end do
    end do
  end subroutine first_guess

  !> Root mean squares over the interior, summed over all five quantities: of the residual, and of the solution's error.
  double precision function residual_norm()
    double precision :: sum(5)
    integer :: i, j, k

    sum = 0
    do k = 2, n - 1
       do j = 2, n - 1
          do i = 2, n - 1
             sum = sum + rsd(:, i, j, k)**2
          end do
       end do
    end do
    residual_norm = total(sum)
  end function residual_norm

  double precision function error_norm()
    double precision :: sum(5), right(5)
    integer :: i, j, k

    sum = 0
    do k = 2, n - 1
       do j = 2, n - 1
          do i = 2, n - 1
             call exact(i, j, k, right)
             sum = sum + (u(:, i, j, k) - right)**2
          end do
       end do
    end do
    error_norm = total(sum)
  end function error_norm

  pure double precision function total(squares)
    double precision, intent(in) :: squares(5)
    integer :: m

    total = 0
    do m = 1, 5
       total = total + sqrt(squares(m)/dble(n - 2)**3)
    end do
  end function total
end module field
