!> "Cache-conscious": black points follow the red ones one line behind, as soon as their neighbours are done, and the
!> residual follows the last black points one line behind those. The data passes through the cache once an iteration.
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
     do j = 1, n + 1
        if (j <= n) call relax_red(u, b, n, j)
        if (j > 1) call relax_black(u, b, n, j - 1)
        if (iteration == iterations .and. j > 2) call find_residual(r, u, b, n, j - 2)
     end do
  end do
  call find_residual(r, u, b, n, n)
end subroutine solve
