!> "Parallel", beyond the paper: bins that several workers may run at the same time. Within a block of lines, black points
!> follow the red ones one line behind as in the threaded version; the black points of its first and last line, which need
!> the neighbours' red ones, come in a second run. The result is the regular one to the last bit.
module block_threads
  use, intrinsic :: iso_c_binding
  use line
  implicit none
  integer :: n
  double precision, pointer, contiguous :: u(:, :), b(:, :), r(:, :)
contains
  !> `first` is the first line of the block of line j.
  recursive subroutine red_and_inner_black(j, first) bind(c)
    integer(c_intptr_t), value :: j, first

    call relax_red(u, b, n, int(j))
    if (j - 1 > first) call relax_black(u, b, n, int(j) - 1)
  end subroutine red_and_inner_black

  recursive subroutine outer_black(j, unused) bind(c)
    integer(c_intptr_t), value :: j, unused

    call relax_black(u, b, n, int(j))
  end subroutine outer_black

  recursive subroutine residual_of(j, unused) bind(c)
    integer(c_intptr_t), value :: j, unused

    call find_residual(r, u, b, n, int(j))
  end subroutine residual_of
end module block_threads

subroutine solve(u_, b_, r_, n_, iterations, opt, out)
  use frame
  use places
  use block_threads
  implicit none
  integer, intent(in) :: n_, iterations
  double precision, intent(inout), target :: u_(0:n_ + 1, 0:n_ + 1), r_(n_, n_)
  double precision, intent(in), target :: b_(n_, n_)
  type(options), intent(in) :: opt
  type(outcome), intent(inout) :: out
  integer(c_int64_t) :: side, place
  integer :: iteration, first, last, lines, j

  n = n_
  u(0:, 0:) => u_
  b => b_
  r => r_
  call places_open(opt)
  side = places_block()
  lines = int(max(1_c_int64_t, min(int(n, c_int64_t), side/(3*8*int(n, c_int64_t)))))
  do iteration = 1, iterations
     do first = 1, n, lines
        place = side*(first/lines)
        do j = first, min(first + lines - 1, n)
           call place_thread(red_and_inner_black, j, first, place)
        end do
     end do
     call places_run(out)
     do first = 1, n, lines
        place = side*(first/lines)
        last = min(first + lines - 1, n)
        call place_thread(outer_black, first, 0, place)
        if (last > first) call place_thread(outer_black, last, 0, place)
     end do
     call places_run(out)
  end do
  do j = 1, n
     call place_thread(residual_of, j, 0, side*((j - 1)/lines))
  end do
  call places_run(out)
  call places_close()
end subroutine solve
