!> The lower and the upper triangular system of applu. A point needs its neighbours below (above) in all directions. The tile that is
!> done between two synchronizations is a line along x: all lines (j, k) with the same j + k are independent of each other, one such
!> front is done after another, and within a front the loop is parallel over planes, so that a plane is always the same thread's.
module sweeps
  use field
  use jacobians
  implicit none
  private
  public :: solve_lower, solve_upper

contains

  subroutine solve_lower()
    double precision :: sum(5)
    integer :: front, i, j, k

    do front = 4, 2*(n - 1)
       !$omp parallel do schedule(static) private(i, j, sum)
       do k = 2, n - 1
          j = front - k
          if (j >= 2 .and. j <= n - 1) then
             do i = 2, n - 1
                sum = rsd(:, i, j, k)
                call add_product(sum, a(1, 1, i, j, k), rsd(1, i, j, k - 1), -omega)
                call add_product(sum, b(1, 1, i, j, k), rsd(1, i, j - 1, k), -omega)
                call add_product(sum, c(1, 1, i, j, k), rsd(1, i - 1, j, k), -omega)
                call eliminate(d(1, 1, i, j, k), sum)
                rsd(:, i, j, k) = sum
             end do
          end if
       end do
    end do
  end subroutine solve_lower

  subroutine solve_upper()
    double precision :: sum(5)
    integer :: front, i, j, k

    do front = 2*(n - 1), 4, -1
       !$omp parallel do schedule(static) private(i, j, sum)
       do k = 2, n - 1
          j = front - k
          if (j >= 2 .and. j <= n - 1) then
             do i = n - 1, 2, -1
                sum = 0
                call add_product(sum, c(1, 1, i, j, k), rsd(1, i, j, k + 1), omega)
                call add_product(sum, b(1, 1, i, j, k), rsd(1, i, j + 1, k), omega)
                call add_product(sum, a(1, 1, i, j, k), rsd(1, i + 1, j, k), omega)
                call eliminate(d(1, 1, i, j, k), sum)
                rsd(:, i, j, k) = rsd(:, i, j, k) - sum
             end do
          end if
       end do
    end do
  end subroutine solve_upper

  !> Adds a block times a vector, times `scale`.
  pure subroutine add_product(to, block, v, scale)
    double precision, intent(inout) :: to(5)
    double precision, intent(in) :: block(5, 5), v(5), scale
    integer :: m

    do m = 1, 5
       to(m) = to(m) + scale*(block(m, 1)*v(1) + block(m, 2)*v(2) + block(m, 3)*v(3) + block(m, 4)*v(4) + block(m, 5)*v(5))
    end do
  end subroutine add_product

  !> The solution of block x = v, in v: by elimination, no pivoting needed.
  pure subroutine eliminate(block, v)
    double precision, intent(in) :: block(5, 5)
    double precision, intent(inout) :: v(5)
    double precision :: t(5, 5), inverse, times
    integer :: m, l, k

    t = block
    do k = 1, 4
       inverse = 1/t(k, k)
       do m = k + 1, 5
          times = t(m, k)*inverse
          do l = k + 1, 5
             t(m, l) = t(m, l) - times*t(k, l)
          end do
          v(m) = v(m) - times*v(k)
       end do
    end do
    do k = 5, 1, -1
       do l = k + 1, 5
          v(k) = v(k) - t(k, l)*v(l)
       end do
       v(k) = v(k)/t(k, k)
    end do
  end subroutine eliminate
end module sweeps
