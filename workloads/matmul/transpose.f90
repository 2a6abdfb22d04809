!> A becomes its transpose, in place, element by element.
module transposition
  implicit none
contains
  subroutine transpose_in_place(a, n)
    integer, intent(in) :: n
    double precision, intent(inout) :: a(n, n)
    double precision :: kept
    integer :: i, j

    do j = 2, n
       do i = 1, j - 1
          kept = a(i, j)
          a(i, j) = a(j, i)
          a(j, i) = kept
       end do
    end do
  end subroutine transpose_in_place
end module transposition
