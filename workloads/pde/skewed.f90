!> "Skewed", beyond the paper: all iterations and the residual in one run. A thread's place is its line, moved by two lines for
!> each iteration, so that whatever it needs lies in its own bin or an earlier one. The data passes
!> through the cache once, and the result is the regular one to the last bit.
module skewed_threads
  use, intrinsic :: iso_c_binding
  use line
  implicit none
  integer :: n
  double precision, pointer, contiguous :: u(:, :), b(:, :), r(:, :)
contains
  subroutine red_and_black(j, unused) bind(c)
    integer(c_intptr_t), value :: j, unused

    if (j <= n) call relax_red(u, b, n, int(j))
    if (j > 1) call relax_black(u, b, n, int(j) - 1)
  end subroutine red_and_black

  subroutine residual_of(j, unused) bind(c)
    integer(c_intptr_t), value :: j, unused

    call find_residual(r, u, b, n, int(j))
  end subroutine residual_of
end module skewed_threads

subroutine solve(u_, b_, r_, n_, iterations, opt, out)
  use frame
  use places
  use skewed_threads
  implicit none
  integer, intent(in) :: n_, iterations
  double precision, intent(inout), target :: u_(0:n_ + 1, 0:n_ + 1), r_(n_, n_)
  double precision, intent(in), target :: b_(n_, n_)
  type(options), intent(in) :: opt
  type(outcome), intent(inout) :: out
  integer(c_int64_t) :: line_bytes
  integer :: iteration, j

  n = n_
  u(0:, 0:) => u_
  b => b_
  r => r_
  line_bytes = 3*8*int(n, c_int64_t)
  call places_open(opt)
  do iteration = 1, iterations
     do j = 1, n + 1
        call place_thread(red_and_black, j, 0, (j + 2*iteration)*line_bytes)
     end do
  end do
  do j = 1, n
     call place_thread(residual_of, j, 0, (j + 2*(iterations + 1))*line_bytes)
  end do
  call places_run(out)
  call places_close()
end subroutine solve
