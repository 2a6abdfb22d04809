! Arrays of a Fortran program: in a module, in common, and allocated.
module fields
  implicit none
  real(8) :: grid(60000)
end module

program field
  use fields
  implicit none
  real(8), allocatable :: values(:), more(:)
  real(8) :: shared(60000)
  common /pool/ shared
  integer :: i
  allocate(values(80000))
  allocate(more(80000))
  do i = 1, 80000
    values(i) = mod(i, 19)
    more(i) = 2 * values(i)
  end do
  do i = 1, 60000
    grid(i) = mod(i, 23)
    shared(i) = grid(i) + 1
  end do
  print '(f14.1)', sum(values) + sum(more) + sum(grid) * sum(shared)
  deallocate(values)
end program
