! The same in Fortran.
program begins
  implicit none
  integer(8), volatile :: values(100) = 0
  integer(8) :: total
  integer :: i
  total = 0
  do i = 1, 100
    total = total + values(i)
  end do
  if (total /= 0) stop 1
end program
