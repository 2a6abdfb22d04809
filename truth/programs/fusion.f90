! Four loops over two arrays, one after the other, or in one.
program fusion
  use iso_c_binding
  implicit none
  interface
    subroutine work_begins() bind(c)
    end subroutine
    subroutine work_ends() bind(c)
    end subroutine
  end interface
  integer :: n, i, pass
  character(len=16) :: way, size
  real(8), allocatable :: a(:), b(:)
  n = 4000000
  call get_command_argument(1, way)
  if (command_argument_count() > 1) then
    call get_command_argument(2, size)
    read (size, *) n
  end if
  allocate (a(n), b(n))
  do i = 1, n
    a(i) = mod(i, 9)
    b(i) = mod(i, 5)
  end do
  call work_begins()
  do pass = 1, 4
    if (way == 'apart') then
      do i = 1, n
        a(i) = a(i) + b(i)
      end do
      do i = 1, n
        b(i) = b(i) + 3
      end do
      do i = 1, n
        a(i) = 2 * a(i)
      end do
      do i = 1, n
        b(i) = a(i) - b(i)
      end do
    else if (way == 'fused') then
      do i = 1, n
        a(i) = a(i) + b(i)
        b(i) = b(i) + 3
        a(i) = 2 * a(i)
        b(i) = a(i) - b(i)
      end do
    else
      error stop 'usage: fusion apart|fused [size]'
    end if
  end do
  call work_ends()
  print '(i0)', int(sum(b) + sum(a), 8)
end program
