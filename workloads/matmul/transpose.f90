!> A becomes its transpose, in place. Four columns at a time, so that four neighbours in a line are used while it is near: the
!> lines of a row of A are 8 KB apart at n = 1024, and a cache keeps few of those.
module transposition
  implicit none
contains
  subroutine transpose_in_place(a, n)
    integer, intent(in) :: n
    double precision, intent(inout) :: a(n, n)
    integer, parameter :: together = 4
    double precision :: kept
    integer :: i, j, first

    do first = 1, n, together
       do i = 1, min(first + together - 1, n)
          do j = max(first, i + 1), min(first + together - 1, n)
             kept = a(i, j)
             a(i, j) = a(j, i)
             a(j, i) = kept
          end do
       end do
    end do
  end subroutine transpose_in_place
end module transposition
