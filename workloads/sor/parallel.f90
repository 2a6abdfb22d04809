!> "Parallel", beyond the paper: bins that several workers may run at the same time. The paper's 63 bins are 32 whose columns
!> and their neighbours lie in one block, and 31 seams between two blocks. Here the blocks are relaxed first, all
!> iterations of each, and then the seams of two columns: no thread reads what another worker
!> may be writing. A chaotic relaxation like the threaded version, but its result does not
!> depend on the number of workers.
subroutine solve(a_, n_, iterations, opt, out)
  use frame
  use places
  use counted_columns
  implicit none
  integer, intent(in) :: n_, iterations
  double precision, intent(inout), target :: a_(0:n_, 0:n_)
  type(options), intent(in) :: opt
  type(outcome), intent(inout) :: out
  integer(c_int64_t) :: side, place
  integer :: t, j, columns, together, first, last

  n = n_
  together = int(opt%columns)
  a(0:, 0:) => a_
  call places_open(opt)
  side = places_block()
  ! With three columns or more in a block, seams do not touch each other.
  columns = int(max(3_c_int64_t, min(int(n, c_int64_t), side/(8*(int(n, c_int64_t) + 1)))))
  do t = 1, iterations
     do first = 1, n - 1, columns
        place = side*(first/columns)
        last = min(first + columns - 1, n - 1)
        if (last < n - 1) last = last - 1
        do j = merge(1, first + 1, first == 1), last, together
           call place_thread(compute, j, min(together, last - j + 1), place)
        end do
     end do
  end do
  call places_run(out)
  do t = 1, iterations
     do first = 1 + columns, n - 1, columns
        place = side*(first/columns)
        call place_thread(compute, first - 1, 2, place)
     end do
  end do
  call places_run(out)
  call places_close()
end subroutine solve
