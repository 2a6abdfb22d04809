!> "Regular": all red points, then all black ones, in each iteration; the residual last. The data passes
!> through the cache 2 * iterations + 1 times.
subroutine solve(u, b, r, n, iterations, opt, out)
  use frame
  use line
  implicit none
  integer, intent(in) :: n, iterations
  double precision, intent(inout), target :: u(0:n + 1, 0:n + 1), r(n, n)
  double precision, intent(in), target :: b(n, n)
  type(options), intent(in) :: opt
  type(outcome), intent(inout) :: out
  integer :: iteration, j

  do iteration = 1, iterations
     do j = 1, n
        call relax_red(u, b, n, j)
     end do
     do j = 1, n
        call relax_black(u, b, n, j)
     end do
  end do
  do j = 1, n
     call find_residual(r, u, b, n, j)
  end do
end subroutine solve
