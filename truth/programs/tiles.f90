! Matrix multiply with the middle loop whole, or in tiles that stay in the caches.
program tiles
  use iso_c_binding
  implicit none
  interface
    subroutine work_begins() bind(c)
    end subroutine
    subroutine work_ends() bind(c)
    end subroutine
  end interface
  integer :: n, tile, i, j, k, jj, kk
  character(len=16) :: way, size
  integer(8), allocatable :: a(:, :), b(:, :), c(:, :)
  n = 400
  call get_command_argument(1, way)
  if (command_argument_count() > 1) then
    call get_command_argument(2, size)
    read (size, *) n
  end if
  allocate (a(n, n), b(n, n), c(n, n))
  do j = 1, n
    do i = 1, n
      a(i, j) = mod(i + 2 * j, 17)
      b(i, j) = mod(3 * i + j, 19)
    end do
  end do
  c = 0
  if (way == 'whole') then
    tile = n
  else if (way == 'tiled') then
    tile = 40
  else
    error stop 'usage: tiles whole|tiled [size]'
  end if
  call work_begins()
  do kk = 1, n, tile
    do jj = 1, n, tile
      do i = 1, n
        do j = jj, min(jj + tile - 1, n)
          do k = kk, min(kk + tile - 1, n)
            c(i, j) = c(i, j) + a(i, k) * b(k, j)
          end do
        end do
      end do
    end do
  end do
  call work_ends()
  print '(i0)', sum(c)
end program
