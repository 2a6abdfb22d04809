!> "Threaded": the transposed version with a thread for each dot product; its hints are the two columns that it reads.
module dot_threads
  implicit none
  double precision, pointer, contiguous :: a(:, :), b(:, :), c(:, :)
contains
  subroutine dot_product_of(i, j)
    integer, intent(in) :: i, j
    double precision :: dot
    integer :: k

    dot = c(i, j)
    do k = 1, size(a, 1)
       dot = dot + a(k, i)*b(k, j)
    end do
    c(i, j) = dot
  end subroutine dot_product_of
end module dot_threads

subroutine multiply(a_, b_, c_, n, opt, out)
  use frame
  use transposition
  use dot_threads
  use domicile_th
  implicit none
  integer, intent(in) :: n
  double precision, intent(inout), target :: a_(n, n), c_(n, n)
  double precision, intent(in), target :: b_(n, n)
  type(options), intent(in) :: opt
  type(outcome), intent(inout) :: out
  integer :: i, j

  a => a_
  b => b_
  c => c_
  call order_begin(opt)
  call transpose_in_place(a_, n)
  do i = 1, n
     do j = 1, n
        call th_fork(dot_product_of, i, j, a(1, i), b(1, j))
     end do
  end do
  call th_run(0)
  call transpose_in_place(a_, n)
  call order_end(out)
end subroutine multiply
