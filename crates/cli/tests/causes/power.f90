! One row of a matrix whose columns are 4096 bytes long, again and again.
program power
  implicit none
  integer, parameter :: n = 512, m = 128
  real(8), save :: a(n, m)
  real(8) :: total
  integer :: i, j, again
  a = 1.0d0
  total = 0.0d0
  i = command_argument_count() + 1
  do again = 1, 200
    do j = 1, m
      total = total + a(i, j) ! here
    end do
  end do
  print *, total
end program power
