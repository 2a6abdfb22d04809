!> One column of the SOR nest.
module column
  implicit none
contains
  !> The sum is the paper's; its term A(i - 1, j), which was computed just before, comes last, so that the chain
  !> from one element to the next is one multiplication and one addition long.
  subroutine relax_column(a, n, j)
    integer, intent(in) :: n, j
    double precision, intent(inout) :: a(0:n, 0:n)
    double precision :: before, here, after
    integer :: i

    before = a(0, j)
    here = a(1, j)
    do i = 1, n - 1
       after = a(i + 1, j)
       before = 0.2d0*(here + after + a(i, j + 1) + a(i, j - 1)) + 0.2d0*before
       a(i, j) = before
       here = after
    end do
  end subroutine relax_column
end module column
