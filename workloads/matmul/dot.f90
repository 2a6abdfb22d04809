!> The inner loop of the transposed and the threaded version: two loads for each multiplication.
module dots
  implicit none
contains
  !> start + x . y
  double precision function dot(start, x, y, n)
    integer, intent(in) :: n
    double precision, intent(in) :: start, x(n), y(n)
    integer :: k

    dot = start
    do k = 1, n
       dot = dot + x(k)*y(k)
    end do
  end function dot
end module dots
