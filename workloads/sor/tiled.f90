!> "Hand-tiled", as Wolf and Lam do it: both space dimensions are skewed by the iteration (i + t, j + t), after which
!> every dependence points forward in every dimension and the nest may be cut into tiles of s x s
!> columns and rows, each through all iterations. The result is the untiled one to the last bit.
subroutine solve(a, n, iterations, opt, out)
  use frame
  implicit none
  integer, intent(in) :: n, iterations
  double precision, intent(inout), target :: a(0:n, 0:n)
  type(options), intent(in) :: opt
  type(outcome), intent(inout) :: out
  integer, parameter :: s = 18
  double precision :: before, here, after
  integer :: t, i, j, ii, jj, first

  do jj = 2, n - 1 + iterations, s
     do ii = 2, n - 1 + iterations, s
        do t = 1, iterations
           first = max(ii - t, 1)
           if (first > n - 1 .or. ii + s - 1 - t < 1) cycle
           do j = max(jj - t, 1), min(jj + s - 1 - t, n - 1)
              before = a(first - 1, j)
              here = a(first, j)
              do i = first, min(ii + s - 1 - t, n - 1)
                 after = a(i + 1, j)
                 before = 0.2d0*(here + after + a(i, j + 1) + a(i, j - 1)) + 0.2d0*before
                 a(i, j) = before
                 here = after
              end do
           end do
        end do
     end do
  end do
end subroutine solve
