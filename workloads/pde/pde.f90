!> Red-black Gauss-Seidel relaxation of a partial differential equation, then the residual (Philbin et al. 1996,
!> section 4.3): shared part of all versions. n by n unknowns with a border of known values around them.
subroutine workload(opt, out) bind(c)
  use frame
  implicit none
  type(options), intent(in) :: opt
  type(outcome), intent(inout) :: out

  interface
     subroutine solve(u, b, r, n, iterations, opt, out)
       import :: options, outcome
       integer, intent(in) :: n, iterations
       double precision, intent(inout), target :: u(0:n + 1, 0:n + 1), r(n, n)
       double precision, intent(in), target :: b(n, n)
       type(options), intent(in) :: opt
       type(outcome), intent(inout) :: out
     end subroutine solve
  end interface

  double precision, allocatable :: u(:, :), b(:, :), r(:, :)
  double precision :: norm
  integer :: n, i, j, status

  n = int(opt%n)
  allocate (u(0:n + 1, 0:n + 1), b(n, n), r(n, n), stat=status)
  if (status /= 0) call fail('not enough memory for three arrays of this size')
  do j = 0, n + 1
     do i = 0, n + 1
        u(i, j) = 0
        if (i == 0 .or. j == 0 .or. i > n .or. j > n) u(i, j) = mod(i + 2*j, 5)/4d0
     end do
  end do
  do j = 1, n
     do i = 1, n
        b(i, j) = (mod(3*i + 7*j, 19) - 9)/8d0
        r(i, j) = 0
     end do
  end do

  call frame_begin()
  call solve(u, b, r, n, int(opt%iterations), opt, out)
  call frame_end()

  norm = 0
  do j = 1, n
     do i = 1, n
        norm = norm + r(i, j)**2
        out%checksum = out%checksum + u(i, j)*(mod(i + 31*j, 101) + 1) + r(i, j)*(mod(29*i + j, 103) + 1)
     end do
  end do
  call report('residual', sqrt(norm/n/n))
end subroutine workload
