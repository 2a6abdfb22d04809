!> The SOR nest (Philbin et al. 1996, section 4.3): shared part of all versions. One array, known border values.
subroutine workload(opt, out) bind(c)
  use frame
  implicit none
  type(options), intent(in) :: opt
  type(outcome), intent(inout) :: out

  interface
     subroutine solve(a, n, iterations, opt, out)
       import :: options, outcome
       integer, intent(in) :: n, iterations
       double precision, intent(inout), target :: a(0:n, 0:n)
       type(options), intent(in) :: opt
       type(outcome), intent(inout) :: out
     end subroutine solve
  end interface

  double precision, allocatable :: a(:, :)
  integer :: n, i, j, status
  integer(c_int64_t) :: round

  n = int(opt%n)
  allocate (a(0:n, 0:n), stat=status)
  if (status /= 0) call fail('not enough memory for an array of this size')
  do j = 0, n
     do i = 0, n
        a(i, j) = mod(7*i + 13*j, 17)/16d0
     end do
  end do

  call report('residual_before', residual())
  call frame_begin()
  do round = 1, opt%rounds
     call solve(a, n, int(opt%iterations), opt, out)
  end do
  call frame_end()

  do j = 1, n - 1
     do i = 1, n - 1
        out%checksum = out%checksum + a(i, j)*(mod(i + 31*j, 101) + 1)
     end do
  end do
  call report('residual', residual())

contains

  !> The root mean square of the elements' distances from the mean of their neighbours. Versions that update in another
  !> order reach the same solution by another way, and this shows how near they are.
  double precision function residual()
    residual = 0
    do j = 1, n - 1
       do i = 1, n - 1
          residual = residual + (0.25d0*(a(i + 1, j) + a(i - 1, j) + a(i, j + 1) + a(i, j - 1)) - a(i, j))**2
       end do
    end do
    residual = sqrt(residual/(n - 1)/(n - 1))
  end function residual
end subroutine workload
