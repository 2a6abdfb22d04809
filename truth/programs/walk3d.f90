! A stencil over a cube, its innermost loop along the last index or along the first (the one that Fortran stores densely).
program walk3d
  use iso_c_binding
  implicit none
  interface
    subroutine work_begins() bind(c)
    end subroutine
    subroutine work_ends() bind(c)
    end subroutine
  end interface
  integer, parameter :: usual = 200
  integer :: n, i, j, k
  character(len=16) :: way, size
  real(8), allocatable :: a(:, :, :), b(:, :, :)
  n = usual
  call get_command_argument(1, way)
  if (command_argument_count() > 1) then
    call get_command_argument(2, size)
    read (size, *) n
  end if
  allocate (a(n, n, n), b(n, n, n))
  do k = 1, n
    do j = 1, n
      do i = 1, n
        a(i, j, k) = mod(i + 3 * j + 5 * k, 11)
      end do
    end do
  end do
  b = 0
  call work_begins()
  if (way == 'last') then
    do i = 2, n - 1
      do j = 2, n - 1
        do k = 2, n - 1
          b(i, j, k) = a(i - 1, j, k) + a(i + 1, j, k) + a(i, j - 1, k) + a(i, j + 1, k) + a(i, j, k - 1) + a(i, j, k + 1)
        end do
      end do
    end do
  else if (way == 'first') then
    do k = 2, n - 1
      do j = 2, n - 1
        do i = 2, n - 1
          b(i, j, k) = a(i - 1, j, k) + a(i + 1, j, k) + a(i, j - 1, k) + a(i, j + 1, k) + a(i, j, k - 1) + a(i, j, k + 1)
        end do
      end do
    end do
  else
    error stop 'usage: walk3d last|first [size]'
  end if
  call work_ends()
  print '(i0)', int(sum(b), 8)
end program
