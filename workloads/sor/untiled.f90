!> "Untiled": the nest as it is, its two inner loops swapped so that the array is walked by columns. Every element still
!> comes after its two earlier neighbours, so that the swap changes no result.
subroutine solve(a, n, iterations, opt, out)
  use frame
  use column
  implicit none
  integer, intent(in) :: n, iterations
  double precision, intent(inout), target :: a(0:n, 0:n)
  type(options), intent(in) :: opt
  type(outcome), intent(inout) :: out
  integer :: t, j, count

  do t = 1, iterations
     do j = 1, n - 1, int(opt%columns)
        count = min(int(opt%columns), n - j)
        if (opt%mark /= 0) call frame_item_begin(a(0, j - 1), a(n, j + count), c_null_ptr)
        call relax_columns(a, n, j, count)
        if (opt%mark /= 0) call frame_item_end()
     end do
  end do
end subroutine solve
