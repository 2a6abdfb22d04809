!> "Transposed": A is transposed before and after, so that the inner loop is a dot product of two
!> columns. Two loads for each multiplication.
subroutine multiply(a, b, c, n, opt, out)
  use frame
  use transposition
  use dots
  implicit none
  integer, intent(in) :: n
  double precision, intent(inout) :: a(n, n), c(n, n)
  double precision, intent(in) :: b(n, n)
  type(options), intent(in) :: opt
  type(outcome), intent(inout) :: out
  integer :: i, j

  call transpose_in_place(a, n, int(opt%columns))
  do i = 1, n
     do j = 1, n
        if (opt%mark /= 0) call frame_item_begin(a(1, i), b(1, j), c_null_ptr)
        c(i, j) = dot(c(i, j), a(1, i), b(1, j), n)
        if (opt%mark /= 0) call frame_item_end()
     end do
  end do
  call transpose_in_place(a, n, int(opt%columns))
end subroutine multiply
