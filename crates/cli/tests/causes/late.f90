! The same sums over and over: each use of a line comes when the caches near the cpu have long lost it.
program late
   implicit none
   integer, parameter :: n = 200000
   real(8) :: values(n)
   real(8) :: total
   integer :: round, i
   total = 0
   values = 1
   do round = 1, 15
      do i = 1, n
         total = total + values(i) ! here
      end do
   end do
   print *, total
end program late
