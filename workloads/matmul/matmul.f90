!> Matrix multiply, C = C + A B with n by n matrices (Philbin et al. 1996, section 4.2): shared part of all versions.
!> The elements are small whole numbers, so that every sum is exact and all versions must agree to the last bit.
subroutine workload(opt, out) bind(c)
  use frame
  implicit none
  type(options), intent(in) :: opt
  type(outcome), intent(inout) :: out

  interface
     subroutine multiply(a, b, c, n, opt, out)
       import :: options, outcome
       integer, intent(in) :: n
       double precision, intent(inout) :: a(n, n), c(n, n)
       double precision, intent(in) :: b(n, n)
       type(options), intent(in) :: opt
       type(outcome), intent(inout) :: out
     end subroutine multiply
  end interface

  double precision, allocatable :: a(:, :), b(:, :), c(:, :)
  integer :: n, i, j, status

  n = int(opt%n)
  allocate (a(n, n), b(n, n), c(n, n), stat=status)
  if (status /= 0) call fail('not enough memory for three matrices of this size')
  do j = 1, n
     do i = 1, n
        a(i, j) = mod(3*i + 5*j, 17) - 8
        b(i, j) = mod(7*i + 2*j, 13) - 6
        c(i, j) = 0
     end do
  end do

  call frame_begin()
  call multiply(a, b, c, n, opt, out)
  call frame_end()

  ! Weights that differ from element to element: a result in the wrong place is detected.
  do j = 1, n
     do i = 1, n
        out%checksum = out%checksum + c(i, j)*(mod(i + 31*j, 101) + 1)
     end do
  end do
end subroutine workload
