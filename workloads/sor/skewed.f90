!> "Skewed", beyond the paper: the threaded version with its hints moved by one column (of those relaxed together) for
!> each iteration. A thread then needs only its own bin and earlier ones; the result is the untiled one to the last bit.
subroutine solve(a_, n_, iterations, opt, out)
  use frame
  use places
  use counted_columns
  implicit none
  integer, intent(in) :: n_, iterations
  double precision, intent(inout), target :: a_(0:n_, 0:n_)
  type(options), intent(in) :: opt
  type(outcome), intent(inout) :: out
  integer(c_int64_t) :: column_bytes
  integer :: t, j, together

  n = n_
  together = int(opt%columns)
  a(0:, 0:) => a_
  column_bytes = 8*(int(n, c_int64_t) + 1)
  call places_open(opt)
  do t = 1, iterations
     do j = 1, n - 1, together
        call place_thread(compute, j, min(together, n - j), (j + t*together)*column_bytes)
     end do
  end do
  call places_run(out)
  call places_close()
end subroutine solve
