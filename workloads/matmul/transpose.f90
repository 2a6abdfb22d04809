!> A becomes its transpose, in place: `together` columns at a time. With 1, element by element, a line is used once for each of its
!> elements; with more, neighbours in a line are used while it is near (the lines of a row of A are 8 KB apart at n = 1024, and
!> a cache keeps few of those).
module transposition
  implicit none
contains
  subroutine transpose_in_place(a, n, together)
    integer, intent(in) :: n, together
    double precision, intent(inout) :: a(n, n)
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
