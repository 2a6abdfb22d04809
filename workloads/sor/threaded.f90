!> "Threaded": a thread for each column and iteration, all forked before any runs. A bin's columns go through all iterations
!> while they are in the cache; its neighbours' columns stand still meanwhile. That is another order than the untiled
!> version's (a chaotic relaxation), which comes to the same solution by another way. Where the
!> whole array is one block, the order is the untiled one.
module column_threads
  use column
  implicit none
  integer :: n
  double precision, pointer, contiguous :: a(:, :)
contains
  subroutine compute(j, count)
    integer, intent(in) :: j, count

    call relax_columns(a, n, j, count)
  end subroutine compute
end module column_threads

subroutine solve(a_, n_, iterations, opt, out)
  use frame
  use column_threads
  use domicile_th
  implicit none
  integer, intent(in) :: n_, iterations
  double precision, intent(inout), target :: a_(0:n_, 0:n_)
  type(options), intent(in) :: opt
  type(outcome), intent(inout) :: out
  integer :: t, j, count

  n = n_
  a(0:, 0:) => a_
  call order_begin(opt)
  do t = 1, iterations
     do j = 1, n - 1, int(opt%columns)
        count = min(int(opt%columns), n - j)
        call th_fork(compute, j, count, a(0, j - 1), a(n, j + count))
     end do
  end do
  call th_run(0)
  call order_end(out)
end subroutine solve
