!> Applu: five coupled parabolic and elliptic equations, by symmetric successive over-relaxation. A time step makes the blocks of the
!> lower system for the whole grid and solves it, makes those of the upper one and solves it, and finds the new residual.
program applu
  use stepped
  use field
  use operator
  use jacobians
  use sweeps
  implicit none
  double precision :: before, checksum
  integer :: i, j, k

  call start()
  call first_guess()
  call find_force()
  call find_residual()
  call pause()
  before = residual_norm()
  call resume()
  do while (next_step())
     call scale_residual()
     call find_lower()
     call solve_lower()
     call find_upper()
     call solve_upper()
     call add()
     call find_residual()
  end do

  checksum = 0
  do k = 1, n
     do j = 1, n
        do i = 1, n
           checksum = checksum + sum(u(:, i, j, k))*place_weight(i + 7*k, j)
        end do
     end do
  end do
  call report('n', dble(n))
  call report('residual_before', before)
  call report('residual', residual_norm())
  call report('error', error_norm())
  call finish(checksum)

contains

  subroutine scale_residual()
    integer :: m

    !$omp parallel do schedule(static) private(i, j, m)
    do k = 2, n - 1
       do j = 2, n - 1
          do i = 2, n - 1
             do m = 1, 5
                rsd(m, i, j, k) = time_step*rsd(m, i, j, k)
             end do
          end do
       end do
    end do
  end subroutine scale_residual

  subroutine add()
    double precision, parameter :: relax = 1/(omega*(2 - omega))
    integer :: m

    !$omp parallel do schedule(static) private(i, j, m)
    do k = 2, n - 1
       do j = 2, n - 1
          do i = 2, n - 1
             do m = 1, 5
                u(m, i, j, k) = u(m, i, j, k) + relax*rsd(m, i, j, k)
             end do
          end do
       end do
    end do
  end subroutine add
end program applu
