!> The inner loop of the transposed and the threaded version: two loads for each multiplication. It is recursive because only
!> recursive procedures may run twice at the same time, as they do with two workers.
module dots
  implicit none
contains
  !> start + x . y
  recursive double precision function dot(start, x, y, n)
    integer, intent(in) :: n
    double precision, intent(in) :: start, x(n), y(n)
    integer :: k

    dot = start
    do k = 1, n
       dot = dot + x(k)*y(k)
    end do
  end function dot
end module dots
