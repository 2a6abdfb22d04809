!> Tomcatv: a mesh of curved lines that follow the boundary of a domain, after Thompson. The places x and y of the mesh's points
!> are solutions of two coupled elliptic equations; each time step finds their residual, solves
!> tridiagonal systems along the lines of one direction and adds the result.
!>
!> Seven arrays of 513 x 513. Lines that are solved are columns here: the recurrences run down a column, columns are
!> independent, and all loops are parallel over them, so that a thread's part of each array is contiguous.
program tomcatv
  use stepped
  use mesh
  implicit none
  double precision :: largest_x, largest_y, first_x, first_y, checksum
  integer :: i, j
  logical :: first

  call start()
  call boundary()
  first = .true.
  first_x = 0
  first_y = 0
  largest_x = 0
  largest_y = 0
  do while (next_step())
     call find_residual()
     call find_largest(largest_x, largest_y)
     call eliminate()
     call substitute()
     call add()
     if (first) then
        first_x = largest_x
        first_y = largest_y
     end if
     first = .false.
  end do

  checksum = 0
  do j = 1, n
     do i = 1, n
        checksum = checksum + (x(i, j) + 2*y(i, j))*place_weight(i, j)
     end do
  end do
  call report('n', dble(n))
  call report('residual_before', max(first_x, first_y))
  call report('residual', max(largest_x, largest_y))
  call report('folded', dble(folded()))
  call finish(checksum)
end program tomcatv
