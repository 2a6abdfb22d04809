!> "Threaded": the transposed version with a thread for each dot product; its hints are the two columns that it reads.
module dot_threads
  use dots
  implicit none
  integer :: n
  double precision, pointer, contiguous :: a(:, :), b(:, :), c(:, :)
contains
  recursive subroutine dot_product_of(i, j)
    integer, intent(in) :: i, j

    c(i, j) = dot(c(i, j), a(:, i), b(:, j), n)
  end subroutine dot_product_of
end module dot_threads

subroutine multiply(a_, b_, c_, n_, opt, out)
  use frame
  use transposition
  use dot_threads
  use domicile_th
  implicit none
  integer, intent(in) :: n_
  double precision, intent(inout), target :: a_(n_, n_), c_(n_, n_)
  double precision, intent(in), target :: b_(n_, n_)
  type(options), intent(in) :: opt
  type(outcome), intent(inout) :: out
  integer :: i, j

  n = n_
  a => a_
  b => b_
  c => c_
  call order_begin(opt)
  call transpose_in_place(a_, n, int(opt%columns))
  do i = 1, n
     do j = 1, n
        call th_fork(dot_product_of, i, j, a(1, i), b(1, j))
     end do
  end do
  call th_run(0)
  call transpose_in_place(a_, n, int(opt%columns))
  call order_end(out)
end subroutine multiply
