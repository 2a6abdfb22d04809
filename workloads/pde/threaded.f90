!> "Threaded": in each iteration a thread for each line relaxes its red points and the black points of the line before; the
!> residual has threads of its own. The hints are the lines' addresses, which only grow, so that threads run in
!> the order in which they are forked, whatever the block: red points always before the black ones beside them.
module line_threads
  use line
  implicit none
  integer :: n
  double precision, pointer, contiguous :: u(:, :), b(:, :), r(:, :)
contains
  subroutine red_and_black(j, unused)
    integer, intent(in) :: j, unused

    if (j <= n) call relax_red(u, b, n, j)
    if (j > 1) call relax_black(u, b, n, j - 1)
  end subroutine red_and_black

  subroutine residual_of(j, unused)
    integer, intent(in) :: j, unused

    call find_residual(r, u, b, n, j)
  end subroutine residual_of
end module line_threads

subroutine solve(u_, b_, r_, n_, iterations, opt, out)
  use frame
  use line_threads
  use domicile_th
  implicit none
  integer, intent(in) :: n_, iterations
  double precision, intent(inout), target :: u_(0:n_ + 1, 0:n_ + 1), r_(n_, n_)
  double precision, intent(in), target :: b_(n_, n_)
  type(options), intent(in) :: opt
  type(outcome), intent(inout) :: out
  integer :: iteration, j

  n = n_
  u(0:, 0:) => u_
  b => b_
  r => r_
  call order_begin(opt)
  do iteration = 1, iterations
     do j = 1, n + 1
        call th_fork(red_and_black, j, 0, u(1, j), b(1, min(j, n)))
     end do
     call th_run(0)
     call order_end(out)
  end do
  do j = 1, n
     call th_fork(residual_of, j, 0, u(1, j), b(1, j), r(1, j))
  end do
  call th_run(0)
  call order_end(out)
end subroutine solve
